"""Detects packages of other distributions that replaced ours.

PyPI has distributions called `actuator`, `generic` and `extensions`, each with a top-level package
of that name, as ours has. Installed together, one overwrites the files of the other, which causes
an unclear ImportError. Not here: an author's own folders (`actuator.shared_names`).
"""

from importlib import metadata

from actuator.errors import ConfigurationError

_OURS = "gardener-actuator"
_PACKAGES = ("actuator", "generic", "extensions")


def check_packages() -> None:
    """Check that only our distribution has `actuator`, `generic` and `extensions`.

    Raises ConfigurationError, which names the conflicting distributions and the remedy. Reads a few
    folders and imports nothing, so commands can call it at every start.
    """
    if taken := [name for name in _PACKAGES if any(metadata.distributions(name=name))]:
        names = " ".join(taken)
        raise ConfigurationError(
            f"another distribution with a package of the same name is installed with {_OURS}:"
            f" {', '.join(taken)}; uninstall it and reinstall ours: pip uninstall {names}"
            f" && pip install --force-reinstall {_OURS}"
        )
