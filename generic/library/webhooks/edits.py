"""Edits of lists in objects: entries by name, command-line flags, files, systemd units.

Every edit can be repeated: the second time it changes nothing.
"""

import base64
import re
from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

import attrs

from actuator.v1alpha1 import File, FileContent, FileContentInline


class _Named(Protocol):
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=_Named)


def ensure(entries: list[N], entry: N) -> None:
    """Replace the entry of the same name, or append it: containers, volumes, units and others."""
    at = next((at for at, item in enumerate(entries) if item.name == entry.name), len(entries))
    entries[at : at + 1] = [entry]


def remove(entries: list[Any], *names: str) -> None:
    """Remove the entries with these names."""
    entries[:] = [entry for entry in entries if entry.name not in names]


def ensure_flag(flags: list[str], name: str, value: str) -> None:
    """Set `--name=value`, in the place of the first such flag or at the end."""
    at = next((at for at, flag in enumerate(flags) if _is_flag(flag, name)), len(flags))
    remove_flag(flags, name)
    flags.insert(at, f"--{name}={value}")


def remove_flag(flags: list[str], *names: str) -> None:
    """Remove `--name` and `--name=value`."""
    flags[:] = [flag for flag in flags if not any(_is_flag(flag, name) for name in names)]


def add_to_flag(flags: list[str], name: str, *entries: str) -> None:
    """Add entries to a comma-separated flag; KEY=VALUE replaces another value of KEY."""
    keys = {entry.partition("=")[0] for entry in entries}
    kept = [entry for entry in _entries(flags, name) if entry.partition("=")[0] not in keys]
    ensure_flag(flags, name, ",".join([*kept, *entries]))


def remove_from_flag(flags: list[str], name: str, *entries: str) -> None:
    """Remove entries, or keys, from a comma-separated flag; an empty flag is removed."""
    before = _entries(flags, name)
    kept = [item for item in before if not {item, item.partition("=")[0]} & set(entries)]
    if kept:
        ensure_flag(flags, name, ",".join(kept))
    else:
        remove_flag(flags, name)


def _is_flag(text: str, name: str) -> bool:
    return text == f"--{name}" or text.startswith(f"--{name}=")


def _entries(flags: Iterable[str], name: str) -> list[str]:
    values = (flag.partition("=")[2] for flag in flags if _is_flag(flag, name))
    return [part for value in values for part in value.split(",") if part]


def find_file(files: Iterable[File], path: str) -> File | None:
    """Return the file with this path, or None."""
    return next((file for file in files if file.path == path), None)


def text_of(file: File) -> str | None:
    """Return the inline content of a file; None if it has none. Raises ValueError."""
    inline = file.content.inline
    if inline is None:
        return None
    return base64.b64decode(inline.data).decode() if inline.encoding == "b64" else inline.data


def ensure_file(files: list[File], path: str, text: str, permissions: int | None = None) -> None:
    """Set the content of the file with this path, or append a file.

    The encoding (plain or b64) and the permissions of an existing file stay, unless `permissions`
    are given.
    """
    old = find_file(files, path)
    inline = old.content.inline if old is not None else None
    encoding = "b64" if inline is None or inline.encoding else ""
    data = base64.b64encode(text.encode()).decode() if encoding == "b64" else text
    content = FileContent(inline=FileContentInline(encoding=encoding, data=data))
    if old is None:
        files.append(File(path=path, permissions=permissions, content=content))
        return
    kept = old.permissions if permissions is None else permissions
    files[files.index(old)] = attrs.evolve(old, content=content, permissions=kept)


@attrs.define
class UnitOption:
    """One option of a systemd unit."""

    section: str
    name: str
    value: str


_SECTION = re.compile(r"\[(.+)\]\s*")
_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|\S)+""")


@attrs.define
class SystemdUnit:
    """A systemd unit: its options in order, repeated ones included; comments are dropped.

    Values keep their line continuations (systemd documentation, "systemd.syntax").
    """

    options: list[UnitOption] = attrs.field(factory=list)

    @classmethod
    def parse(cls, text: str) -> "SystemdUnit":
        """Return the unit of this text. Raises ValueError for a line that is no option."""
        unit = cls()
        section = ""
        open_value = False
        for line in text.splitlines():
            if open_value:
                unit.options[-1].value += f"\n{line}"
                open_value = line.endswith("\\")
            elif not line.strip() or line.lstrip()[0] in "#;":
                continue
            elif found := _SECTION.fullmatch(line.strip()):
                section = found[1]
            else:
                name, equals, value = line.partition("=")
                if not section or not equals:
                    raise ValueError("a line of the unit is neither a section nor an option")
                unit.options.append(UnitOption(section, name.strip(), value.strip()))
                open_value = line.endswith("\\")
        return unit

    def render(self) -> str:
        """Return the text of the unit, with one block for each section."""
        sections = dict.fromkeys(option.section for option in self.options)
        blocks = []
        for section in sections:
            lines = [
                f"{option.name}={option.value}"
                for option in self.options
                if option.section == section
            ]
            blocks.append("\n".join([f"[{section}]", *lines, ""]))
        return "\n".join(blocks)

    def find(self, section: str, name: str) -> UnitOption | None:
        """Return the first option of this name, or None."""
        return next((o for o in self.options if (o.section, o.name) == (section, name)), None)

    def ensure(self, section: str, name: str, value: str) -> None:
        """Append the option, unless the unit has it with this value."""
        option = UnitOption(section, name, value)
        if option not in self.options:
            self.options.append(option)

    def ensure_exec_flag(self, name: str, value: str) -> None:
        """Set `--name=value` in the command of the service (ExecStart).

        The lines are those of Gardener's extensions (`SerializeCommandLine`): another format would
        restart the kubelet of each node. Quoted arguments stay whole.
        """
        found = self.find("Service", "ExecStart")
        if found is not None:
            flags = re.split(r"\s+(?=--)", found.value.replace("\\\n", " ").strip())
            ensure_flag(flags, name, value)
            program, *arguments = _WORD.findall(" ".join(flags))
            found.value = f"{program} " + " \\\n    ".join(arguments)
