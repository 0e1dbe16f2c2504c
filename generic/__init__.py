"""The machinery: what makes an Actuator a running extension.

Read in the order of an event: `informer` (watch → `store`), `predicates` (is it worth a look?) and
`watch` (whose change is worth one too), `workqueue`, `controller` (workers), `reconciler` with
`operation` (what to do), `attempt` (what to write), `calls` and `force_delete` (what an actuator
may use), `behaviours` (what some kinds do beyond data). `manager` is the whole: `registry` is what
it was given, `wiring` puts it together, `running` starts and stops it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from generic.finalizers import finalizer
    from generic.manager import Manager
    from generic.options import Options
    from generic.rehearsal import Rehearsal, RehearsedShoot
    from generic.watch import Watch, owns, watches

__all__ = [
    "Manager",
    "Options",
    "Rehearsal",
    "RehearsedShoot",
    "Watch",
    "finalizer",
    "owns",
    "watches",
]

_HOME = {
    "Manager": "generic.manager",
    "Options": "generic.options",
    "Rehearsal": "generic.rehearsal",
    "RehearsedShoot": "generic.rehearsal",
    "Watch": "generic.watch",
    "finalizer": "generic.finalizers",
    "owns": "generic.watch",
    "watches": "generic.watch",
}


def __getattr__(name: str) -> Any:
    """Imports a name on first use: the pytest plugin must not load a Kubernetes client."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)
