"""Two replicas behind a Service: the shutdown of one loses no request, its crash only its own."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from actuator.errors import ApiError
from actuator.interface import Resource
from actuator.meta import Raw
from generic.library.webhooks.configurations import prefixed
from generic.manager.rbac import grant
from generic.testing.envtest.servers import free_port
from tests.support.cluster.fault_proxy import Balancer
from tests.support.cluster.harness import eventually
from tests.support.cluster.webhook_services import Serving
from tests.support.programs.webhook import build
from tests.support.suite.isolation import isolated

PROGRAM = Path(__file__).parents[2] / "support" / "programs" / "webhook.py"
WORKERS = 4
NOTICED = 2.0
"""Seconds until no request goes to a replica that was killed."""
SERVICES = Resource("v1", "services")


class Replica:
    """A manager in its own process."""

    def __init__(self, flags: list[str], log: Path) -> None:
        self.address = ("127.0.0.1", free_port())
        self._health = free_port()
        command = [sys.executable, str(PROGRAM), *flags]
        command += [f"--webhook-config-server-port={self.address[1]}"]
        command += [f"--health-bind-address=127.0.0.1:{self._health}", "--metrics-bind-address=0"]
        with log.open("wb") as output:
            self.process = subprocess.Popen(command, stderr=output, stdout=output)

    def is_ready(self) -> bool:
        try:
            url = f"http://127.0.0.1:{self._health}/readyz"
            return bool(urllib.request.urlopen(url, timeout=30).status == 200)
        except OSError:
            return False

    def end(self, number: signal.Signals = signal.SIGKILL) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)


class Clients:
    """Create objects at the API server, and repeat failed requests."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._done = threading.Event()
        self.seen: Counter[int] = Counter()
        """Requests by the process of the replica that answered."""
        self.failures: list[tuple[float, str]] = []
        """Each with the time at which it was known."""
        self._threads = [threading.Thread(target=self._ask, args=(n,)) for n in range(WORKERS)]
        for thread in self._threads:
            thread.start()

    def _ask(self, worker: int) -> None:
        number = 0
        while not self._done.is_set():
            try:
                created = self._serving.create(f"w{worker}-{number}")
            except ApiError as error:
                self.failures.append((time.monotonic(), str(error)))
                continue
            self.seen[int(created["metadata"]["labels"]["seen"])] += 1
            number += 1

    def close(self) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join()


class Replicas:
    """Replicas under their generated Role, behind an ExternalName Service and a balancer."""

    def __init__(self, environment, serving: Serving, folder: Path) -> None:
        self.serving = serving
        self._folder = folder
        self._running: list[Replica] = []
        self._balancer = Balancer(
            lambda: [item.address for item in self._running if item.is_ready()]
        )
        admin = serving.admin
        namespace = serving.namespace
        port = self._balancer.url.rpartition(":")[2]
        self._flags = [
            f"--leader-election-id={namespace}",
            "--leader-election",
            f"--leader-election-namespace={namespace}",
            f"--webhook-config-namespace={namespace}",
            f"--webhook-config-service-port={port}",
            "--shutdown-timeout=2",
        ]
        with isolated():  # it configures logging
            grant(admin, build(self._flags), namespace)
        self._flags.append(f"--kubeconfig={environment.user_kubeconfig(namespace)}")
        admin.create(SERVICES, external_name(prefixed(namespace), namespace))

    def start(self) -> Replica:
        log = self._folder / f"log-{len(self._running)}"
        replica = Replica(self._flags, log)
        self._running.append(replica)
        eventually(replica.is_ready)
        return replica

    def close(self) -> None:
        for item in self._running:
            item.end()
        self._balancer.close()


def external_name(name: str, namespace: str) -> Raw:
    spec = {"type": "ExternalName", "externalName": "localhost"}
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}


@pytest.fixture
def replicas(environment, admin, namespace, tmp_path) -> Iterator[Replicas]:
    with ExitStack() as stack:
        serving = Serving(admin, namespace)
        stack.callback(serving.close)
        made = Replicas(environment, serving, tmp_path)
        stack.callback(made.close)
        yield made


def test_replicas_lose_no_request_at_shutdown_and_only_their_own_at_a_crash(replicas):
    first = replicas.start()
    second = replicas.start()
    eventually(lambda: "seen" in replicas.serving.create("known")["metadata"].get("labels", {}))
    clients = Clients(replicas.serving)
    try:
        both = (first.process.pid, second.process.pid)
        eventually(lambda: min(clients.seen[process] for process in both) > 20, seconds=180)
        assert first.end(signal.SIGTERM) == 0
        count = clients.seen[second.process.pid]
        eventually(lambda: clients.seen[second.process.pid] > count + 20)
        assert clients.failures == []
        third = replicas.start()
        second.end(signal.SIGKILL)
        killed = time.monotonic()
        eventually(lambda: clients.seen[third.process.pid] > 20)
        count = clients.seen[third.process.pid]
        eventually(lambda: clients.seen[third.process.pid] > count + 20)
    finally:
        clients.close()
    # Also on connections that were open to it, which the API server finds closed when it uses them.
    assert all(moment < killed + NOTICED for moment, _ in clients.failures)
    assert all("failed calling webhook" in text for _, text in clients.failures)
