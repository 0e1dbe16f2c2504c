"""Finds the programs of monitoring on PATH, else builds them from Go modules into the cache."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from attrs import frozen

from generic.library.programs.cache import Progress
from generic.library.programs.golang import GoModule, cached_programs, required_version

_ASSETS = Path(__file__).parent / "assets"

Name = Literal["prometheus", "promtool", "alertmanager", "prometheus-operator"]

OBSERVING: Sequence[Name] = ("prometheus", "prometheus-operator", "alertmanager")
"""The programs of `make observe`."""


@frozen
class _Source:
    """Where a program comes from."""

    folder: str
    """The folder of its go.mod, below `assets`."""
    module: str
    commands: Mapping[str, str]
    """The packages below `cmd`, by program; those that are built with the program, too."""
    tags: tuple[str, ...] = ()


_PROMETHEUS = "github.com/prometheus/prometheus"
_NO_CLOUDS = ("remove_all_sd",)
"""Without service discovery of any cloud."""
_SOURCES: Mapping[Name, _Source] = {
    # With a promtool that knows the service discovery of Kubernetes.
    "prometheus": _Source(
        "prometheus",
        _PROMETHEUS,
        {"prometheus": "prometheus", "promtool": "promtool"},
        (*_NO_CLOUDS, "enable_kubernetes_sd"),
    ),
    "promtool": _Source("prometheus", _PROMETHEUS, {"promtool": "promtool"}, _NO_CLOUDS),
    "alertmanager": _Source(
        "alertmanager", "github.com/prometheus/alertmanager", {"alertmanager": "alertmanager"}
    ),
    "prometheus-operator": _Source(
        "operator",
        "github.com/prometheus-operator/prometheus-operator",
        {"prometheus-operator": "operator"},
    ),
}


def find_program(name: Name, progress: Progress) -> Path:
    """Return its path. Raises EnvtestError if it is missing and cannot be built.

    It is built at the version in go.mod. promtool is also built alone: rules need it, and
    their tests do not wait for the others.
    """
    on_path = shutil.which(name)
    if on_path is not None:
        return Path(on_path).absolute()
    source = _SOURCES[name]
    folder = _ASSETS / source.folder
    version = required_version(folder, source.module)
    programs = {key: f"{source.module}/cmd/{value}" for key, value in source.commands.items()}
    module = GoModule(f"{name}-{version}", folder, programs, tags=source.tags)
    return cached_programs(module, progress) / name
