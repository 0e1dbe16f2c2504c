"""The embedded cluster: a real etcd, kube-apiserver and kube-controller-manager.

Read environment.py first (its definition and guarantees), then servers.py (command lines),
binaries.py (source of its programs) and pytest_plugin.py (the fixtures).

The names are imported when they are first used: pytest_plugin.py loads this package in each run of
a project that asks for the fixtures.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from generic.library.programs.errors import (
        BinariesNotFound,
        BuildFailed,
        EnvtestError,
        StartFailed,
    )
    from generic.testing.envtest.access import Access
    from generic.testing.envtest.binaries import Binaries, find_binaries
    from generic.testing.envtest.environment import Environment

__all__ = [
    "Access",
    "Binaries",
    "BinariesNotFound",
    "BuildFailed",
    "Environment",
    "EnvtestError",
    "StartFailed",
    "find_binaries",
]

_MODULES = {
    "Access": "access",
    "Binaries": "binaries",
    "Environment": "environment",
    "find_binaries": "binaries",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = (
        f"{__name__}.{_MODULES[name]}" if name in _MODULES else "generic.library.programs.errors"
    )
    return getattr(import_module(module), name)
