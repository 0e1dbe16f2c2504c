"""The program of Gardener: one binary for all its components, built into the cache.

Real: every component is Gardener's own code, at the version that `assets/gardener/go.mod` pins;
`main.go` only chooses one by name. Not here: command lines (garden.py and its neighbours).
"""

import shutil
from pathlib import Path

from generic.library.programs.cache import Progress, cache_directory
from generic.library.programs.errors import EnvtestError
from generic.library.programs.golang import GoModule, cached_programs, required_version
from generic.testing.envtest.binaries import version_flags

BUILD_GIB = 5
"""Free disk space for a build: modules, Go's build cache and the program (measured: 4.0 GiB)."""

_ASSETS = Path(__file__).with_name("assets") / "gardener"
_MODULE = "github.com/gardener/gardener"
_PROGRAM = "gardener"
_GIB = 1 << 30


def gardener_version() -> str:
    """Return the version of Gardener; go.mod is the only place that has it."""
    return required_version(_ASSETS, _MODULE)


def gardener_module() -> GoModule:
    """Return the module of the program."""
    version = gardener_version()
    return GoModule(
        f"gardener-{version}", _ASSETS, {_PROGRAM: "."}, linker_flags=version_flags(version)
    )


def find_gardener(progress: Progress) -> Path:
    """Return the program's path; build it if the cache lacks it.

    Raises EnvtestError with the ways to make the build succeed.
    """
    module = gardener_module()
    try:
        if not (cache_directory() / module.key).is_dir():
            _require_space()
        return cached_programs(module, progress) / _PROGRAM
    except EnvtestError as error:
        raise EnvtestError(
            f"cannot build Gardener {gardener_version()}: {error}\n"
            f"The build needs Go {'.'.join(map(str, module.go_version))} or later, on PATH or from"
            " pip install 'gardener-actuator[envtest]', modules from GOPROXY,"
            f" and {BUILD_GIB} GiB of disk space while it runs."
        ) from error


def _require_space() -> None:
    """Raise EnvtestError if the cache's disk has too little space for a build."""
    folder = cache_directory()
    free = shutil.disk_usage(folder).free
    if free < BUILD_GIB * _GIB:
        raise EnvtestError(
            f"{folder} has {free / _GIB:.1f} GiB of free disk space, the build needs {BUILD_GIB}."
            " Free some, or set ACTUATOR_CACHE to a folder on another disk"
        )
