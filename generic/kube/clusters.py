"""Clusters: answers about one namespace from the watched Cluster resources.

Guarantee: a force deletion seen once stays in effect while this process lives, no other Cluster
takes the name and no older state of it is restored (gardenlet forbids removing the annotation, and
deletes the Cluster possibly before the last extension objects). The 10,000 most recently queried
forced namespaces are kept: an object under deletion queries at every attempt, so only deleted ones
are evicted.
"""

import time
from collections import OrderedDict
from contextlib import suppress

import attrs

from actuator.cluster import Cluster, ClusterState, Verdict
from actuator.codec import decode_json
from actuator.errors import ApiError, DecodeError, NotFound
from actuator.interface import Client, Resource
from actuator.meta import ClusterNeed, Kind, ObjectMeta
from generic.kube.headers import ClusterHeader, Event, Request
from generic.kube.store import Store

CLUSTERS = Resource(Cluster.KIND.api_version, Cluster.KIND.plural, namespaced=False)
NAMESPACES = Resource("v1", "namespaces", namespaced=False)
_NOT_NEEDED = Verdict(ClusterState.NOT_NEEDED)
REMEMBERED = 10_000
_NO_SHOOT_SECONDS = 60.0
"""The label is set when a namespace is created, so the answer "no shoot" may be cached."""


class Clusters:
    """The Cluster of a namespace, and its verdict."""

    def __init__(self, store: Store[ClusterHeader], client: Client) -> None:
        self._store = store
        self._client = client
        self._forced: OrderedDict[str, str] = OrderedDict()  # by name: its forced Cluster's uid
        self._no_shoots: dict[str, float] = {}  # namespaces without a shoot, and since when known

    def on_event(self, event: Event[ClusterHeader]) -> bool:
        """Whether this event changes the work for the objects of the namespace."""
        old = event.old
        new = event.new
        if new is None:
            return False
        name = event.request.name
        if event.went_back:
            self._forced.pop(name, None)
        if new.verdict.forced:
            self._forced[name] = new.uid
            self._forced.move_to_end(name)
            if len(self._forced) > REMEMBERED:
                self._forced.popitem(last=False)
        elif self._forced.get(name, new.uid) != new.uid:
            del self._forced[name]
        return old is None or old.verdict != new.verdict

    def verdict(self, kind: Kind, namespace: str) -> Verdict:
        """Return the cached verdict on the namespace's Cluster for `kind`; sends no request."""
        if kind.cluster is ClusterNeed.NEVER:
            return _NOT_NEEDED
        entry = self._store.get(Request("", namespace))
        if entry is None and self._is_known_as_no_shoot(kind, namespace):
            return _NOT_NEEDED
        verdict = entry.header.verdict if entry else Verdict()
        if namespace in self._forced and not verdict.forced:
            with suppress(KeyError):  # the informer's thread has just removed it
                self._forced.move_to_end(namespace)
            return attrs.evolve(verdict, forced=True)
        return verdict

    def resolve(self, kind: Kind, namespace: str) -> Verdict:
        """Return the verdict; without a Cluster, look up whether the namespace belongs to a shoot.

        For workers only: it may send a request.
        """
        known = kind.cluster in (ClusterNeed.NEVER, ClusterNeed.REQUIRED)
        if not known and self._store.get(Request("", namespace)) is None:
            self._look_up(kind, namespace)
        return self.verdict(kind, namespace)

    def cluster(self, namespace: str) -> Cluster:
        """Return the Cluster; without a readable one, a Cluster with only its name."""
        entry = self._store.get(Request("", namespace))
        if entry is not None:
            try:
                return decode_json(Cluster, entry.raw)
            except DecodeError:
                pass  # the verdict already states it
        return Cluster(metadata=ObjectMeta(name=namespace))

    def _look_up(self, kind: Kind, namespace: str) -> None:
        if self._is_known_as_no_shoot(kind, namespace):
            return
        try:
            labels = self._client.get(NAMESPACES, namespace)["metadata"].get("labels") or {}
        except NotFound:
            labels = {}
        except ApiError:
            return  # unknown: waiting for a Cluster is safe
        if labels.get("gardener.cloud/role") == "shoot":
            return
        if len(self._no_shoots) >= REMEMBERED:
            self._no_shoots.clear()  # each is looked up once more
        self._no_shoots[namespace] = time.monotonic()

    def _is_known_as_no_shoot(self, kind: Kind, namespace: str) -> bool:
        since = self._no_shoots.get(namespace)
        fresh = since is not None and time.monotonic() - since < _NO_SHOOT_SECONDS
        return fresh and kind.cluster is not ClusterNeed.REQUIRED
