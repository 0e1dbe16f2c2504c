"""Measures our webhook server and controller-runtime's, which make the same changes.

`run.py --only webhooks` runs it. Latencies are those of creations in dry run, so that the API
server writes nothing; throughput is that of one or two of our processes without an API server.
"""

import json
import socket
import ssl
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

import attrs
from mutating import SIDE, WEBHOOK, mutate
from sides import HERE, programs

from actuator.errors import ActuatorError
from actuator.interface import Resource
from actuator.meta import Raw
from generic.kube.client import HttpClient, path_of
from generic.library.webhooks import Webhook, mutates
from generic.library.webhooks.certificates import DEFAULTS, Step, take
from generic.library.webhooks.configurations import Endpoint, Mode, configurations
from generic.library.webhooks.objects import Deployment
from generic.testing.envtest.servers import free_port
from hack.processes import running, wait

_DEPLOYMENTS = Resource("apps/v1", "deployments")
_HOST = "127.0.0.1"
_NONE, _PEER, _OURS = "none", "peer", "ours"
_SPARE = "spare"
"""Our second process; the API server does not call it."""
_WARMING = 50
_CONNECTIONS = 4
"""Concurrent requests to a process."""
_DIRECT_SECONDS = 4.0


@attrs.frozen
class Added:
    """The milliseconds that a webhook adds to a request."""

    median: float
    p99: float


@attrs.frozen
class Measured:
    """The results: latencies by side, and requests per second by number of our processes."""

    added: Mapping[str, Added]
    throughput: Mapping[int, float]

    @property
    def ratio(self) -> float:
        """Our p99 over that of the peer."""
        return self.added[_OURS].p99 / self.added[_PEER].p99

    def report(self) -> None:
        """Print both."""
        print(f"\n{'added ms a request':<22}{'ours':>10}{'peer':>10}{'ratio':>10}")
        for name in ("median", "p99"):
            ours, peer = (getattr(self.added[side], name) for side in (_OURS, _PEER))
            print(f"{name:<22}{ours:>10.2f}{peer:>10.2f}{ours / peer:>10.2f}")
        for count, rate in self.throughput.items():
            print(f"without API server, {count} of our processes: {rate:.0f} requests/s")


def measure(admin: HttpClient, kubeconfig: Path, folder: Path, requests: int) -> Measured:
    """Run both sides at once; measure them in turn, so that both meet the same load."""
    with _servers(admin, kubeconfig, folder) as ports:
        added = _latencies(admin, requests)
        trust = ssl.create_default_context(cafile=str(folder / "ca.crt"))
        ours = [ports[_OURS], ports[_SPARE]]
        return Measured(added, {n: _throughput(ours[:n], trust) for n in (1, 2)})


@contextmanager
def _servers(admin: HttpClient, kubeconfig: Path, folder: Path) -> Iterator[dict[str, int]]:
    """Run the peer and two of our processes, registered; yield their ports."""
    authorities = _save_certificates(folder)
    ports = {name: free_port() for name in (_OURS, _SPARE, _PEER)}
    flags = {
        name: {
            "--kubeconfig": str(kubeconfig),
            "--leader-election-id": name,
            "--metrics-bind-address": "0",
            "--webhook-config-mode": "url",
            "--webhook-config-url": f"{_HOST}:{ports[name]}",
            "--webhook-config-server-port": str(ports[name]),
            "--webhook-config-cert-dir": str(folder),
        }
        for name in (_OURS, _SPARE)
    }
    flags[_PEER] = {"--port": str(ports[_PEER]), "--cert-dir": str(folder)}
    flags[_PEER] |= {"--path": _webhook(_PEER).path}
    with ExitStack() as stack:
        for name, given in flags.items():
            program = [sys.executable, str(HERE / "mutating.py")]
            command = [str(programs(print) / "webhook")] if name == _PEER else program
            address = f"{_HOST}:{free_port()}"
            more = chain(*given.items(), ("--health-bind-address", address))
            stack.enter_context(
                running([*command, *more], folder / f"{name}.log", address, "/readyz")
            )
        where = Endpoint(
            mode=Mode.URL, name=_PEER, namespace="", port=0, host=f"{_HOST}:{ports[_PEER]}"
        )
        for resource, configuration in configurations([_webhook(_PEER)], where, authorities):
            admin.apply(resource, configuration)
        yield ports


def _save_certificates(folder: Path) -> bytes:
    made = take(Step.START, None, [_HOST], datetime.now(UTC), DEFAULTS)
    (folder / "ca.crt").write_bytes(made.bundle)
    made.serving.save(folder / "tls.crt", folder / "tls.key")
    return made.bundle


def _webhook(side: str) -> Webhook:
    labels = {SIDE: side}
    return mutates(Deployment, failure_policy="Fail", name=WEBHOOK, object_labels=labels)(mutate)


def _latencies(admin: HttpClient, requests: int) -> dict[str, Added]:
    """Create in turn without a webhook, with the peer's, and with ours."""
    sides = (_NONE, _PEER, _OURS)
    for side in (_PEER, _OURS):
        wait(f"called: {side}", lambda side=side: _is_mutated(_create(admin, side)), 30)
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    for turn in range(requests + _WARMING):
        for side in sides[turn % 3 :] + sides[: turn % 3]:
            began = time.perf_counter()
            created = _create(admin, side)
            taken = time.perf_counter() - began
            if _is_mutated(created) is (side == _NONE):
                raise ActuatorError(f"the webhook of {side} was not called, or not only that one")
            if turn >= _WARMING:
                seconds[side].append(taken)
    without = statistics.median(seconds[_NONE])
    return {side: _added(seconds[side], without) for side in (_OURS, _PEER)}


def _added(seconds: Sequence[float], without: float) -> Added:
    cuts = statistics.quantiles(seconds, n=100)
    return Added(1000 * (cuts[49] - without), 1000 * (cuts[98] - without))


def _create(admin: HttpClient, side: str) -> Raw:
    body = json.dumps(_deployment(side)).encode()
    query = {"dryRun": "All"}
    answer = admin.send("POST", path_of(_DEPLOYMENTS, "default"), query=query, body=body)
    created: Raw = json.loads(answer)
    return created


def _is_mutated(created: Raw) -> bool:
    return len(created["spec"]["template"]["spec"]["containers"]) == 3


def _deployment(side: str) -> Raw:
    """A Deployment of some 10 KB, as large as that of a kube-apiserver."""
    names = [f"volume-{number}" for number in range(25)]
    labels = {"app": "kubernetes"}
    containers = [
        {
            "name": name,
            "image": f"example.org/{name}:v1",
            "args": [f"--some-flag-{number}=/srv/kubernetes/{number}" for number in range(40)],
            "volumeMounts": [{"name": one, "mountPath": f"/srv/{one}"} for one in names],
        }
        for name in ("kube-apiserver", "vpn-client")
    ]
    pod = {"containers": containers, "volumes": [{"name": one, "emptyDir": {}} for one in names]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "bench", "namespace": "default", "labels": {SIDE: side}},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


def _throughput(ports: Sequence[int], trust: ssl.SSLContext) -> float:
    """Return the answers per second of all these servers together."""
    where = {"group": "apps", "version": "v1", "resource": "deployments"}
    request = {"uid": "u", "resource": where, "operation": "CREATE", "object": _deployment(_OURS)}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    body = json.dumps(review).encode()
    head = f"POST {_webhook(_OURS).path} HTTP/1.1\r\nHost: {_HOST}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    message = head.encode() + body
    clients = [port for port in ports for _ in range(_CONNECTIONS)]
    with ThreadPoolExecutor(len(clients)) as pool:
        counts = pool.map(lambda port: _count_answers(port, trust, message), clients)
        return sum(counts) / _DIRECT_SECONDS


def _count_answers(port: int, trust: ssl.SSLContext, message: bytes) -> int:
    """Send the request again and again; return how often it was allowed in the given time."""
    with (
        socket.create_connection((_HOST, port)) as raw,
        trust.wrap_socket(raw, server_hostname=_HOST) as connection,
    ):
        count, end = 0, time.monotonic() + _DIRECT_SECONDS
        while time.monotonic() < end:
            connection.sendall(message)
            if b'"allowed": true' not in connection.recv(65536):
                raise ActuatorError("an answer of the webhook server is not what it should be")
            count += 1
        return count
