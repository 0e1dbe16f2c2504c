"""Detects packages of other distributions that took the place of ours.

PyPI has distributions called `actuator`, `generic` and `extensions`, each with a top-level package
of that name, as ours has. Installed beside us one overwrites the other's files, and what follows is
an ImportError that explains nothing. An author's own folders are `actuator.shared_names`' business.
"""

from collections.abc import Iterator
from importlib import metadata

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


def _conflicts() -> Iterator[str]:
    for name in _PACKAGES:
        if next(iter(metadata.distributions(name=name)), None) is not None:
            yield name
