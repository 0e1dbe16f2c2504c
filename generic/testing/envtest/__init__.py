"""The embedded cluster: a real etcd, kube-apiserver and kube-controller-manager.

Read environment.py first (its definition and guarantees), then servers.py (command lines),
binaries.py (source of its programs) and pytest_plugin.py (the fixtures).

Most names are imported when they are first used: pytest_plugin.py loads this package in each run of
a project that asks for the fixtures.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from generic.library.programs.errors import EnvtestError

if TYPE_CHECKING:
    from generic.testing.envtest.access import Access
    from generic.testing.envtest.binaries import Binaries, find_binaries
    from generic.testing.envtest.environment import Environment

__all__ = [
    "Access",
    "Binaries",
    "Environment",
    "EnvtestError",
    "find_binaries",
]

_MODULES = {
    "Access": "access",
    "Binaries": "binaries",
    "Environment": "environment",
    "find_binaries": "binaries",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
