"""The Go programs that only tests run. `hack.prepare` builds them, because a build with an empty
cache takes longer than a test may.
"""

from __future__ import annotations

from pathlib import Path

from generic.library.programs.cache import Progress
from generic.library.programs.golang import GoModule, cached_programs, required_version

__all__ = ["PROGRAMS", "build_library", "build_mysql_simulator", "build_reader", "build_registry"]

_HERE = Path(__file__).parents[2]
_REGISTRY = "github.com/distribution/distribution/v3"


def build_reader(progress: Progress) -> Path:
    """The program that reads kubeconfigs as client-go does, built into the cache if not there."""
    return _build_own("read", _HERE / "adversary" / "gokubeconfig", progress)


def build_mysql_simulator(progress: Progress) -> Path:
    """The simulator of MySQL, built into the cache if not there."""
    return _build_own("mysqlserver", _HERE / "e2e" / "externaldatabase" / "mysqlserver", progress)


def build_registry(progress: Progress) -> Path:
    """A real OCI registry, built into the cache if not there."""
    folder = _HERE / "e2e" / "helmreleaseproxy" / "registry"
    name = f"registry-{required_version(folder, _REGISTRY)}"
    module = GoModule(name, folder, {"registry": f"{_REGISTRY}/cmd/registry"})
    return cached_programs(module, progress) / "registry"


def build_library(progress: Progress) -> Path:
    """The extension on Gardener's Go library, built into the cache if not there."""
    return _build_own("golibrary", _HERE / "api" / "generic" / "golibrary", progress)


PROGRAMS = (build_reader, build_mysql_simulator, build_registry, build_library)


def _build_own(program: str, folder: Path, progress: Progress) -> Path:
    """Build the program in the folder's main.go."""
    return cached_programs(GoModule(folder.name, folder, {program: "."}), progress) / program
