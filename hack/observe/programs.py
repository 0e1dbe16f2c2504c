"""Finds prometheus and promtool on PATH, else builds them from their Go module into the cache."""

import shutil
from pathlib import Path
from typing import Literal

from generic.library.programs.cache import Progress
from generic.library.programs.golang import GoModule, cached_programs, required_version

_ASSETS = Path(__file__).parent / "assets" / "prometheus"
_MODULE = "github.com/prometheus/prometheus"

Name = Literal["prometheus", "promtool"]


def find_program(name: Name, progress: Progress) -> Path:
    """Return its path. Raises EnvtestError if it is missing and cannot be built.

    It is built at the version in go.mod, without service discovery of any cloud. Each program is
    built alone: tests of rules need promtool and must not wait for the other.
    """
    on_path = shutil.which(name)
    if on_path is not None:
        return Path(on_path).absolute()
    version = required_version(_ASSETS, _MODULE)
    programs = {str(name): f"{_MODULE}/cmd/{name}"}
    module = GoModule(f"{name}-{version}", _ASSETS, programs, tags=("remove_all_sd",))
    return cached_programs(module, progress) / name
