"""Shoots that nobody runs: what is in them, what goes wrong with them, and who brings it there.

For rehearsals of extensions that have nothing outside but the shoots. `ShootManager` plays the
resource managers of all shoots of a seed; what they would bring into a shoot is noted in `Shoots`,
which several seeds share, since a shoot that moves keeps what it has. Nothing here is an API
server: what an object says is not looked at.
"""

from __future__ import annotations

import threading
from collections import defaultdict

import attrs

from actuator.cluster import Cluster
from actuator.codec import decode
from actuator.errors import Forbidden, Unavailable
from actuator.interface import Client, ExternalResource
from actuator.meta import Raw
from generic.kube.clusters import CLUSTERS
from generic.library.managedresources import ManagedResource, is_healthy
from generic.testing.resourcemanager import ResourceManager

__all__ = ["ShootManager", "Shoots", "Thing"]


@attrs.frozen
class Thing:
    """An object in a shoot; `name` has its namespace in front, if it lives in one."""

    kind: str
    name: str


class Shoots:
    """All shoots, by the name of their namespace in a seed. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._things: defaultdict[str, set[Thing]] = defaultdict(set)
        self._destroyed: set[str] = set()
        self._away = self._protected = False

    def take_away(self) -> None:
        """From now on no API server of a shoot answers."""
        self._away = True

    def protect(self) -> None:
        """From now on each shoot denies deletions."""
        self._protected = True

    def mend(self) -> None:
        """Everything works again."""
        self._away = self._protected = False

    def destroy(self, shoot: str) -> None:
        """The shoot is taken down, with all that is in it."""
        with self._lock:
            self._destroyed.add(shoot)
            self._things.pop(shoot, None)

    def put(self, shoot: str, thing: Thing) -> None:
        """Afterwards it is there. Raises Unavailable."""
        with self._lock:
            self._check_answers(shoot)
            self._things[shoot].add(thing)

    def take(self, shoot: str, thing: Thing) -> None:
        """Afterwards it is not there. Raises Unavailable and Forbidden."""
        with self._lock:
            self._check_answers(shoot)
            if self._protected and thing in self._things[shoot]:
                raise Forbidden(403, f"a webhook in the shoot denies to delete {thing.name}")
            self._things[shoot].discard(thing)

    def contents(self) -> list[ExternalResource]:
        """All that is in all shoots."""
        with self._lock:
            return [
                ExternalResource(
                    type=thing.kind,
                    id=f"{shoot}/{thing.name}",
                    tags={"shoot": shoot, "object": thing.name},
                )
                for shoot, things in self._things.items()
                for thing in sorted(things, key=attrs.astuple)
            ]

    def _check_answers(self, shoot: str) -> None:
        if self._away or shoot in self._destroyed:
            raise Unavailable(0, "the shoot's API server does not answer")


class ShootManager(ResourceManager):
    """The resource managers of all shoots of one seed, look by look (`generic.testing.looking`).

    A shoot whose force deletion is confirmed counts as taken down: gardenlet does that, whatever
    is in it, and nobody gets to it any more.
    """

    def __init__(self, client: Client, shoots: Shoots) -> None:
        super().__init__(client, class_="")
        self._shoots = shoots
        self._looking = threading.Lock()

    def look(self) -> None:
        """One look at all Clusters, then at all ManagedResources. Raises ApiError."""
        with self._looking:
            for raw in self._client.list(CLUSTERS):
                if decode(Cluster, raw).needs_force_deletion:
                    self._shoots.destroy(raw["metadata"]["name"])
            super().look()

    def _serve(self, mr: Raw) -> None:
        """What is there stays: nobody else is in the shoots who could change it."""
        managed = decode(ManagedResource, mr)
        if managed.metadata.deletion_timestamp is not None or not is_healthy(managed):
            super()._serve(mr)

    def _put(self, mr: Raw, obj: Raw) -> None:
        meta = obj["metadata"]
        self._shoots.put(_shoot(mr), _thing(obj["kind"], meta["name"], meta.get("namespace")))

    def _take(self, mr: Raw, ref: Raw) -> bool:
        self._shoots.take(_shoot(mr), _thing(ref["kind"], ref["name"], ref.get("namespace")))
        return True


def _shoot(mr: Raw) -> str:
    return str(mr["metadata"]["namespace"])


def _thing(kind: str, name: str, namespace: str | None) -> Thing:
    return Thing(kind, f"{namespace}/{name}" if namespace else name)
