"""Shoots that nobody runs: what is in them, what goes wrong with them, and who brings it there.

`ShootRehearsal` is for extensions that have nothing outside but the shoots. `ShootManager` plays
the resource managers of all shoots of a seed; what they would bring into a shoot is in `Shoots`,
which several seeds share, since a shoot that moves keeps what it has. Nothing here is an API
server: what an object says is not looked at.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from actuator.cluster import Cluster
from actuator.codec import decode
from actuator.errors import Forbidden, Unavailable
from actuator.interface import Client, ExternalResource
from actuator.meta import Object, Raw
from generic.kube.clusters import CLUSTERS
from generic.library.managedresources import ManagedResource, is_healthy
from generic.library.manifests import manifest_of
from generic.testing.rehearsal import Rehearsal, RehearsedShoot
from generic.testing.resourcemanager import ResourceManager


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
    """The resource managers of all shoots of one seed, one round of work at each `poll`.

    A shoot whose force deletion is confirmed counts as taken down: gardenlet does that, whatever
    is in it, and nobody gets to it any more.
    """

    def __init__(self, client: Client, shoots: Shoots) -> None:
        super().__init__(client, class_="")
        self._shoots = shoots
        self._one_round = threading.Lock()

    def poll(self) -> None:
        """One round of work on all Clusters, then on all ManagedResources. Raises ApiError."""
        with self._one_round:
            for raw in self._client.list(CLUSTERS):
                if decode(Cluster, raw).needs_force_deletion:
                    self._shoots.destroy(raw["metadata"]["name"])
            super().poll()

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


class ShootRehearsal(Rehearsal):
    """A rehearsal of an extension that has nothing outside but the shoots.

    Derive from it, and say what the extension's title, CRDs (ManagedResource has to be one of
    them), actuators and manifests are. What breaks is the shoots: their API servers, or deletions
    in them. What is left outside is what is in them.
    """

    region = "eu-1"
    scenarios = {
        "everything-fails": "No API server of a shoot answers any more.",
        "deletion-denied": "A webhook in each shoot denies deletions.",
    }
    shoots_only = True

    def __init__(self) -> None:
        self._shoots = Shoots()
        self._polls: list[Callable[[], None]] = []

    def start(self, directory: Path) -> None:
        """Nothing runs but in the seeds."""

    def stop(self) -> None:
        """Safe to call twice, and without start."""

    def share(self) -> Mapping[str, str]:
        """Managers reach the shoots through their seed alone."""
        return {}

    def other_controllers(self, seed: Client) -> Sequence[Callable[[], None]]:
        """The resource managers of the seed's shoots."""
        self._polls.append(ShootManager(seed, self._shoots).poll)
        return self._polls[-1:]

    def break_outside(self, scenario: str) -> None:
        """Brings the scenario about. Raises KeyError for a name not in `scenarios`."""
        breaks = {
            "everything-fails": self._shoots.take_away,
            "deletion-denied": self._shoots.protect,
        }
        breaks[scenario]()

    def mend_outside(self) -> None:
        """Everything works again; what exists stays."""
        self._shoots.mend()

    def left_outside(self) -> Sequence[ExternalResource]:
        """What is in the shoots, once what was asked for until now has been done there.

        Raises ApiError where a seed cannot be read.
        """
        for poll in self._polls:
            poll()
        return self._shoots.contents()


def extension_object(cls: type[Object], shoot: RehearsedShoot, name: str, spec: Raw) -> Raw:
    """The manifest of an extension object for a rehearsed shoot."""
    wanted = {"type": shoot.type, **spec}
    return manifest_of(cls, name, shoot.technical_id, shoot.labels, spec=wanted)


def _shoot(mr: Raw) -> str:
    return str(mr["metadata"]["namespace"])


def _thing(kind: str, name: str, namespace: str | None) -> Thing:
    return Thing(kind, f"{namespace}/{name}" if namespace else name)
