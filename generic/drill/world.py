"""The world of a drill: a seed, an outside, a manager; opened in order, closed whatever happens.

Here on an embedded cluster, where everything is ours; for seeds that are not see `foreign`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from actuator.interface import Actuator, object_class
from actuator.meta import Kind
from generic.client import HttpClient
from generic.drill.breaks import Break
from generic.drill.names import Names
from generic.drill.seeds import embedded_seed
from generic.manager import Manager
from generic.options import Options
from generic.rehearsal import Together

__all__ = ["World", "embedded_world", "kinds_of", "manager_for", "outside"]


@attrs.frozen(kw_only=True)
class World:
    """Where a drill takes place."""

    names: Names
    admin: HttpClient
    manager: Manager
    actuators: Sequence[Actuator[Any]]

    @property
    def kinds(self) -> list[Kind]:
        """The kinds that are rehearsed."""
        return kinds_of(self.actuators)


def kinds_of(actuators: Sequence[Actuator[Any]]) -> list[Kind]:
    """Their kinds, each with the finalizer that its actuator uses."""
    kinds = [(actuator, object_class(actuator).KIND) for actuator in actuators]
    return [attrs.evolve(kind, finalizer=one.finalizer or kind.finalizer) for one, kind in kinds]


@contextmanager
def outside(rehearsal: Together, say: Callable[[str], None]) -> Iterator[None]:
    """The outside of a rehearsal, running."""
    with tempfile.TemporaryDirectory(prefix="drill-") as directory:
        try:
            say(f"Starting the outside: {rehearsal.title}")
            rehearsal.start(Path(directory))
            yield
        finally:
            rehearsal.stop()


@contextmanager
def embedded_world(
    rehearsal: Together, broken: Break, say: Callable[[str], None]
) -> Iterator[World]:
    """A world with a manager that is about to start. Raises ActuatorError or ApiError."""
    names = Names()
    with outside(rehearsal, say):
        actuators = [broken.actuator(actuator) for actuator in rehearsal.actuators()]
        say("Starting the embedded cluster: etcd, kube-apiserver, kube-controller-manager")
        with embedded_seed(rehearsal, say) as seed:
            manager = manager_for(actuators, names, Options(), broken)
            mine = seed.admit(manager, names.type)  # never as administrator
            manager.options = attrs.evolve(manager.options, kubeconfig=mine)
            try:
                yield World(names=names, admin=seed.admin, manager=manager, actuators=actuators)
            finally:
                manager.stop()


def manager_for(
    actuators: Sequence[Actuator[Any]], names: Names, options: Options, broken: Break
) -> Manager:
    """A manager for the objects of this drill; it listens nowhere and stops soon."""
    options = attrs.evolve(
        options,
        metrics_bind_address="0",
        health_bind_address="0",
        shutdown_timeout=3.0,
        outcome_events="all",
    )
    manager = Manager(options, intercept=broken.client)
    for actuator in actuators:
        manager.add(actuator, type=names.type)
    return manager
