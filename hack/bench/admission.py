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
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path

from actuator.errors import ActuatorError
from actuator.interface import Resource
from actuator.meta import Raw
from generic.kube.client import HttpClient, path_of
from generic.library.manifests import manifest
from generic.library.webhooks.certificates import DEFAULTS, Step, take
from generic.library.webhooks.configurations import Endpoint, Mode, configurations
from generic.testing.envtest.servers import free_port
from hack.bench.mutating import SIDE, webhook
from hack.bench.sides import programs
from hack.processes import running, wait

_DEPLOYMENTS = Resource("apps/v1", "deployments")
_HOST = "127.0.0.1"
_NONE, _PEER, _OURS = _SIDES = "none", "peer", "ours"
_SPARE = "spare"
"""Our second process; the API server does not call it."""
_WARMING = 50
_CONNECTIONS = 4
"""Concurrent requests to a process."""
_DIRECT_SECONDS = 4.0


def added_ms(
    admin: HttpClient, kubeconfig: Path, folder: Path, requests: int
) -> tuple[dict[str, dict[str, float]], list[float]]:
    """Return the median and the p99 of the milliseconds that a webhook adds, for each side.

    Both sides run at once and are measured in turn, so that both meet the same load. Then the
    reviews a second that one of our processes answers, and two.
    """
    with _servers(admin, kubeconfig, folder) as ports:
        seconds = _latencies(admin, requests)
        trust = ssl.create_default_context(cafile=str(folder / "ca.crt"))
        ours = [int(ports[name]) for name in (_OURS, _SPARE)]
        direct = [_throughput(ours[:1], trust), _throughput(ours, trust)]
    without = statistics.median(seconds.pop(_NONE))
    cuts = {side: statistics.quantiles(taken, n=100) for side, taken in seconds.items()}
    added = {
        name: {side: 1000 * (cut[at] - without) for side, cut in cuts.items()}
        for name, at in (("median", 49), ("p99", 98))
    }
    return added, direct


@contextmanager
def _servers(admin: HttpClient, kubeconfig: Path, folder: Path) -> Iterator[dict[str, str]]:
    """Run both sides, registered at the API server, and our second process; yield the ports."""
    authorities = _save_certificates(folder)
    ports = {name: str(free_port()) for name in (_OURS, _SPARE, _PEER)}

    def ours(name: str) -> list[str]:
        flags = {
            "--kubeconfig": str(kubeconfig),
            "--leader-election-id": name,
            "--metrics-bind-address": "0",
            "--webhook-config-mode": "url",
            "--webhook-config-url": f"{_HOST}:{ports[name]}",
            "--webhook-config-server-port": ports[name],
            "--webhook-config-cert-dir": str(folder),
        }
        return [sys.executable, "-m", "hack.bench.mutating", *chain(*flags.items())]

    of_peer = {"--port": ports[_PEER], "--cert-dir": str(folder), "--path": webhook(_PEER).path}
    commands = {
        _OURS: ours(_OURS),
        _SPARE: ours(_SPARE),
        _PEER: [str(programs(print) / "webhook"), *chain(*of_peer.items())],
    }
    with ExitStack() as stack:
        for name, command in commands.items():
            address = f"{_HOST}:{free_port()}"
            health = ["--health-bind-address", address]
            server = running([*command, *health], folder / f"{name}.log", address, "/readyz")
            stack.enter_context(server)
        host = f"{_HOST}:{ports[_PEER]}"
        where = Endpoint(mode=Mode.URL, name=_PEER, namespace="", port=0, host=host)
        for resource, configuration in configurations([webhook(_PEER)], where, authorities):
            admin.apply(resource, configuration)
        yield ports


def _save_certificates(folder: Path) -> bytes:
    made = take(Step.START, None, [_HOST], datetime.now(UTC), DEFAULTS)
    (folder / "ca.crt").write_bytes(made.bundle)
    made.serving.save(folder / "tls.crt", folder / "tls.key")
    return made.bundle


def _latencies(admin: HttpClient, requests: int) -> dict[str, list[float]]:
    """Create in turn without a webhook, with the peer's, and with ours."""
    for side in (_PEER, _OURS):
        wait(f"called: {side}", partial(_is_called, admin, side), 30)
    seconds: dict[str, list[float]] = {side: [] for side in _SIDES}
    for turn in range(requests + _WARMING):
        for side in _SIDES[turn % 3 :] + _SIDES[: turn % 3]:
            began = time.perf_counter()
            created = _create(admin, side)
            taken = time.perf_counter() - began
            if _is_mutated(created) is (side == _NONE):
                raise ActuatorError(f"the webhook of {side} was not called, or not only that one")
            if turn >= _WARMING:
                seconds[side].append(taken)
    return seconds


def _is_called(admin: HttpClient, side: str) -> bool:
    return _is_mutated(_create(admin, side))


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
            "volumeMounts": [{"name": name, "mountPath": f"/srv/{name}"} for name in names],
        }
        for name in ("kube-apiserver", "vpn-client")
    ]
    pod = {"containers": containers, "volumes": [{"name": name, "emptyDir": {}} for name in names]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return manifest("apps/v1", "Deployment", "bench", "default", {SIDE: side}, spec=spec)


def _throughput(ports: Sequence[int], trust: ssl.SSLContext) -> float:
    """Return the reviews a second that all these servers together answer."""
    where = {"group": "apps", "version": "v1", "resource": "deployments"}
    request = {"uid": "u", "resource": where, "operation": "CREATE", "object": _deployment(_OURS)}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    body = json.dumps(review).encode()
    head = f"POST {webhook(_OURS).path} HTTP/1.1\r\nHost: {_HOST}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    clients = [port for port in ports for _ in range(_CONNECTIONS)]
    with ThreadPoolExecutor(len(clients)) as pool:
        counts = pool.map(lambda port: _count_answers(port, trust, head.encode() + body), clients)
        return sum(counts) / _DIRECT_SECONDS


def _count_answers(port: int, trust: ssl.SSLContext, message: bytes) -> int:
    """Send the request again and again; return how often it was allowed in the given time."""
    raw = socket.create_connection((_HOST, port))
    with trust.wrap_socket(raw, server_hostname=_HOST) as connection:
        count = 0
        end = time.monotonic() + _DIRECT_SECONDS
        while time.monotonic() < end:
            connection.sendall(message)
            if b'"allowed": true' not in connection.recv(65536):
                raise ActuatorError("an answer of the webhook server is not what it should be")
            count += 1
        return count
