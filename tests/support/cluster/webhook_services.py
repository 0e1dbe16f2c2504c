"""Webhook services that run for one test, called by the API server."""

from __future__ import annotations

import json
import threading
from typing import Any

from actuator.errors import NotFound
from actuator.interface import resource_of
from actuator.meta import Raw
from actuator.v1alpha1 import Network
from generic.kube.client import path_of
from generic.kube.clock import SystemClock
from generic.library.webhooks import Webhook
from generic.library.webhooks.certificates import DEFAULTS, Lifetimes
from generic.library.webhooks.configurations import MUTATING, VALIDATING, prefixed
from generic.manager.options import Options
from generic.manager.registry import Registry
from generic.manager.webhooks import WebhookService
from generic.serving.metrics import Metrics
from generic.testing.envtest.servers import free_port
from tests.support.cluster.harness import eventually

NETWORKS = resource_of(Network.KIND)
NAME = "kubernetes.io/metadata.name"


class Serving:
    """The services of one test, whose webhooks see only objects of its namespace."""

    def __init__(self, admin, namespace: str) -> None:
        self.admin = admin
        self.namespace = namespace
        self.metrics = Metrics()
        self._running: list[tuple[WebhookService, threading.Event]] = []

    def options(self, **more: Any) -> Options:
        port = more.pop("port", None) or free_port()
        given: dict[str, Any] = {
            "leader_election_id": self.namespace,
            "webhook_config_mode": "url",
            "webhook_config_url": f"127.0.0.1:{port}",
            "webhook_config_namespace": self.namespace,
            "webhook_config_server_port": port,
        }
        return Options(**given | more)

    def start(
        self, *webhooks: Webhook, lifetimes: Lifetimes = DEFAULTS, **more: Any
    ) -> WebhookService:
        self.metrics = Metrics()
        registry = Registry(self.options(**more))
        registry.add_webhooks(*webhooks)
        service = WebhookService(registry, self.admin, SystemClock(), self.metrics, lifetimes)
        stop = threading.Event()
        threading.Thread(target=service.run, args=(stop,), daemon=True).start()
        self._running.append((service, stop))
        eventually(lambda: service.problem() is None)
        return service

    def stop(self, service: WebhookService) -> None:
        [stop] = [stop for item, stop in self._running if item is service]
        stop.set()
        service.stop(1)

    def create(self, name: str, **more: Any) -> Raw:
        return self.admin.create(NETWORKS, self._network(name, **more))

    def try_create(self, name: str) -> Raw:
        """The object after a dry run: the API server calls the webhooks and stores nothing."""
        path = path_of(NETWORKS, self.namespace)
        body = json.dumps(self._network(name)).encode()
        created: Raw = json.loads(self.admin.send("POST", path, query={"dryRun": "All"}, body=body))
        return created

    def _network(self, name: str, **more: Any) -> Raw:
        spec = {"type": "calico", "podCIDR": "10.0.0.0/16", "serviceCIDR": "10.1.0.0/16"}
        meta = {"name": name, "namespace": self.namespace, **more}
        network = {"apiVersion": NETWORKS.api_version, "kind": "Network"}
        return {**network, "metadata": meta, "spec": spec}

    def close(self) -> None:
        for resource in (MUTATING, VALIDATING):
            try:
                self.admin.delete(resource, prefixed(self.namespace))
            except NotFound:
                pass
        for service, stop in self._running:
            stop.set()
            service.stop(1)
