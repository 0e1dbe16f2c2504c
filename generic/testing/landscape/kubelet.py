"""Kubelet: runs the pods of a cluster as local processes, by a table of images.

A pod with a container whose image is in the table has a process for it, with the arguments,
environment, volumes and readiness probe of its spec. Every other container counts as running and
ready without a process, and one of a Job as completed. All pods are on one node, which does not
exist as an object.

Real: the life of a process, with restarts, graceful termination, tokens and rotated Secrets; and
rolling updates, since Deployments see real readiness. Faked: images, isolation, addresses of pods,
init containers, liveness probes, resources.

Guarantees: a pod starts only programs of the table. A pod that asks for more stays Pending; its
status and an event have the reason. After `stop`, no process of a pod runs.
"""

import logging
import threading
import time
from collections.abc import Mapping
from contextlib import suppress

from actuator.errors import ApiError, Conflict, NotFound
from actuator.interface import CONFIG_MAPS, SECRETS
from actuator.meta import Raw
from generic.controller.controller import Again, Controller, Done, Failed, Result
from generic.controller.predicates import all_of
from generic.controller.workqueue import Backoff
from generic.kube.client import connect
from generic.kube.clock import SystemClock
from generic.kube.events import EventRecorder
from generic.kube.headers import Event, Header, Request
from generic.library.programs.errors import EnvtestError
from generic.library.programs.processes import Processes
from generic.serving.metrics import Metrics
from generic.testing.envtest.access import ClusterAccess
from generic.testing.landscape.caches import PODS, Cache
from generic.testing.landscape.containers import Image
from generic.testing.landscape.podruns import Claims, Means, PodRuns
from generic.testing.landscape.pods import Data, has_ended, is_deleting, status
from generic.testing.landscape.podwrites import bind, delete_now
from generic.testing.landscape.sandbox import SandboxWorld
from generic.testing.landscape.services import Services
from generic.testing.landscape.volumes import Tokens

logger = logging.getLogger(__name__)

NODE = "landscape"
"""The name of the node of all pods."""
BACKOFF = Backoff(first=1.0, cap=60.0, jitter=0.0)
"""Delays of restarts, shorter than those of a real kubelet."""
_WORKERS = 4
_START_SECONDS = 60.0
_STOP_SECONDS = 5.0
_SOON = 0.25
_LATER = 1.0
"""Seconds between two looks at a pod: until it is ready, and afterwards."""
_GRACE_SECONDS = 30


class Kubelet:
    """Serves the pods of one cluster between `start` and `stop`."""

    def __init__(
        self,
        cluster: ClusterAccess,
        services: Services,
        images: Mapping[str, Image],
        processes: Processes,
        *,
        backoff: Backoff = BACKOFF,
    ) -> None:
        """`images` has the images that run as processes, by the name of their repository."""
        self._client = connect(cluster.kubeconfig)
        self._services = services
        self._clock = SystemClock()
        self._stop = threading.Event()
        self._pods: dict[Request, PodRuns] = {}
        self._data = {
            kind.plural: Cache(self._client, kind, lambda _event: None)
            for kind in (SECRETS, CONFIG_MAPS)
        }
        self._cache = Cache(self._client, PODS, self._on_event)
        metrics = Metrics().controller("kubelet", "Pod", _WORKERS)
        store = self._cache.store
        self._controller = Controller("kubelet", self._sync, all_of(), store, self._clock, metrics)
        self._events = EventRecorder(self._client, "landscape-kubelet", self._clock)
        self._tokens = Tokens(self._client, self._clock)
        folder = processes.directory / "pods"
        folder.mkdir(mode=0o700, exist_ok=True)
        world = SandboxWorld(cluster, services.router, folder, self._read, self._tokens.get)
        self._means = Means(world, images, processes, self._clock, backoff, Claims())

    def start(self) -> None:
        """Start serving pods. Raises EnvtestError if the API server does not answer."""
        for cache in (*self._data.values(), self._cache):
            cache.start(self._stop)
            if not cache.wait(_START_SECONDS):
                raise EnvtestError("the kubelet cannot list pods, Secrets and ConfigMaps")
        self._controller.start(_WORKERS)

    def stop(self) -> None:
        """Stop serving, and end all processes of pods. The pods stay in the API."""
        self._stop.set()
        self._controller.stop()
        self._controller.join(_START_SECONDS)
        pods = list(self._pods.values())
        for pod in pods:
            pod.terminate()
        deadline = time.monotonic() + _STOP_SECONDS
        while any(pod.is_alive for pod in pods) and time.monotonic() < deadline:
            time.sleep(0.05)
        for request in list(self._pods):
            self._discard(request)

    def _on_event(self, event: Event[Header]) -> None:
        if event.new is None:
            self._controller.queue.add(event.request)
        else:
            self._controller.on_event(event)

    def _read(self, kind: str, namespace: str, name: str) -> Data | None:
        return self._data[kind].data(Request(namespace, name))

    def _sync(self, request: Request, _failures: int) -> Result:
        """Do the next step for a pod."""
        pod = self._cache.get(request)
        known = self._pods.get(request)
        if known is not None and (pod is None or pod["metadata"]["uid"] != known.uid):
            self._discard(request)
        try:
            return Done() if pod is None else self._step(request, pod)
        except NotFound:
            return Done()
        except ApiError as error:
            fields = {"pod": str(request), "error": str(error)}
            logger.info("pod is retried", extra={"fields": fields})
            return Failed(cap=_LATER)

    def _step(self, request: Request, pod: Raw) -> Result:
        node = pod["spec"].get("nodeName")
        if not node and not is_deleting(pod):
            with suppress(Conflict, NotFound):  # it was bound, or deleted, in the meantime
                bind(self._client, pod["metadata"], NODE)
        if node != NODE:
            return Done()
        if is_deleting(pod):
            return self._end(request, pod)
        if has_ended(pod):
            self._discard(request)
            return Done()
        if request not in self._pods:
            self._pods[request] = PodRuns(pod, self._means)
        return self._run(request, pod, self._pods[request])

    def _run(self, request: Request, pod: Raw, known: PodRuns) -> Result:
        """Advance the containers of a pod, and report their state."""
        states = known.advance(pod)
        is_ready = all(state.ready for state in states)
        self._services.set_pod(known.uid, known.endpoints() if is_ready else None)
        message = known.refused or "a container is not ready"
        self._report(request, pod, status(pod, states, message, self._clock.now()))
        if known.refused:
            self._events.record(_about(pod), "Refused", known.refused, warning=True, once=True)
        if not known.has_work:
            return Done()
        return Again(_LATER if is_ready else _SOON)

    def _report(self, request: Request, pod: Raw, new: Raw) -> None:
        """Write the status, if it changed.

        Not by a Writer: its store takes an object under deletion without finalizers for gone, and
        a pod exists until its grace period is over.
        """
        if new != pod.get("status"):
            namespace, name = request
            test = {"op": "test", "path": "/metadata/uid", "value": pod["metadata"]["uid"]}
            patch = [test, {"op": "add", "path": "/status", "value": new}]
            self._client.patch(PODS, name, namespace, patch, subresource="status")

    def _end(self, request: Request, pod: Raw) -> Result:
        """Terminate the processes of a pod that is being deleted; then remove it from the API."""
        meta = pod["metadata"]
        known = self._pods.get(request)
        grace = meta.get("deletionGracePeriodSeconds", _GRACE_SECONDS)
        if known is not None:
            self._services.set_pod(known.uid, None)
            if known.kill_at is None:
                known.kill_at = self._clock.monotonic() + grace
                known.terminate()
            if known.is_alive and self._clock.monotonic() < known.kill_at:
                return Again(_SOON)
            self._discard(request)
        with suppress(Conflict, NotFound):  # it was changed, or is gone, in the meantime
            delete_now(self._client, meta)
        return Again(_LATER)  # until the watch shows that it is gone

    def _discard(self, request: Request) -> None:
        """Kill the processes of a pod, and remove its files."""
        known = self._pods.pop(request, None)
        if known is not None:
            self._services.set_pod(known.uid, None)
            known.discard()
            self._tokens.forget(known.uid)


def _about(pod: Raw) -> dict[str, str]:
    meta = pod["metadata"]
    about = {name: str(meta[name]) for name in ("namespace", "name", "uid")}
    return {"apiVersion": "v1", "kind": "Pod", **about}
