"""Clusters: embedded clusters that are lent to one test after the other."""

from __future__ import annotations

import signal
from contextlib import suppress
from typing import Any

import pytest

from actuator import Client
from actuator.errors import ApiError, NotFound
from generic.kube.client import connect
from generic.library.managedresources import MANAGED_RESOURCES
from generic.testing.envtest import Environment
from generic.testing.garden import NAMESPACES

__all__ = ["Clusters"]


class Clusters:
    """Lends a cluster to each Environment that starts; it is nobody else's until that stops.
    One with flags of its own has a cluster of its own.

    What the last one left is still in it: CRDs, namespaces that are ending, events. But no
    ManagedResource: the simulated resource managers of all drills in a cluster serve each one.
    Between two loans its servers are stopped by a signal: idle ones take a second of CPU a minute.
    """

    def __init__(self) -> None:
        self._free: list[Any] = []

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        """As long as the patch holds, environments borrow."""
        start, stop = Environment.start, Environment.stop

        def borrow(environment: Environment) -> None:
            plain = environment._running is None and not environment._flags
            if plain and self._free:
                environment._running = self._free.pop()
                signal_all(environment._running, signal.SIGCONT)
            else:
                start(environment)

        def give_back(environment: Environment) -> None:
            started = environment._running is not None and not environment._flags
            if started and is_well(environment):
                signal_all(environment._running, signal.SIGSTOP)
                self._free.append(environment._running)
                environment._running = None
            stop(environment)

        patch.setattr(Environment, "start", borrow)
        patch.setattr(Environment, "stop", give_back)

    def close(self) -> None:
        """Ends those that are free."""
        for running in self._free:
            last = Environment()
            last._running = running
            last.stop()


def signal_all(running: Any, number: signal.Signals) -> None:
    """Send a signal to its servers: etcd runs whenever one that asks it does."""
    servers = list(running.processes._started.values())
    for process in servers if number is signal.SIGCONT else reversed(servers):
        process.send_signal(number)


def is_well(environment: Environment) -> bool:
    """Whether its API server answers from etcd."""
    client = connect(environment.kubeconfig).within(5)
    try:
        client.list(NAMESPACES)
        delete_managed_resources(client)
    except ApiError:
        return False
    return True


def delete_managed_resources(client: Client) -> None:
    try:
        found = client.list(MANAGED_RESOURCES)
    except NotFound:  # the kind is not installed
        return
    for left in found:
        key = left["metadata"]["name"], left["metadata"]["namespace"]
        with suppress(NotFound):
            client.delete(MANAGED_RESOURCES, *key)
            client.patch(MANAGED_RESOURCES, *key, {"metadata": {"finalizers": None}})
