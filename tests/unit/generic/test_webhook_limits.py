"""One handler, connection or request cannot harm the others; see also test_webhook_server."""

import base64
import json
import logging
import socket
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import timedelta
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ipaddress import ip_address
from typing import Any

import pytest

from actuator.interface import FieldProblem
from actuator.meta import Raw
from actuator.v1alpha1 import Network
from generic.kube.certificates import SERVER_AUTH, issue, new_authority, x509
from generic.kube.clock import SystemClock
from generic.kube.timers import Timers
from generic.library.webhooks import Denied, Webhook, server
from generic.library.webhooks.server import MAX_BODY, WebhookServer, server_context
from generic.serving.httpserver import Address
from generic.testing.recording import RecordingClient
from tests.support.objects.stand_ins import StandIn

SECRET = "hunter2"
REVIEW = {"Content-Type": "application/json"}
CLOCK = SystemClock()


class Log(StandIn):
    """Counts the reports of the server."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.outcomes: list[str] = []

    def began(self, webhook: str) -> None:
        self.in_flight += 1

    def ended(self, webhook: str, seconds: float, outcome: str) -> None:
        self.in_flight -= 1
        self.outcomes.append(outcome)


class Served:
    """A server with webhooks of one handler each, and clients of it."""

    def __init__(self, tls: ssl.SSLContext, ca: bytes, **handlers: Any) -> None:
        options = {
            name: handlers.pop(name)
            for name in ("failure_policy", "timeout_seconds")
            if name in handlers
        }
        given = {"failure_policy": "Fail", "timeout_seconds": 1, **options}
        webhooks = [
            Webhook(name=name, kinds=[Network], handle=handle, mutating=True, **given)
            for name, handle in handlers.items()
        ]
        self.log = Log()
        self.timers = Timers("test", CLOCK)
        address = Address("127.0.0.1", 0)
        self.server = WebhookServer(webhooks, address, RecordingClient(), self.timers, self.log)
        self.server.tls = tls
        self.server.start()
        self._ca = ca
        self.clients: list[HTTPConnection] = []

    def close(self) -> None:
        for client in self.clients:
            client.close()
        self.server.stop(0)
        self.timers.stop()

    def connect(self) -> HTTPSConnection:
        context = ssl.create_default_context(cadata=self._ca.decode())
        made = HTTPSConnection("127.0.0.1", self.server.address.port, timeout=5, context=context)
        self.clients.append(made)
        return made

    def raw(self) -> ssl.SSLSocket:
        connection = self.connect()
        connection.connect()
        return connection.sock

    def ask(self, name: str, connection: HTTPConnection | None = None, **more: Any) -> Raw:
        used = connection or self.connect()
        used.request("POST", f"/webhooks/{name}?timeout=1s", review(**more), REVIEW)
        answer = used.getresponse()
        body = json.loads(answer.read())
        if connection is None:
            used.close()
        assert answer.status == 200
        return body["response"]


def review(**more: Any) -> bytes:
    network = {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "Network",
        "metadata": {"name": "n", "namespace": "shoot--a--b"},
        "spec": {
            "type": "calico",
            "podCIDR": "10.0.0.0/16",
            "serviceCIDR": "10.1.0.0/16",
            "providerConfig": {"password": SECRET, "list": [1]},
        },
    }
    request = {
        "uid": "u1",
        "resource": {
            "group": "extensions.gardener.cloud",
            "version": "v1alpha1",
            "resource": "networks",
        },
        "operation": "CREATE",
        "object": network,
        **more,
    }
    return json.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    ).encode()


@pytest.fixture(scope="module")
def tls() -> tuple[ssl.SSLContext, bytes]:
    ca = new_authority("test", CLOCK.now(), timedelta(days=1))
    names = [x509.IPAddress(ip_address("127.0.0.1"))]
    pair = issue(ca, "t", CLOCK.now(), timedelta(days=1), usages=[SERVER_AUTH], names=names)
    return server_context(pair), ca.certificate


@pytest.fixture
def serve(tls) -> Iterator[Any]:
    made: list[Served] = []

    def start(**handlers: Any) -> Served:
        made.append(Served(*tls, **handlers))
        return made[-1]

    yield start
    for item in made:
        item.close()


def post(connection: HTTPConnection, body: bytes) -> int:
    connection.request("POST", "/webhooks/mark", body, REVIEW)
    return connection.getresponse().status


def admit(request: Any) -> None:
    request.new.metadata.labels["seen"] = "1"


def opened(served: Served) -> list[Any]:
    return list(served.server._open.values())


def eventually(check: Any) -> None:
    end = time.monotonic() + 5
    while not check():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_changes_in_undeclared_fields_are_found(serve):
    def change(request: Any) -> None:
        request.new.spec.provider_config["list"].append(2)

    answer = serve(change=change).ask("change")
    patch = [{"op": "add", "path": "/spec/providerConfig/list/-", "value": 2}]
    assert json.loads(base64.b64decode(answer["patch"])) == patch


def raises(_request: Any) -> None:
    raise KeyError(SECRET)


def leaves(_request: Any) -> None:
    sys.exit(3)


def recurses(request: Any) -> None:
    recurses(request)


class Strange:
    def __str__(self) -> str:
        raise OSError(SECRET)


def denies_strangely(_request: Any) -> None:
    raise Denied(Strange())  # type: ignore[arg-type]


def puts(value: Any) -> Any:
    def put(request: Any) -> None:
        request.new.metadata.labels["x"] = value

    return put


NONSENSE = {
    "raises": raises,
    "exits": leaves,
    "recurses": recurses,
    "denies without text": denies_strangely,
    "returns a number": lambda _: 5,
    "returns a text": lambda _: "denied",
    "yields no problem": lambda _: [Strange()],
    "a set": puts({1}),
    "not a number": puts(float("nan")),
    "an object": puts(Strange()),
    "no metadata": lambda request: setattr(request.new, "metadata", None),
    "a cycle": lambda request: request.new.spec.provider_config["list"].append(
        request.new.spec.provider_config
    ),
}


@pytest.mark.parametrize("case", NONSENSE)
@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_nonsense_of_a_handler_is_answered_by_its_failure_policy(serve, caplog, case, policy):
    served = serve(bad=NONSENSE[case], good=admit, failure_policy=policy)
    answer = served.ask("bad")
    assert answer["allowed"] is (policy == "Ignore")
    assert "webhook bad failed" in str(answer)
    assert "patch" not in answer
    eventually(lambda: served.log.outcomes == ["failed"])
    assert served.ask("good")["allowed"]
    assert SECRET not in caplog.text + str([vars(record) for record in caplog.records])


def test_problems_deny_and_stay_out_of_the_log(serve, caplog):
    caplog.set_level(logging.DEBUG)
    served = serve(
        check=lambda _: [FieldProblem(field="spec.providerConfig.password", detail=SECRET)]
    )
    answer = served.ask("check")
    assert answer["status"]["message"] == f"check: spec.providerConfig.password: {SECRET}"
    assert answer["status"]["code"] == 403
    eventually(lambda: served.log.outcomes == ["denied"])
    assert SECRET not in str([vars(record) for record in caplog.records])


def test_abandoned_calls_delay_no_other_webhook_and_no_shutdown(serve, monkeypatch):
    monkeypatch.setattr(server, "AT_ONCE", 2)
    release = threading.Event()
    served = serve(hangs=lambda _: release.wait(10) and None, good=admit)
    asking = [threading.Thread(target=served.ask, args=("hangs",)) for _ in range(4)]
    for item in asking:
        item.start()
    assert served.ask("good")["allowed"]
    for element in asking:
        element.join()
    eventually(lambda: sorted(served.log.outcomes) == ["allowed", *["failed"] * 4])
    assert served.server.stop(1)
    release.set()


def test_handlers_that_wait_for_each_other_are_bounded(serve, monkeypatch):
    monkeypatch.setattr(server, "AT_ONCE", 1)
    monkeypatch.setattr(server, "UNANSWERED", 2)
    release = threading.Event()
    served = serve(slow=lambda _: release.wait(10) and None)
    answers: list[Raw] = []
    asking = [threading.Thread(target=lambda: answers.append(served.ask("slow"))) for _ in range(3)]
    for item in asking:
        item.start()
    eventually(lambda: answers)
    assert "2 requests are unanswered" in str(answers[0])
    release.set()
    for element in asking:
        element.join()
    assert [answer["allowed"] for answer in answers] == [False, True, True]


GARBAGE = {
    "no http": b"\x16\x03\x01 hello\r\n\r\n",
    "endless url": b"GET /" + b"a" * 2**18,
    "endless header": b"POST /webhooks/mark HTTP/1.1\r\nA: " + b"a" * 2**18,
    "many headers": b"POST /webhooks/mark HTTP/1.1\r\n" + b"A: b\r\n" * 2**16,
    "long body": b"POST /webhooks/mark HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY + 1),
    "longest body": b"POST / HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n",
    "no length": b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    "an upgrade": b"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
    "a tunnel": b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
    "pipelined": b"GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n",
    "smuggled": b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    "bad chunk": b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
}


@pytest.mark.parametrize("case", GARBAGE)
def test_garbage_ends_its_connection_only(serve, case, caplog):
    served = serve(mark=admit)
    raw = served.raw()
    try:
        raw.sendall(GARBAGE[case])
        raw.settimeout(10)
        answer = raw.recv(4096)
        assert answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 501"))
        assert b"Connection: close" in answer
    except (ConnectionError, ssl.SSLEOFError):
        pass  # closed before everything was sent
    assert served.ask("mark")["allowed"]
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize("body", [b"", b"{}", b"[" * 10**5, b"\xff", review(uid="u" * 999)])
def test_an_invalid_review_is_a_bad_request(serve, body):
    assert post(serve(mark=admit).connect(), body) == 400


def test_a_chunked_body_is_refused(serve):
    """The API server always sends a length, by which the memory of a request is bounded."""
    connection = serve(mark=admit).connect()
    parts = iter([b" " * 2**20] * 9)
    try:
        connection.request("POST", "/webhooks/mark", parts, REVIEW, encode_chunked=True)
        assert connection.getresponse().status == 411
    except (ConnectionError, ssl.SSLEOFError):
        pass  # closed before everything was sent


def headed(text: bytes) -> bytes:
    head = b"POST /webhooks/mark HTTP/1.1\r\nContent-Type: application/json\r\n"
    return head + b"Content-Length: %d\r\n\r\n" % len(text) + text


def test_few_bytes_of_bodies_are_handled_at_a_time(serve, monkeypatch):
    """Other requests wait, and none is lost; a small one does not wait for large ones."""
    monkeypatch.setattr(server, "MAX_HANDLED", 2**18)
    release = threading.Event()
    entered = []

    def hold(_request: Any) -> None:
        entered.append(time.monotonic())
        release.wait(5)

    served = serve(mark=hold, small=admit, timeout_seconds=10)
    clients = [served.raw() for _ in range(6)]
    for client in clients:
        client.sendall(headed(review() + b" " * (2**17 - 500)))
        client.settimeout(5)
    eventually(lambda: len(entered) == 2)
    assert served.ask("small")["allowed"]
    assert len(entered) == 2
    release.set()
    assert [client.recv(15) for client in clients] == [b"HTTP/1.1 200 OK"] * 6


@pytest.mark.parametrize("sent", [1, 2**16, 2**18 - 1], ids="{} bytes sent".format)
def test_clients_that_are_slow_to_send_keep_no_memory_from_others(serve, monkeypatch, sent):
    monkeypatch.setattr(server, "MAX_RECEIVED", 2**19)
    served = serve(mark=admit)
    text = headed(review().ljust(2**18))
    slow = [served.raw() for _ in range(9)]
    for client in slow:
        client.sendall(text[: sent - 2**18])
    eventually(lambda: {item.state.name for item in opened(served)} == {"RECEIVING"})
    assert served.ask("mark")["allowed"]
    large = served.raw()
    large.sendall(text)
    large.settimeout(10)
    assert large.recv(15) == b"HTTP/1.1 200 OK"
    eventually(lambda: sum(served.server._received.values()) <= 2**19)


def test_bytes_of_a_dropped_request_drop_no_other_one_until_they_are_freed(serve, monkeypatch):
    """The thread of a dropped connection may be late: here there is none, and it never ends."""
    monkeypatch.setattr(server, "MAX_RECEIVED", 2**19)
    served = serve(mark=admit)
    with ExitStack() as stack:
        arriving = [stack.enter_context(socket.socket()) for _ in range(3)]
        for connection in arriving:
            served.server._make_room(connection, "192.0.2.1")
            served.server.receiving(connection)
        for size in (2**16, 2**17, 2**17 + 2**16):
            for connection in arriving:
                served.server.receive(connection, size)
        assert arriving[0] not in served.server._open
        served.server.receive(arriving[2], 2**18)
        assert [*served.server._open] == arriving[1:]


def test_clients_that_send_nothing_make_room_for_others(serve, monkeypatch):
    """Also while the others are sending; and one whose request has arrived is never closed."""
    monkeypatch.setattr(WebhookServer, "connections", 8)
    release = threading.Event()
    served = serve(hold=lambda _: release.wait(5) and None, mark=admit, timeout_seconds=10)
    answers: list[Raw] = []
    asking = threading.Thread(target=lambda: answers.append(served.ask("hold")))
    asking.start()
    eventually(lambda: served.log.in_flight)
    slow = [served.raw() for _ in range(12)]
    for client in slow:
        with suppress(OSError):
            client.sendall(b"P")
    assert all(served.ask("mark")["allowed"] for _ in range(20))
    release.set()
    asking.join()
    assert answers[0]["allowed"]


def test_slowclients_are_closed(serve, monkeypatch):
    monkeypatch.setattr(WebhookServer, "head_seconds", 0.3)
    served = serve(mark=admit)
    silent = HTTPConnection("127.0.0.1", served.server.address.port)
    served.clients.append(silent)
    silent.connect()
    slow = served.raw()
    slow.sendall(b"POST /webhooks/mark HTTP/1.1\r\n")
    slow.settimeout(10)
    silent.sock.settimeout(10)
    begin = time.monotonic()
    assert served.ask("mark")["allowed"]
    for item in (slow, silent.sock):
        try:
            assert item.recv(100) == b""
        except ConnectionError:
            pass
    assert 0.1 < time.monotonic() - begin < 2


def test_connections_are_bounded(serve, monkeypatch):
    monkeypatch.setattr(WebhookServer, "connections", 3)
    release = threading.Event()
    entered = threading.Semaphore(0)

    def hold(_request: Any) -> None:
        entered.release()
        release.wait(10)

    served = serve(hold=hold, mark=admit, timeout_seconds=10)
    first = served.connect()
    second = served.connect()
    served.ask("mark", first)
    served.ask("mark", second)
    served.ask("mark", first)
    third = served.connect()
    fourth = served.connect()
    served.ask("mark", third)
    served.ask("mark", fourth)  # closes the second: idle longest
    served.ask("mark", first)
    with pytest.raises((OSError, HTTPException)):
        post(second, review())
    asking = [
        threading.Thread(target=served.ask, args=("hold", item)) for item in (first, third, fourth)
    ]
    for item in asking:
        item.start()
        assert entered.acquire(timeout=3)
    with pytest.raises((OSError, HTTPException)):
        served.ask("mark")
    release.set()
    for element in asking:
        element.join()
    assert served.ask("mark")["allowed"]
