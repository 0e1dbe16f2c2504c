"""Detects packages of other distributions that took the place of ours.

PyPI has distributions called `actuator`, `generic` and `extensions`, each with a top-level package
of that name, as ours has. Installed beside us one overwrites the other's files or hides them, and
what follows is an ImportError that explains nothing.
"""

from collections.abc import Iterator
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path

from actuator.errors import ConfigurationError

_OURS = "gardener-actuator"
_PACKAGES = ("actuator", "generic", "extensions")


class PackageConflict(ConfigurationError):
    """Another distribution's package is installed under a name of ours."""


def check_packages() -> None:
    """Return if `actuator`, `generic` and `extensions` are ours alone.

    Raises PackageConflict, which names what is in the way and the way out. Reads a few folders and
    imports nothing, so a command can afford it at every start.
    """
    if taken := list(_conflicts()):
        names = " ".join(taken)
        raise PackageConflict(
            f"another distribution that has a package of our name is installed beside {_OURS}:"
            f" {', '.join(taken)}; remove it and reinstall ours: pip uninstall {names}"
            f" && pip install --force-reinstall {_OURS}"
        )
    for name in _PACKAGES:
        _check_place(name)


def _conflicts() -> Iterator[str]:
    for name in _PACKAGES:
        if next(iter(metadata.distributions(name=name)), None) is not None:
            yield name


def _check_place(name: str) -> None:
    """Raise if importing `name` would not give the folder that is beside `generic`."""
    ours = Path(__file__).parents[2] / name
    spec = PathFinder.find_spec(name)
    if spec is None:  # imported by other means than a folder: then no folder hides it
        return
    origin = spec.origin
    if origin is None or Path(origin).parent.resolve() != ours.resolve():
        raise PackageConflict(
            f"the package {name} is not the one of {_OURS}: {origin or 'it has no __init__.py'} is"
            f" in the way of {ours}; remove it, or reinstall ours:"
            f" pip install --force-reinstall {_OURS}"
        )
