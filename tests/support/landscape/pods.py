"""A cluster whose pods run as processes, for tests of the process kubelet."""

from __future__ import annotations

import json
import secrets
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

from actuator.errors import NotFound
from actuator.interface import CONFIG_MAPS, SECRETS, Resource
from actuator.meta import Raw
from generic.controller.workqueue import Backoff
from generic.kube.client import HttpClient, connect
from generic.kube.clusters import NAMESPACES
from generic.library.programs.processes import Processes
from generic.testing.envtest import find_binaries
from generic.testing.envtest.servers import KillableServer
from generic.testing.landscape.caches import PODS, SERVICES
from generic.testing.landscape.clusters import SEED, landscape_cluster
from generic.testing.landscape.containers import Image, Launch, PlannedContainer
from generic.testing.landscape.images import landscape_images
from generic.testing.landscape.kubelet import Kubelet
from generic.testing.landscape.router import Router
from generic.testing.landscape.services import Services
from generic.testing.landscape.shootetcd import ShootEtcds
from tests.support.cluster.harness import eventually

DEPLOYMENTS = Resource("apps/v1", "deployments")
JOBS = Resource("batch/v1", "jobs")
EVENTS = Resource("v1", "events")
PROGRAM = Path(__file__).parents[1] / "programs" / "pod.py"
PORTS = [{"name": "http", "containerPort": 8080}]
PROBE = {"httpGet": {"path": "/readyz", "port": "http"}, "periodSeconds": 1, "failureThreshold": 1}


def launch(container: PlannedContainer) -> Launch:
    port = f"--port={container.port(8080)}"
    environ = {"KUBECONFIG": str(container.kubeconfig)}
    return Launch([sys.executable, "-P", PROGRAM, port], container.arguments, environ)


class Seed:
    """The cluster, with the processes of its pods."""

    def __init__(self, folder: Path) -> None:
        self.processes = Processes(folder)
        self.router = Router(self._lookup)
        self.router.start(folder / "egress")
        self.cluster = landscape_cluster(SEED, folder / "cluster", folder / "egress", print)
        self.cluster.start()
        self.client: HttpClient = connect(self.cluster.kubeconfig)
        self.services = Services(self.client, self.router)
        self._stop = threading.Event()
        self.services.start(self._stop)
        binaries = find_binaries(print)
        etcd = binaries[KillableServer.ETCD]
        self.etcds = ShootEtcds(etcd, folder / "etcds", self.processes, folder / "kept")
        self.images = landscape_images(binaries, Path("/nowhere"), self.etcds.start)
        self.images["program"] = Image(("program",), launch)
        self.images["single"] = Image(("program",), launch, 1)
        backoff = Backoff(0.2, 2.0, 0.0)
        self.kubelet = Kubelet(
            self.cluster, self.services, self.images, self.processes, backoff=backoff
        )
        self.kubelet.start()

    def _lookup(self, host: str) -> tuple[str, str] | None:
        return self.services.lookup(host)

    def close(self) -> None:
        self.kubelet.stop()
        self._stop.set()
        self.cluster.stop()
        self.router.stop()
        self.processes.close()


class Namespace:
    """A namespace of the seed, for one test."""

    def __init__(self, seed: Seed) -> None:
        self.seed = seed
        self.client = seed.client
        self.name = f"test-{secrets.token_hex(4)}"
        self.client.create(NAMESPACES, {"metadata": {"name": self.name}})
        eventually(lambda: self.client.get(CONFIG_MAPS, "kube-root-ca.crt", self.name))

    def _create(self, resource: Resource, kind: str, name: str, **parts: Any) -> Raw:
        meta = {"name": name, "namespace": self.name}
        manifest = {"apiVersion": resource.api_version, "kind": kind, "metadata": meta, **parts}
        return self.client.create(resource, manifest)

    def config(self, name: str, **data: str) -> None:
        self._create(CONFIG_MAPS, "ConfigMap", name, data=data)

    def secret(self, name: str, **data: str) -> None:
        self._create(SECRETS, "Secret", name, stringData=data)

    def service(self, name: str, **spec: Any) -> None:
        ports = [{"port": 80, "targetPort": "http"}]
        self._create(
            SERVICES, "Service", name, spec={"selector": {"app": name}, "ports": ports, **spec}
        )

    def template(self, name: str, container: Raw, spec: Raw) -> Raw:
        made = {"name": "main", "image": "test/program:1", "ports": PORTS, "readinessProbe": PROBE}
        spec = {"containers": [{**made, **container}], "terminationGracePeriodSeconds": 5, **spec}
        return {"metadata": {"labels": {"app": name}}, "spec": spec}

    def deploy(
        self, name: str, container: Raw | None = None, replicas: int = 1, **spec: Any
    ) -> None:
        template = self.template(name, container or {}, spec)
        selector = {"matchLabels": {"app": name}}
        parts = {"replicas": replicas, "selector": selector, "template": template}
        self._create(DEPLOYMENTS, "Deployment", name, spec=parts)

    def pod(self, name: str, container: Raw | None = None, **spec: Any) -> Raw:
        template = self.template(name, container or {}, spec)
        template["metadata"] |= {"name": name, "namespace": self.name}
        return self.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", **template})

    def job(self, name: str, container: Raw) -> None:
        spec = {"template": self.template(name, container, {"restartPolicy": "Never"})}
        self._create(JOBS, "Job", name, spec=spec)

    def pods(self) -> list[Raw]:
        return self.client.list(PODS, self.name)

    def get(self, name: str) -> Raw:
        return self.client.get(PODS, name, self.name)

    def status(self, name: str) -> Raw:
        """The status of the first container of a pod."""
        return (self.get(name)["status"].get("containerStatuses") or [{}])[0]

    def is_gone(self, name: str) -> bool:
        try:
            self.get(name)
        except NotFound:
            return True
        return False

    def wait_available(self, name: str) -> None:
        def available() -> bool:
            found = self.client.get(DEPLOYMENTS, name, self.name)
            wanted = found["spec"]["replicas"]
            status = found.get("status") or {}
            is_current = status.get("observedGeneration") == found["metadata"]["generation"]
            counts = [status.get(f"{item}Replicas") for item in ("updated", "available", "ready")]
            return is_current and counts == [wanted] * 3 and status["replicas"] == wanted

        try:
            eventually(available)
        except AssertionError:
            print(json.dumps([pod.get("status") for pod in self.pods()], indent=1), self.events())
            raise

    def wait_ready(self, name: str) -> Raw:
        eventually(lambda: self.status(name).get("ready"))
        return self.get(name)

    def ask(self, service: str, path: str = "/state", method: str = "GET") -> Raw:
        """Return the answer of the program behind a Service."""
        port = self.seed.router.find(self.name, service, 80)[0]
        return ask(port, path, method)

    def running(self) -> list[str]:
        """The names of the processes of this namespace."""
        return [item for item in self.seed.processes.alive() if item.startswith(f"{self.name}_")]

    def events(self) -> list[str]:
        return [f"{obj['reason']}: {obj['message']}" for obj in self.client.list(EVENTS, self.name)]


def ask(port: int, path: str = "/state", method: str = "GET") -> Raw:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=10) as answer:
        found: Raw = json.loads(answer.read())
        return found
