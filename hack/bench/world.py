"""The benchmark's driver: creates objects, requests operations, and observes the outcomes.

It observes outcomes through one watch, never by polling: its load is equal for both sides, and
small, since it decodes headers only.
"""

import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from actuator.cluster import FORCE_DELETION
from actuator.interface import resource_of
from actuator.v1alpha1 import Cluster, Infrastructure
from generic.controller.predicates import OPERATION
from generic.kube.client import HttpClient, path_of
from generic.kube.clusters import CLUSTERS, NAMESPACES
from generic.kube.deleting import CONFIRM_DELETION
from generic.kube.headers import Event, EventType, Header, header
from generic.kube.informer import Informer
from generic.kube.store import Store
from generic.reconciler.orphans import RECORD_KINDS
from generic.testing.garden import Garden, SeedShoot
from generic.testing.polling import parallel
from generic.testing.seed import install_crds
from hack.objects import infrastructure

Key = tuple[str, str]
"""Namespace and name of an Infrastructure."""

_INFRASTRUCTURES = resource_of(Infrastructure.KIND)
_THREADS = 8
_TIMEOUT = 200.0
_PADDING = "x" * 2000
"""Pads a Cluster and an Infrastructure to some 3 KB, as in real landscapes."""
_REQUESTS = re.compile(
    r'^apiserver_request_total\{.*resource="infrastructures".*verb="(?!LIST|WATCH)\w+".*\} (\S+)$',
    re.MULTILINE,
)


class BenchWorld:
    """The API server, with administrator rights, and the outcomes of all Infrastructures."""

    def __init__(self, client: HttpClient) -> None:
        """Install the CRDs; observe Infrastructures from now on, in a daemon thread."""
        install_crds(client, [Infrastructure, Cluster, *RECORD_KINDS])
        self.client = client
        self._changed = threading.Condition()
        self._succeeded: set[Key] = set()
        self._gone: set[Key] = set()
        store = Store(_INFRASTRUCTURES, header, keeps=lambda _request, _header: False)
        run = Informer(client, store, self._see).run
        threading.Thread(target=run, args=(threading.Event(),), daemon=True).start()

    def create_shoots(self, names: Sequence[str]) -> None:
        """Create the namespaces and Clusters of shoots, which have the same names."""

        def create(name: str) -> None:
            shoot = SeedShoot(technical_id=name, name=name, project="bench", region="eu-west-1")
            cluster = shoot.cluster()
            cluster["spec"]["shoot"]["spec"]["provider"] = {"type": "bench", "workers": [_PADDING]}
            self.client.create(NAMESPACES, shoot.namespace())
            self.client.create(CLUSTERS, cluster)

        _each(create, names)

    def create(self, keys: Sequence[Key]) -> None:
        """Create Infrastructures with a reconcile request, as gardenlet does."""
        config = {"apiVersion": "bench/v1", "kind": "Config", "zones": [_PADDING]}
        manifests = [infrastructure(*key, "bench", providerConfig=config) for key in keys]
        _each(Garden(self.client).deploy, manifests)

    def confirm(self, keys: Sequence[Key]) -> None:
        """Confirm the deletion of Infrastructures."""
        patch = {"metadata": {"annotations": {CONFIRM_DELETION: "true"}}}
        _each(lambda key: self.client.patch(_INFRASTRUCTURES, key[1], key[0], patch), keys)

    def force(self, names: Sequence[str]) -> None:
        """Write the force deletion of shoots into their Clusters."""
        patch = {"spec": {"shoot": {"metadata": {"annotations": {FORCE_DELETION: "true"}}}}}
        _each(lambda name: self.client.patch(CLUSTERS, name, "", patch), names)

    def delete(self, names: Sequence[str]) -> None:
        """Delete all Infrastructures of shoots, with a request for each shoot."""
        _each(lambda name: self.client.send("DELETE", path_of(_INFRASTRUCTURES, name)), names)

    def requests(self) -> int:
        """Return the number of requests on infrastructures, without lists and watches."""
        text = self.client.send("GET", "/metrics").decode()
        return sum(int(float(count)) for count in _REQUESTS.findall(text))

    def wait_succeeded(self, keys: Sequence[Key]) -> float:
        """Return the monotonic time when the last of these was Succeeded. Raises TimeoutError."""
        return self._wait(self._succeeded, set(keys), "succeeded")

    def wait_gone(self, keys: Sequence[Key]) -> float:
        """Return the monotonic time when the last of these was deleted. Raises TimeoutError."""
        return self._wait(self._gone, set(keys), "gone")

    def _see(self, event: Event[Header]) -> None:
        with self._changed:
            if event.type is EventType.DELETED:
                self._gone.add(event.request)
            elif event.new and event.new.succeeded and OPERATION not in event.new.annotations:
                self._succeeded.add(event.request)
            self._changed.notify_all()

    def _wait(self, seen: set[Key], wanted: set[Key], what: str) -> float:
        with self._changed:
            done = self._changed.wait_for(lambda: wanted <= seen, _TIMEOUT)
            if not done:
                raise TimeoutError(f"{len(wanted - seen)} of {len(wanted)} objects are not {what}")
            return time.monotonic()


def _each(do: Callable[[Any], object], items: Sequence[object]) -> None:
    parallel(items, do, at_once=_THREADS)
