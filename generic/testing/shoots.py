"""The contents of simulated shoots without an API server, and their resource managers.

Several seeds share a `Shoots`, since a migrated shoot keeps its objects. The content of objects is
ignored. Not here: shoots with an API server (`generic.testing.shootapi`).
"""

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
from generic.testing.polling import serve_each
from generic.testing.resourcemanager import ResourceManager

AWAY = "everything-fails"
DENIED = "deletion-denied"


@attrs.frozen
class ShootObject:
    """An object in a shoot; `name` is NAMESPACE/NAME for a namespaced object."""

    kind: str
    name: str


class Shoots:
    """All shoots, by the name of their namespace in a seed. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._things: defaultdict[str, set[ShootObject]] = defaultdict(set)
        self._destroyed: set[str] = set()
        self._scenario = ""

    def fail(self, scenario: str) -> None:
        """Let each shoot fail as the scenario of `ShootRehearsal` says; "": not any more."""
        self._scenario = scenario

    def destroy(self, shoot: str) -> None:
        """Remove the shoot and all its objects."""
        with self._lock:
            self._destroyed.add(shoot)
            self._things.pop(shoot, None)

    def create(self, shoot: str) -> None:
        """Let an empty shoot answer that has the name of a removed one."""
        with self._lock:
            self._destroyed.discard(shoot)

    def put(self, shoot: str, thing: ShootObject) -> None:
        """Add an object. Raises Unavailable."""
        with self._lock:
            self._check_answers(shoot)
            self._things[shoot].add(thing)

    def take(self, shoot: str, thing: ShootObject) -> None:
        """Remove an object if it exists. Raises Unavailable and Forbidden."""
        with self._lock:
            self._check_answers(shoot)
            if self._scenario == DENIED and thing in self._things[shoot]:
                raise Forbidden(403, f"a webhook in the shoot denies to delete {thing.name}")
            self._things[shoot].discard(thing)

    def contents(self) -> list[ExternalResource]:
        """Return the objects of all shoots."""
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
        if self._scenario == AWAY or shoot in self._destroyed:
            raise Unavailable(0, "the shoot's API server does not answer")


class ShootManager(ResourceManager):
    """The resource managers of all shoots of one seed; each `poll` is one round of work.

    A shoot with a confirmed force deletion counts as removed: gardenlet removes it with its
    contents, and it is no longer reachable.
    """

    def __init__(self, client: Client, shoots: Shoots) -> None:
        super().__init__(client, class_="")
        self._shoots = shoots
        self._forced: set[str] = set()
        self._one_round = threading.Lock()

    def poll(self) -> None:
        """Do one round of work on Clusters, then on ManagedResources. Raises ApiError."""
        with self._one_round:
            serve_each(self._client.list(CLUSTERS), self._serve_shoot, self._unread)
            super().poll()

    def _serve_shoot(self, raw: Raw) -> None:
        name = raw["metadata"]["name"]
        if decode(Cluster, raw).needs_force_deletion:
            self._shoots.destroy(name)
            self._forced.add(name)
        elif name in self._forced:  # a confirmation is final: it is another shoot
            self._shoots.create(name)
            self._forced.remove(name)

    def _serve(self, mr: Raw) -> None:
        """Skip healthy ManagedResources: no other client changes objects in the shoots."""
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


def _thing(kind: str, name: str, namespace: str | None) -> ShootObject:
    return ShootObject(kind, f"{namespace}/{name}" if namespace else name)
