"""The API servers of shoots: a further embedded cluster for each, in drills, `dev` and fixtures.

Several seeds share them, since a migrated shoot keeps its cluster. Not here: shoots without one,
whose contents are only recorded (`generic.testing.drill.shoots`).
"""

import base64
import threading
from collections import defaultdict
from contextlib import ExitStack
from typing import Self

from actuator.cluster import Cluster
from actuator.codec import decode
from actuator.errors import AlreadyExists, ApiError, ConfigurationError, Unavailable
from actuator.interface import SECRETS, SHOOT_ACCESS, Client
from actuator.meta import Raw
from generic.kube.client import HttpClient, connect
from generic.kube.clusters import CLUSTERS
from generic.library.manifests import manifest
from generic.testing.envtest import Environment
from generic.testing.envtest.servers import KillableServer
from generic.testing.landscape import memory
from generic.testing.polling import parallel, serve_each
from generic.testing.resourcemanager import ResourceManager

_AT_ONCE = 3
"""Clusters that start at a time: each of them uses all processors for some seconds."""
SERVER_GIB = 0.35
"""The memory of one cluster."""


def most_servers(limit: int) -> int:
    """Return how many clusters, at most `limit` and at least one, the free memory is enough for."""
    free = memory.available()
    return limit if free is None else max(min(limit, int(free / SERVER_GIB)), 1)


def require_servers(shoots: int) -> None:
    """Raise ConfigurationError without memory for a drill of these shoots, and an invalid one."""
    needed = (shoots + 1) * SERVER_GIB
    free = memory.available()
    if free is not None and free < needed:
        raise ConfigurationError(
            f"the API servers of {shoots} shoots need {needed:.1f} GiB of free memory, "
            f"this machine has {free:.1f}; rehearse fewer shoots, or use a larger machine"
        )


class ShootServers:
    """The clusters of the shoots, by technical ID. Thread-safe. Leaving the context stops all."""

    def __init__(self) -> None:
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._running: dict[str, tuple[Environment, HttpClient]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        with ExitStack() as stack:
            for shoot in [*self._running]:
                stack.callback(self.end, shoot)

    def open(self, shoot: str) -> Environment:
        """Return the cluster of the shoot, which is started if needed. Raises EnvtestError."""
        with self._locks[shoot]:
            if shoot not in self._running:
                environment = Environment()
                environment.start()
                self._running[shoot] = environment, connect(environment.kubeconfig)
            return self._running[shoot][0]

    def client(self, shoot: str) -> HttpClient:
        """Return an administrator's client of the shoot. Raises Unavailable without a cluster."""
        if (found := self._running.get(shoot)) is None:
            raise Unavailable(0, f"shoot {shoot} has no API server")
        return found[1]

    def sleep(self, shoot: str, *, asleep: bool) -> None:
        """Stop the API server, or start it again; its objects are kept. Raises EnvtestError."""
        with self._locks[shoot]:
            if found := self._running.get(shoot):
                found[0].stop_apiserver() if asleep else found[0].restart(KillableServer.APISERVER)

    def end(self, shoot: str) -> None:
        """Stop the cluster of the shoot, if it has one, and remove its contents."""
        with self._locks[shoot]:
            if found := self._running.pop(shoot, None):
                found[0].stop()


class ServedShoots(ResourceManager):
    """gardenlet's work for the API servers of a seed's shoots, and their resource managers.

    Each `poll` is one round. A new Cluster gets an API server, and the Secret `gardener-internal`
    for `ctx.shoot`. The server sleeps while the shoot hibernates, survives a migration, and ends
    when a force deletion is confirmed, or with the Cluster.
    """

    def __init__(self, client: Client, servers: ShootServers) -> None:
        super().__init__(client, class_="")
        self._servers = servers
        self._known: dict[str, str] = {}
        """The uids of the Clusters whose shoots have an API server, by technical ID."""
        self._moving: set[str] = set()
        self._asleep: set[str] = set()

    def poll(self) -> None:
        """Do one round of work on Clusters, then on ManagedResources. Raises ApiError."""
        clusters: dict[str, Cluster] = {}

        def read(raw: Raw) -> None:
            clusters[raw["metadata"]["name"]] = decode(Cluster, raw)

        listed = self._client.list(CLUSTERS)
        serve_each(listed, read, self._unread)
        forced = {name for name, found in clusters.items() if found.needs_force_deletion}
        gone = self._known.keys() - {raw["metadata"]["name"] for raw in listed}
        for name in gone:
            del self._known[name]
        for name in forced | (gone - self._moving):
            self._servers.end(name)
        self._moving = {name for name, found in clusters.items() if found.is_migrating}
        present = [clusters[name] for name in clusters.keys() - forced]
        parallel(present, self._serve_cluster, at_once=_AT_ONCE)
        super().poll()

    def _serve_cluster(self, cluster: Cluster) -> None:
        name = cluster.metadata.name
        if self._known.get(name) != cluster.metadata.uid:
            self._equip(cluster)
        asleep = cluster.is_hibernated and not cluster.is_deleting
        if asleep != (name in self._asleep):
            self._servers.sleep(name, asleep=asleep)
            self._asleep ^= {name}

    def _equip(self, cluster: Cluster) -> None:
        """Start the API server, and write its kubeconfig as gardenlet does."""
        name = cluster.metadata.name
        kubeconfig = self._servers.open(name).kubeconfig.read_bytes()
        data = {"kubeconfig": base64.b64encode(kubeconfig).decode()}
        secret = manifest("v1", "Secret", SHOOT_ACCESS.names[0], name, data=data)
        try:
            self._client.create(SECRETS, secret)
        except AlreadyExists:
            """It was restored."""
        except ApiError:
            return  # the namespace does not exist yet, or any longer; retried in the next round
        self._known[name] = cluster.metadata.uid

    def _serve(self, mr: Raw) -> None:
        """Skip shoots that hibernate: they have no resource manager."""
        if mr["metadata"]["namespace"] not in self._asleep:
            super()._serve(mr)

    def _target(self, mr: Raw) -> Client:
        return self._servers.client(mr["metadata"]["namespace"])
