"""The framework that turns an Actuator into a running extension.

An event goes through the rooms from below: `kube` (watch, cache), `controller` (predicates, queue,
workers), `reconciler` (the decision, the call, the writes). `manager` composes them into a process.
`library` holds building blocks for authors, `testing` rehearsals, `tools` the command line. The
docstring of each room names its first module; docs/architecture.md follows one event.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from generic.controller.watch import Watch, owns, watches
    from generic.kube.finalizers import finalizer
    from generic.manager.manager import Manager
    from generic.manager.options import Options
    from generic.testing.rehearsal import Rehearsal, RehearsedShoot

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
    "Manager": "generic.manager.manager",
    "Options": "generic.manager.options",
    "Rehearsal": "generic.testing.rehearsal",
    "RehearsedShoot": "generic.testing.rehearsal",
    "Watch": "generic.controller.watch",
    "finalizer": "generic.kube.finalizers",
    "owns": "generic.controller.watch",
    "watches": "generic.controller.watch",
}


def __getattr__(name: str) -> Any:
    """Import a name on first use: the pytest plugin must not load a Kubernetes client."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)
