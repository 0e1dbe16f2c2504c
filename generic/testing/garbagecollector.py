"""GarbageCollector: that of gardener-resource-manager, simulated for drills and tests.

It deletes labelled Secrets and ConfigMaps of a seed to which no annotation refers. Source:
gardener, `pkg/resourcemanager/controller/garbagecollector`, which spares an object for ten minutes.
"""

import time
from collections.abc import Iterator
from contextlib import suppress

from actuator.errors import Conflict, NotFound
from actuator.interface import CONFIG_MAPS, SECRETS, Client, Resource
from generic.library.lookup import find_all
from generic.library.managedresources.kind import MANAGED_RESOURCES
from generic.library.references import GARBAGE_COLLECTABLE, PREFIX

_KINDS = {"secret": SECRETS, "configmap": CONFIG_MAPS}
_REFERRERS = (
    *(Resource("apps/v1", name) for name in ("deployments", "statefulsets", "daemonsets")),
    *(Resource("batch/v1", name) for name in ("jobs", "cronjobs")),
    Resource("v1", "pods"),
    Resource("monitoring.coreos.com/v1", "prometheuses"),
    MANAGED_RESOURCES,
)
_UNUSED_SECONDS = 5.0
"""Longer than an extension takes from creating a Secret to creating what refers to it."""
Place = tuple[Resource, str, str]


class GarbageCollector:
    """Serves a whole seed; each `poll` is one round of work. `client` is an administrator's."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._unused: dict[str, float] = {}
        """The first round that found an object unused, in monotonic seconds by uid."""

    def poll(self) -> None:
        """Delete objects that all rounds for some seconds found unused. Raises ApiError."""
        selector = f"{GARBAGE_COLLECTABLE}=true"
        now = time.monotonic()
        found: dict[str, Place] = {}
        for resource in _KINDS.values():
            for obj in self._client.list(resource, label_selector=selector):
                meta = obj["metadata"]
                found[meta["uid"]] = (resource, meta["name"], meta["namespace"])
        used = set(self._used()) if found else set()
        unused = {uid: place for uid, place in found.items() if place not in used}
        self._unused = {uid: self._unused.get(uid, now) for uid in unused}
        for uid, place in unused.items():
            if now - self._unused[uid] > _UNUSED_SECONDS:
                with suppress(NotFound, Conflict):  # deleted, or created again
                    self._client.delete(*place, uid=uid)

    def _used(self) -> Iterator[Place]:
        for referrer in _REFERRERS:
            for obj in find_all(self._client, referrer):
                meta = obj["metadata"]
                for key, name in (meta.get("annotations") or {}).items():
                    kind = _KINDS.get(key.removeprefix(PREFIX).partition("-")[0])
                    if key.startswith(PREFIX) and kind is not None:
                        yield kind, name, meta["namespace"]
