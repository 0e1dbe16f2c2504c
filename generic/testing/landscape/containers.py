"""Containers that run as local processes: what a program gets, and what a pod may choose of it.

Not here: the programs (`images`), values that a pod may not have at all (`pods`).
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from attrs import field, frozen

from actuator.meta import Raw
from generic.testing.landscape.pods import PodRefused, expand

_PATH = re.compile(r"""(?<![\w.~%+/:-])(/[^\s,;"'():]*)|:(/(?!/)[^\s,;"'():]*)|(:///\S*)""")
"""The absolute paths in a text; a path in a URL is none."""
_UPWARDS = re.compile(r"(?<![\w.-])\.\.(?![\w.-])")


@frozen
class PlannedContainer:
    """A container that is to run: its spec with local paths."""

    namespace: str
    arguments: Sequence[str]
    """The flags and words after the program."""
    root: Path
    """The folder of its pod; a path of the pod's spec has to be inside."""
    folder: Path
    """A private folder inside it for the files of this module."""
    local: Callable[[str], str]
    """Replaces paths inside the container by local ones."""
    port: Callable[[int], int]
    """Returns the local port in place of a port of the container."""
    proxy_url: str
    kubeconfig: Path | None
    """The kubeconfig of its service account; None if the pod does not mount the account."""

    def flag(self, name: str) -> str:
        """Return the value of `--name=VALUE`, or ""."""
        values = [a.partition("=")[2] for a in self.arguments if a.startswith(f"--{name}=")]
        return values[-1] if values else ""

    def flags(self, known: tuple[str, ...]) -> list[str]:
        """Return the flags with these beginnings."""
        return [argument for argument in self.arguments if argument.startswith(known)]


@frozen
class Derived:
    """A file that a program reads in place of one in a volume, and that follows it."""

    source: Path
    target: Path
    convert: Callable[[bytes], bytes]
    """Raises Refused."""


@frozen
class Launch:
    """How to run a container."""

    program: Sequence[str | Path]
    """The program and the arguments that the pod cannot choose."""
    arguments: Sequence[str] = ()
    """Arguments of the pod's spec."""
    environ: Mapping[str, str] = field(factory=dict)
    """Variables that the pod cannot choose."""
    cwd: Path | None = None
    """The working directory; by default the folder of the pod."""
    derived: Sequence[Derived] = ()


@frozen
class Image:
    """How to run the containers of an image."""

    entrypoint: Sequence[str]
    """The only `command` that a container may have, with any path before the program's name."""
    launch: Callable[[PlannedContainer], Launch]
    """Raises Missing and Refused."""
    processes: int = 0
    """Maximum number of processes for the pods of one ReplicaSet, 0 for no maximum: the other pods
    are as ready as those."""


def arguments_of(spec: Raw, image: Image, variables: Mapping[str, str]) -> list[str]:
    """Return the arguments of a container. Raises Refused if its command is another program."""
    command = [expand(word, variables) for word in spec.get("command") or ()]
    arguments = [expand(word, variables) for word in spec.get("args") or ()]
    if not command:
        return arguments
    entrypoint = list(image.entrypoint)
    begin = [PurePosixPath(command[0]).name, *command[1 : len(entrypoint)]]
    if begin != entrypoint:
        raise PodRefused(
            f"command {' '.join(command)[:100]!r} is not {' '.join(entrypoint)!r}, the program of"
            " the image."
        )
    return [*command[len(entrypoint) :], *arguments]


def check_paths(texts: Iterable[str], root: Path) -> None:
    """Raises Refused if one of the texts names a file that is not below `root`."""
    for text in texts:
        if "\0" in text:
            raise PodRefused(f"{text[:200]!r} has a NUL character.")
        if _UPWARDS.search(text):
            raise PodRefused(f"{text[:200]!r} has a path with '..'.")
        for found in _PATH.finditer(text):
            if not Path(found[1] or found[2] or found[3]).is_relative_to(root):
                raise PodRefused(f"{text[:200]!r} has a path that is in no volume of the pod.")
