"""The driver's half of the API: makes objects, asks for things, and sees what becomes of them.

Completion is seen through one watch, never by polling, so that driving costs both sides the same.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TypeVar

import attrs

from actuator.cluster import FORCE_DELETION
from actuator.errors import ApiError
from actuator.interface import Resource, resource_of
from actuator.meta import Raw
from actuator.v1alpha1 import Cluster, Infrastructure
from generic.controller.predicates import OPERATION, TIMESTAMP
from generic.kube.client import HttpClient, path_of
from generic.kube.crds import crd
from generic.reconciler.orphans import ORPHANS, Orphan
from generic.reconciler.seed_objects import CONFIRM_DELETION

__all__ = ["Key", "Watch", "World"]

T = TypeVar("T")
Key = tuple[str, str]
"""Namespace and name of an Infrastructure."""

_CRDS = Resource("apiextensions.k8s.io/v1", "customresourcedefinitions", namespaced=False)
_NAMESPACES = Resource("v1", "namespaces", namespaced=False)
_CLUSTERS = resource_of(Cluster.KIND)
_INFRASTRUCTURES = resource_of(Infrastructure.KIND)
_THREADS = 8
_TIMEOUT = 200.0
_PADDING = "x" * 2000
"""Brings a Cluster and an Infrastructure to some 3 KB, as they are in landscapes."""
_REQUESTS = re.compile(
    r'^apiserver_request_total\{.*resource="infrastructures".*verb="(?!LIST|WATCH)\w+".*\} (\S+)$',
    re.MULTILINE,
)


class Watch:
    """What is known of the Infrastructures, and when the last of it came."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._succeeded: set[Key] = set()
        self._gone: set[Key] = set()
        self._version = ""

    def wait_succeeded(self, keys: Sequence[Key]) -> float:
        """The monotonic time when the last of these was Succeeded. Raises TimeoutError."""
        return self._wait(self._succeeded, set(keys), "succeeded")

    def wait_gone(self, keys: Sequence[Key]) -> float:
        """The monotonic time when the last of these was gone. Raises TimeoutError."""
        return self._wait(self._gone, set(keys), "gone")

    def follow(self, client: HttpClient) -> None:
        """Watches for ever: the API server cuts the watches of a CRD some seconds after its start.

        Each stream goes on where the last one ended.
        """
        while True:
            query = {"watch": "true", "resourceVersion": self._version}
            try:
                path = path_of(_INFRASTRUCTURES)
                with client.stream(path, query, read_timeout=_TIMEOUT) as lines:
                    for line in lines:
                        self._see(json.loads(line))
            except ApiError:  # what waits for an outcome says so when it has waited too long
                time.sleep(0.1)

    def _see(self, event: Raw) -> None:
        meta, status = event["object"]["metadata"], event["object"].get("status") or {}
        key = (meta["namespace"], meta["name"])
        state = (status.get("lastOperation") or {}).get("state")
        requested = OPERATION in (meta.get("annotations") or {})
        self._version = meta["resourceVersion"]
        with self._changed:
            if event["type"] == "DELETED":
                self._gone.add(key)
            elif state == "Succeeded" and not requested:
                self._succeeded.add(key)
            self._changed.notify_all()

    def _wait(self, seen: set[Key], wanted: set[Key], what: str) -> float:
        with self._changed:
            done = self._changed.wait_for(lambda: wanted <= seen, _TIMEOUT)
            if not done:
                raise TimeoutError(f"{len(wanted - seen)} of {len(wanted)} objects are not {what}")
            return time.monotonic()


@attrs.frozen
class World:
    """The API server, with administrator rights."""

    client: HttpClient

    def install(self) -> None:
        """Creates the CRDs, and waits until they are served."""
        for cls in (Infrastructure, Cluster, Orphan):
            self.client.create(_CRDS, crd(cls))
        end = time.monotonic() + 30
        while True:
            try:
                for resource in (_INFRASTRUCTURES, _CLUSTERS, ORPHANS):
                    self.client.list(resource)
                return
            except ApiError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)

    def create_shoots(self, names: Sequence[str]) -> None:
        """Creates the namespaces and Clusters of shoots."""
        self._each(self._create_shoot, names)

    def create(self, keys: Sequence[Key]) -> None:
        """Creates Infrastructures, and asks to reconcile them, as gardenlet does."""
        self._each(self._create, keys)

    def confirm(self, keys: Sequence[Key]) -> None:
        """Confirms the deletion of Infrastructures."""
        self._each(self._confirm, keys)

    def force(self, names: Sequence[str]) -> None:
        """Puts the force deletion of shoots into their Clusters."""
        patch = {"spec": {"shoot": {"metadata": {"annotations": {FORCE_DELETION: "true"}}}}}
        self._each(lambda name: self.client.patch(_CLUSTERS, name, "", patch), names)

    def delete(self, keys: Sequence[Key]) -> None:
        """Deletes Infrastructures."""
        self._each(lambda key: self.client.delete(_INFRASTRUCTURES, key[1], key[0]), keys)

    def requests(self) -> int:
        """Requests on infrastructures so far, by anybody, lists and watches excluded."""
        text = self.client.send("GET", "/metrics").decode()
        return sum(int(float(count)) for count in _REQUESTS.findall(text))

    def watch(self) -> Watch:
        """Watches all Infrastructures from now on, in a thread that ends with the process."""
        watch = Watch()
        threading.Thread(target=watch.follow, args=(self.client,), daemon=True).start()
        return watch

    def _each(self, do: Callable[[T], object], items: Sequence[T]) -> None:
        with ThreadPoolExecutor(_THREADS) as pool:
            for _ in pool.map(do, items):
                pass

    def _create_shoot(self, name: str) -> None:
        labels = {"gardener.cloud/role": "shoot"}
        namespace = {"metadata": {"name": name, "labels": labels}}
        self.client.create(_NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", **namespace})
        self.client.create(_CLUSTERS, _cluster(name))

    def _create(self, key: Key) -> None:
        self.client.create(_INFRASTRUCTURES, _infrastructure(key))

    def _confirm(self, key: Key) -> None:
        patch = {"metadata": {"annotations": {CONFIRM_DELETION: "true"}}}
        self.client.patch(_INFRASTRUCTURES, key[1], key[0], patch)


def _cluster(name: str) -> Raw:
    core = "core.gardener.cloud/v1beta1"
    shoot = {
        "apiVersion": core,
        "kind": "Shoot",
        "metadata": {"name": name, "namespace": "garden-bench"},
        "spec": {"region": "eu-west-1", "provider": {"type": "bench", "workers": [_PADDING]}},
        "status": {"technicalID": name, "lastOperation": {"type": "Create", "state": "Processing"}},
    }
    return {
        "apiVersion": Cluster.KIND.api_version,
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": {
            "cloudProfile": {"apiVersion": core, "kind": "CloudProfile"},
            "seed": {"apiVersion": core, "kind": "Seed"},
            "shoot": shoot,
        },
    }


def _infrastructure(key: Key) -> Raw:
    namespace, name = key
    asked = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    return {
        "apiVersion": Infrastructure.KIND.api_version,
        "kind": "Infrastructure",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": {OPERATION: "reconcile", TIMESTAMP: asked},
        },
        "spec": {
            "type": "bench",
            "region": "eu-west-1",
            "secretRef": {"name": "cloudprovider", "namespace": namespace},
            "providerConfig": {"apiVersion": "bench/v1", "kind": "Config", "zones": [_PADDING]},
        },
    }
