"""The server answers within its limits, whatever handlers and clients do."""

from __future__ import annotations

import http.client
import ipaddress
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from actuator.interface import FieldProblem
from actuator.v1alpha1 import Network
from generic.kube.certificates import SERVER_AUTH, issue, new_authority, x509
from generic.kube.clock import SystemClock
from generic.kube.timers import Timers
from generic.library.webhooks import Denied, Webhook
from generic.library.webhooks import server as server_module
from generic.library.webhooks.server import WebhookServer, server_context
from generic.serving.httpserver import Address
from generic.serving.metrics.webhooks import WebhookMetrics
from tests.support.objects.stand_ins import UNUSED


@pytest.fixture(scope="module")
def tls() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The settings of the server, and of a client that trusts it."""
    now = SystemClock().now()
    authority = new_authority("test authority", now, timedelta(hours=1))
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    usages = [SERVER_AUTH]
    pair = issue(authority, "test", now, timedelta(hours=1), usages=usages, names=[address])
    client = ssl.create_default_context(cadata=authority.certificate.decode())
    return server_context(pair), client


class Started:
    """A server, and requests to it."""

    def __init__(self, server: WebhookServer, trust: ssl.SSLContext, metrics: Any) -> None:
        self.server = server
        self.trust = trust
        self.metrics = metrics

    def connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            "127.0.0.1", self.server.address.port, timeout=20, context=self.trust
        )

    def post(self, path: str, body: bytes, **more: Any) -> tuple[int, dict[str, Any]]:
        headers = {"Content-Type": "application/json", **more.pop("headers", {})}
        with closing(self.connect()) as connection:
            connection.request(more.pop("method", "POST"), path, body, headers)
            answer = connection.getresponse()
            text = answer.read()
        return answer.status, json.loads(text)["response"] if text else {}

    def ask(self, name: str, obj: Any = None, **more: Any) -> dict[str, Any]:
        status, response = self.post(f"/webhooks/{name}", review(obj, **more))
        assert status == 200
        assert response["uid"] == "u"
        return response


def review(obj: Any = None, **more: Any) -> bytes:
    resource = {
        "group": "extensions.gardener.cloud",
        "version": "v1alpha1",
        "resource": "networks",
    }
    default = {"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Network"}
    given = {**default, "metadata": {"name": "n"}, "spec": {"type": "calico"}}
    request = {"uid": "u", "resource": resource, "operation": "CREATE", "object": obj or given}
    request |= more
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(body).encode()


@pytest.fixture
def start(tls) -> Iterator[Callable[..., Started]]:
    from prometheus_client import CollectorRegistry

    running: list[tuple[WebhookServer, Timers]] = []

    def starter(**handlers: Any) -> Started:
        webhooks = [
            Webhook(
                name=name,
                kinds=[Network],
                handle=handler,
                mutating=True,
                failure_policy="Ignore" if name == "ignored" else "Fail",
                timeout_seconds=1 if name == "hang" else 10,
            )
            for name, handler in handlers.items()
        ]
        metrics = WebhookMetrics(CollectorRegistry(), handlers)
        timers = Timers("test", SystemClock())
        server = WebhookServer(webhooks, Address("127.0.0.1", 0), UNUSED, timers, metrics)
        server.tls = tls[0]
        server.start()
        running.append((server, timers))
        return Started(server, tls[1], metrics)

    yield starter
    for server, timers in running:
        server.stop(0)
        timers.stop()


def do_nothing(request: Any) -> None:
    pass


def fail(request: Any) -> None:
    raise RuntimeError("password=hunter2")


FAILS = f"test_webhook_server.py:{fail.__code__.co_firstlineno + 1}"


def test_a_handler_that_raises_is_a_denial_or_ignored(start):
    """Its message, which may have a secret, is not written."""
    started = start(fail=fail, ignored=fail)
    response = started.ask("fail")
    assert not response["allowed"]
    assert response["status"] == {
        "code": 500,
        "message": f"webhook fail failed: the handler raised RuntimeError ({FAILS})",
    }
    ignored = started.ask("ignored")
    assert ignored["allowed"]
    assert "failed" in ignored["warnings"][0]


def nonsense(request: Any) -> Any:
    return 17


def endless(request: Any) -> Any:
    while True:
        yield FieldProblem(field="spec", detail="no")


def unencodable(request: Any) -> None:
    request.new.metadata.labels["a"] = object()


def exits(request: Any) -> None:
    raise SystemExit(1)


@pytest.mark.parametrize("handler", [nonsense, unencodable, exits])
def test_nonsense_is_a_failure(start, handler):
    started = start(hook=handler, fine=do_nothing)
    response = started.ask("hook")
    assert not response["allowed"]
    assert response["status"]["code"] == 500
    assert started.ask("fine")["allowed"]


def test_problems_are_listed_up_to_a_limit(start):
    message = start(hook=endless).ask("hook")["status"]["message"]
    assert message.count("spec: no") == 20


def test_a_handler_that_hangs_is_answered_in_time_and_starves_no_other(start, monkeypatch):
    monkeypatch.setattr(server_module, "AT_ONCE", 4)
    hang = threading.Event()
    started = start(hang=lambda request: hang.wait(30) and None, fine=do_nothing)
    answers: list[tuple[float, str]] = []

    def ask() -> None:
        began = time.monotonic()
        message = started.ask("hang")["status"]["message"]
        answers.append((time.monotonic() - began, message))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    assert started.ask("fine")["allowed"]
    for thread in threads:
        thread.join()
    assert max(seconds for seconds, _ in answers) < 10, "the handler takes 30 s"
    assert {message.partition(": ")[2] for _, message in answers} == {
        "the handler did not end within 0.5 s"
    }
    hang.set()
    time.sleep(0.1)
    started.ask("fine")


def denied(request: Any) -> None:
    raise Denied("no\x1b[31m way")


def test_a_denial_has_no_control_characters(start):
    assert start(hook=denied).ask("hook")["status"] == {
        "code": 403,
        "message": "hook: no\\u001b[31m way",
    }


DEEP = b"[" * 3000 + b"]" * 3000


@pytest.mark.parametrize(
    ("path", "body", "more", "status"),
    [
        ("/", review(), {}, 404),
        ("/webhooks/other", review(), {}, 404),
        ("/webhooks/hook", b"", {"method": "GET"}, 405),
        ("/webhooks/hook", review(), {"headers": {"Content-Type": "text/plain"}}, 415),
        ("/webhooks/hook", b"not JSON", {}, 400),
        ("/webhooks/hook", b"[]", {}, 400),
        ("/webhooks/hook", b"\xff\xfe", {}, 400),
        ("/webhooks/hook", DEEP, {}, 400),
        ("/webhooks/hook", b'{"kind": "AdmissionReview", "apiVersion": "v9"}', {}, 400),
        ("/webhooks/hook", b"", {"headers": {"Content-Length": "99999999999"}}, 413),
        ("/webhooks/hook", b"", {"headers": {"Transfer-Encoding": "chunked"}}, 411),
        ("/webhooks/hook", b"", {"headers": {"X-Long": "x" * 100_000}}, 431),
    ],
)
def test_other_requests_are_refused_with_a_status(start, path, body, more, status):
    started = start(hook=do_nothing)
    assert started.post(path, body, **more)[0] == status
    assert started.ask("hook")["allowed"]


@pytest.mark.parametrize(
    "obj",
    [
        {"metadata": {"name": 5}},
        {"metadata": []},
        ["a list"],
        "text",
        {"metadata": {"name": "n"}, "spec": {"type": 7}},
    ],
)
def test_an_object_that_cannot_be_read_is_a_failure_without_its_values(start, obj):
    response = start(hook=do_nothing).ask("hook", obj)
    assert not response["allowed"]
    assert "cannot read the object" in response["status"]["message"]


def test_an_object_under_deletion_is_admitted_whatever_else_it_is(start):
    obj = {"metadata": {"deletionTimestamp": "2026-11-23T00:00:00Z", "name": 5}, "spec": 7}
    assert start(hook=denied).ask("hook", obj) == {"uid": "u", "allowed": True}


def test_operations_and_kinds_that_were_not_declared_do_not_reach_the_handler(start):
    started = start(hook=denied)
    assert started.ask("hook", operation="DELETE")["allowed"]
    resource = {"group": "", "version": "v1", "resource": "secrets"}
    assert "not declared" in started.ask("hook", resource=resource)["status"]["message"]


def test_a_connection_serves_many_requests(start):
    started = start(hook=do_nothing)
    with closing(started.connect()) as connection:
        for _ in range(3):
            connection.request(
                "POST", "/webhooks/hook", review(), {"Content-Type": "application/json"}
            )
            answer = connection.getresponse()
            assert answer.status == 200
            answer.read()
            assert not answer.will_close


@pytest.mark.parametrize(
    "sent", [b"", b"\x16\x03\x01\x00\x05hello", b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 4096]
)
def test_a_client_without_tls_disturbs_no_other(start, sent):
    started = start(hook=do_nothing)
    with socket.create_connection(("127.0.0.1", started.server.address.port)) as plain:
        plain.sendall(sent)
        assert started.ask("hook")["allowed"]


def test_a_slow_client_is_closed(start, monkeypatch):
    monkeypatch.setattr(WebhookServer, "head_seconds", 0.3)
    started = start(hook=do_nothing)
    port = started.server.address.port

    def trickle() -> None:
        for item in b"POST /webhooks/hook HTTP/1.1\r\n" * 100:
            slow.sendall(bytes([item]))
            time.sleep(0.02)

    with (
        socket.create_connection(("127.0.0.1", port)) as raw,
        started.trust.wrap_socket(raw, server_hostname="127.0.0.1") as slow,
    ):
        began = time.monotonic()
        with pytest.raises(OSError):
            trickle()
        assert time.monotonic() - began < 3
    assert started.ask("hook")["allowed"]


def test_one_connection_too_many_closes_the_oldest_idle_one(start, monkeypatch):
    monkeypatch.setattr(WebhookServer, "connections", 3)
    started = start(hook=do_nothing)
    idle = [started.connect() for _ in range(3)]
    for item in idle:
        item.connect()
    assert started.ask("hook")["allowed"]
    assert idle[0].sock.recv(1) == b""
    for element in idle:
        element.close()


def test_draining_answers_and_closes_each_connection(start):
    started = start(hook=do_nothing)
    with closing(started.connect()) as kept:
        headers = {"Content-Type": "application/json"}
        kept.request("POST", "/webhooks/hook", review(), headers)
        assert kept.getresponse().read() != b""
        started.server.draining = True
        assert not started.server.listening
        kept.request("POST", "/webhooks/hook", review(), headers)
        last = kept.getresponse()
        assert (last.status, last.getheader("Connection")) == (200, "close")
        last.read()
    assert started.ask("hook")["allowed"]  # a new connection, before the listener is closed
    assert started.server.stop(1)
    with pytest.raises(OSError, match="refused"):
        started.ask("hook")


def test_a_running_request_ends_before_the_server_stops(start):
    started = start(hook=lambda request: time.sleep(0.3))
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.append(started.ask("hook")["allowed"]))
    thread.start()
    time.sleep(0.1)
    assert started.server.stop(5)
    thread.join()
    assert answers == [True]


def test_only_modern_tls_is_spoken(start):
    started = start(hook=do_nothing)
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname = False
    old.verify_mode = ssl.CERT_NONE
    old.minimum_version = ssl.TLSVersion.TLSv1_2
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    old.set_ciphers("AES128-SHA:@SECLEVEL=0")
    address = ("127.0.0.1", started.server.address.port)
    with socket.create_connection(address) as raw, pytest.raises(OSError):
        old.wrap_socket(raw)
