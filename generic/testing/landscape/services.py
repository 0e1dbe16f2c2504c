"""Services: keeps the routes of the router equal to the Services and the ready pods behind them.

Stands for kube-proxy and the DNS of a cluster. A pod is behind a Service if the selector fits its
labels; a port of the Service leads to the local port of the pod's target port.

Not here: connections (`router`), which pods are ready (`kubelet`).
"""

import threading
from collections.abc import Mapping

from attrs import frozen

from actuator.codec import read_json
from actuator.meta import Raw
from generic.kube.client import HttpClient
from generic.kube.headers import Event, Header, Request
from generic.testing.landscape.caches import SERVICES, Cache
from generic.testing.landscape.router import Router


@frozen
class Endpoints:
    """The ports of one ready pod."""

    namespace: str
    labels: Mapping[str, str]
    ports: Mapping[int | str, int]
    """Local ports, by number and name of the port of the container."""


class Services:
    """The Services of one cluster, and the pods behind them."""

    def __init__(self, client: HttpClient, router: Router) -> None:
        self.router = router
        self._cache = Cache(client, SERVICES, self._on_event)
        self._lock = threading.Lock()
        self._services: dict[Request, Raw] = {}
        self._pods: dict[str, Endpoints] = {}

    def start(self, stop: threading.Event) -> None:
        """Watch Services until `stop` is set."""
        self._cache.start(stop)

    def lookup(self, host: str) -> tuple[str, str] | None:
        """Return namespace and name of the Service with a cluster IP; see `router.Lookup`."""
        with self._lock:
            for request, spec in self._services.items():
                if host != "None" and host in (spec.get("clusterIPs") or ()):
                    return request
        return None

    def set_pod(self, uid: str, endpoints: Endpoints | None) -> None:
        """Set the ports of a ready pod; None if the pod is not ready, or was deleted."""
        with self._lock:
            before = self._pods.get(uid)
            if before == endpoints:
                return
            self._pods.pop(uid, None)  # a changed pod counts as new
            if endpoints is not None:
                self._pods[uid] = endpoints
            for changed in {item.namespace for item in (before, endpoints) if item is not None}:
                self._set_routes(changed)

    def _on_event(self, event: Event[Header]) -> None:
        entry = self._cache.store.get(event.request)
        with self._lock:
            self._services.pop(event.request, None)
            if entry is not None:
                self._services[event.request] = read_json(entry.raw).get("spec") or {}
            self._set_routes(event.request.namespace)

    def _set_routes(self, namespace: str) -> None:
        """Lead the Services of a namespace to its ready pods, the newest first."""
        pods = [pod for pod in reversed(self._pods.values()) if pod.namespace == namespace]
        routes: dict[str, dict[int | None, list[int]]] = {}
        for request, spec in self._services.items():
            selector = spec.get("selector") or {}
            if request.namespace != namespace or not selector:
                continue
            found = routes.setdefault(request.name, {})
            for pod in (pod for pod in pods if selector.items() <= pod.labels.items()):
                for port in spec.get("ports") or ():
                    local = pod.ports.get(port.get("targetPort") or port["port"])
                    if local is not None:
                        found.setdefault(port["port"], []).append(local)
        self.router.replace(namespace, routes)
