"""The benchmark's driver: creates objects, requests operations, and observes the outcomes.

It observes outcomes through one watch, never by polling: its load is equal for both sides, and
small, since it decodes headers only.
"""

import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from actuator.cluster import FORCE_DELETION
from actuator.errors import ApiError
from actuator.interface import resource_of
from actuator.meta import Raw
from actuator.v1alpha1 import Cluster, Infrastructure
from generic.controller.predicates import OPERATION
from generic.kube.client import HttpClient, path_of
from generic.kube.documents import Document, read_event
from generic.kube.headers import header
from generic.reconciler.orphans import Orphan
from generic.reconciler.stripping import CONFIRM_DELETION
from generic.testing.garden import Garden, Shoot
from generic.testing.polling import parallel
from generic.testing.seed import install_kinds
from hack.objects import infrastructure

Key = tuple[str, str]
"""Namespace and name of an Infrastructure."""

_CLUSTERS = resource_of(Cluster.KIND)
_INFRASTRUCTURES = resource_of(Infrastructure.KIND)
_THREADS = 8
_TIMEOUT = 200.0
_PADDING = "x" * 2000
"""Pads a Cluster and an Infrastructure to some 3 KB, as in real landscapes."""
_REQUESTS = re.compile(
    r'^apiserver_request_total\{.*resource="infrastructures".*verb="(?!LIST|WATCH)\w+".*\} (\S+)$',
    re.MULTILINE,
)


class Watch:
    """The known states of Infrastructures."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._succeeded: set[Key] = set()
        self._gone: set[Key] = set()
        self._version = ""

    def wait_succeeded(self, keys: Sequence[Key]) -> float:
        """Return the monotonic time when the last of these was Succeeded. Raises TimeoutError."""
        return self._wait(self._succeeded, set(keys), "succeeded")

    def wait_gone(self, keys: Sequence[Key]) -> float:
        """Return the monotonic time when the last of these was deleted. Raises TimeoutError."""
        return self._wait(self._gone, set(keys), "gone")

    def follow(self, client: HttpClient) -> None:
        """Watch forever: the API server ends the watches of a CRD some seconds after its start.

        Each stream continues where the last one ended.
        """
        while True:
            query = {"watch": "true", "resourceVersion": self._version}
            try:
                path = path_of(_INFRASTRUCTURES)
                with client.stream(path, query, read_timeout=_TIMEOUT) as lines:
                    for line in lines:
                        self._see(*read_event(line))
            except ApiError:  # `_wait` raises TimeoutError if this persists
                time.sleep(0.1)

    def _see(self, event: str, document: Document) -> None:
        seen = header(document.fields)
        self._version = str(seen.resource_version)
        with self._changed:
            if event == "DELETED":
                self._gone.add(document.request)
            elif seen.succeeded and OPERATION not in seen.annotations:
                self._succeeded.add(document.request)
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
        """Create the CRDs, and wait until they are served."""
        install_kinds(self.client, [Infrastructure, Cluster, Orphan])

    def create_shoots(self, names: Sequence[str]) -> None:
        """Create the namespaces and Clusters of shoots."""
        garden = Garden(self.client)
        self._each(garden.create_namespace, [_PaddedShoot.named(name) for name in names])

    def create(self, keys: Sequence[Key]) -> None:
        """Create Infrastructures with a reconcile request, as gardenlet does."""
        config = {"apiVersion": "bench/v1", "kind": "Config", "zones": [_PADDING]}
        manifests = [infrastructure(*key, "bench", providerConfig=config) for key in keys]
        self._each(Garden(self.client).deploy, manifests)

    def confirm(self, keys: Sequence[Key]) -> None:
        """Confirm the deletion of Infrastructures."""
        patch = {"metadata": {"annotations": {CONFIRM_DELETION: "true"}}}
        self._each(lambda key: self.client.patch(_INFRASTRUCTURES, key[1], key[0], patch), keys)

    def force(self, names: Sequence[str]) -> None:
        """Write the force deletion of shoots into their Clusters."""
        patch = {"spec": {"shoot": {"metadata": {"annotations": {FORCE_DELETION: "true"}}}}}
        self._each(lambda name: self.client.patch(_CLUSTERS, name, "", patch), names)

    def delete(self, keys: Sequence[Key]) -> None:
        """Delete Infrastructures."""
        self._each(lambda key: self.client.delete(_INFRASTRUCTURES, key[1], key[0]), keys)

    def requests(self) -> int:
        """Return the number of requests on infrastructures, without lists and watches."""
        text = self.client.send("GET", "/metrics").decode()
        return sum(int(float(count)) for count in _REQUESTS.findall(text))

    def watch(self) -> Watch:
        """Watch all Infrastructures from now on, in a daemon thread."""
        watch = Watch()
        threading.Thread(target=watch.follow, args=(self.client,), daemon=True).start()
        return watch

    def _each(self, do: Callable[[Any], object], items: Sequence[object]) -> None:
        parallel(items, do, at_once=_THREADS)


class _PaddedShoot(Shoot):
    """A shoot whose Cluster has a realistic size."""

    @classmethod
    def named(cls, name: str) -> "_PaddedShoot":
        """Return a shoot; its namespace and its Cluster have the same name."""
        return cls(technical_id=name, name=name, project="bench", region="eu-west-1")

    def cluster(self) -> Raw:
        """See Shoot."""
        cluster = super().cluster()
        cluster["spec"]["shoot"]["spec"]["provider"] = {"type": "bench", "workers": [_PADDING]}
        return cluster
