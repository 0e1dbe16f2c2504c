"""Clusters: embedded clusters that are lent to one test after the other."""

from __future__ import annotations

import signal
from contextlib import suppress
from typing import Any

import pytest

from actuator import Client
from actuator.errors import ApiError, NotFound
from generic.kube.client import connect
from generic.kube.clusters import CLUSTERS, NAMESPACES
from generic.library.managedresources.kind import MANAGED_RESOURCES
from generic.testing.envtest import Environment

__all__ = ["Clusters"]


class Clusters:
    """Lends a cluster to each Environment that starts, for it alone until it stops.
    One with flags of its own has a cluster of its own.

    The objects of the last one are still in it: CRDs, namespaces that are ending, events. But no
    ManagedResource and no Cluster: the simulated controllers of a drill serve each one.
    Between two loans its servers are stopped by a signal: idle ones take a second of CPU a minute.
    """

    def __init__(self) -> None:
        self._free: list[Any] = []

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        """As long as the patch holds, environments borrow."""
        start = Environment.start
        stop = Environment.stop

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
        delete_served_objects(client)
    except ApiError:
        return False
    return True


def delete_served_objects(client: Client) -> None:
    """Delete the objects that the simulated controllers of the next loan would serve."""
    for resource in (MANAGED_RESOURCES, CLUSTERS):
        try:
            found = client.list(resource)
        except NotFound:  # the kind is not installed
            continue
        for left in found:
            key = left["metadata"]["name"], left["metadata"].get("namespace", "")
            with suppress(NotFound):
                client.delete(resource, *key)
                client.patch(resource, *key, {"metadata": {"finalizers": None}})
