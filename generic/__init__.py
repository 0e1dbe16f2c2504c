"""The machinery: what makes an Actuator a running extension.

Read in the order of an event: `informer` (watch → `store`), `predicates` (is it worth a look?),
`workqueue`, `controller` (workers), `reconciler` with `operation` (what to do), `attempt` (what
to write), `calls` and `force_delete` (what an actuator may use). `manager` puts it together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from generic.finalizers import finalizer
    from generic.manager import Manager
    from generic.options import Options
    from generic.rehearsal import Rehearsal, RehearsedShoot

__all__ = ["Manager", "Options", "Rehearsal", "RehearsedShoot", "finalizer"]

_HOME = {
    "Manager": "generic.manager",
    "Options": "generic.options",
    "Rehearsal": "generic.rehearsal",
    "RehearsedShoot": "generic.rehearsal",
    "finalizer": "generic.finalizers",
}


def __getattr__(name: str) -> Any:
    """Imports a name on first use: the pytest plugin must not load a Kubernetes client."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)
