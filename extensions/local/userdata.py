"""The script that installs units and files on a new machine's disk.

It handles units like gardener-node-agent: enabled by default, restarted unless the command is stop.
Pure: `operatingsystem` reads the contents of Secrets before.
"""

import posixpath
import shlex
from collections.abc import Iterable, Iterator, Sequence

from actuator import Base64
from actuator.v1alpha1 import File, Unit

_UNITS = "/etc/systemd/system"
_DEFAULT_PERMISSIONS = 0o644


def script(files: Iterable[tuple[File, bytes]], units: Sequence[Unit]) -> bytes:
    """Return a shell script that writes these files, then writes and starts the units.

    Equal input gives an equal script, so that machines change only if the input does.
    """
    lines = ["#!/bin/bash", "set -eu"]
    for file, content in files:
        lines += _guarded(file.host_name, _file(file, content))
    for unit in units:
        lines += _unit_files(unit)
    lines.append("systemctl daemon-reload")
    for unit in units:
        lines += _start(unit)
    return "\n".join([*lines, ""]).encode()


def _file(file: File, content: bytes) -> Iterator[str]:
    permissions = _DEFAULT_PERMISSIONS if file.permissions is None else file.permissions
    readable = bool(file.content.transmit_unencoded)  # another program fills in placeholders
    yield from _write(file.path, content, permissions, readable=readable)


def _write(
    path: str, content: bytes, permissions: int = _DEFAULT_PERMISSIONS, *, readable: bool = False
) -> Iterator[str]:
    """Yield commands that set the file's permissions before its content."""
    yield f"mkdir -p {shlex.quote(posixpath.dirname(path))}"
    yield f"install -m {permissions:04o} /dev/null {shlex.quote(path)}"
    if readable:
        yield f"printf %s {shlex.quote(content.decode())} > {shlex.quote(path)}"
    else:
        yield f"echo {Base64.encode_bytes(content)} | base64 -d > {shlex.quote(path)}"


def _guarded(host_name: str | None, lines: Iterable[str]) -> list[str]:
    """Return the lines, limited to one host if a name is given."""
    if not host_name:
        return list(lines)
    return [f'if [ "$(hostname)" = {shlex.quote(host_name)} ]; then', *lines, "fi"]


def _unit_files(unit: Unit) -> Iterator[str]:
    path = f"{_UNITS}/{unit.name}"
    if unit.content:
        yield from _write(path, unit.content.encode())
    for drop_in in unit.drop_ins:
        yield from _write(f"{path}.d/{drop_in.name}", drop_in.content.encode())


def _start(unit: Unit) -> Iterator[str]:
    name = shlex.quote(unit.name)
    enabled = unit.enable is not False
    yield f"systemctl {'enable' if enabled else 'disable'} {name}"
    stopped = not enabled or unit.command == "stop"
    yield f"systemctl {'stop' if stopped else 'restart --no-block'} {name}"
