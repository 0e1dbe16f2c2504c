"""The API server of a tenant, which answers with as much, and as slowly, as its script says."""

from __future__ import annotations

import json
import os
import select
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from typing import Any

from actuator import Resource
from actuator.cluster import Cluster
from actuator.errors import ApiError
from generic.kube import connecting
from generic.kube.client import HttpClient, connect
from generic.kube.clock import SystemClock
from generic.kube.kubeconfig import InlineKubeconfig
from generic.library.healthchecks import HealthContext
from generic.library.healthchecks.builtin import deployment
from generic.library.healthchecks.model import Check
from generic.library.healthchecks.runs import Runs
from generic.reconciler.calls import Call, ShootClient
from generic.reconciler.operation import Operation
from generic.testing.envtest.certificates import LocalAuthority

__all__ = [
    "CLIENTS",
    "DEPLOYMENTS",
    "DISCOVERY",
    "LISTS",
    "NODES",
    "OK",
    "PHASES",
    "PROXIES",
    "TenantServer",
    "chunk",
    "head",
    "late",
    "playing",
    "proxied",
    "slow_names",
    "whole",
]

NODES = Resource("v1", "nodes", namespaced=False)
DEPLOYMENTS = Resource("apps/v1", "deployments")
OK = b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"kind":"Node"}'
_BLOCK = 64 * 1024
_ENVIRONMENT = threading.Lock()
_LARGE = bytes(8 * 2**20)

Step = tuple[bytes, int, float]
"""A piece, how often it is sent, and the seconds in front of each."""
Script = Callable[["TenantServer", socket.socket], None]


@cache
def _authority() -> tuple[LocalAuthority, bytes, bytes]:
    made = LocalAuthority.new("a-tenant")
    pair = made.serving(["127.0.0.1", "tenant.example"])
    return made, pair.certificate, pair.key


def _context(tickets: int | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _, certificate, key = _authority()
    with tempfile.NamedTemporaryFile() as file:  # OpenSSL reads files only
        file.write(certificate + key)
        file.flush()
        context.load_cert_chain(file.name)
    if tickets is not None:
        context.num_tickets = tickets
    return context


class TenantServer:
    """Runs its script for each connection, from the accepted TCP connection on."""

    def __init__(self, script: Script, tickets: int | None = None) -> None:
        self.script = script
        self.tls = _context(tickets)
        self.over = threading.Event()
        self.accepted = 0
        self.requests: list[bytes] = []
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def client(
        self, host: str = "127.0.0.1", seconds: float = 30.0, proxy: TenantServer | None = None
    ) -> HttpClient:
        """A client as of a kubeconfig in a Secret, whose requests have this time."""
        with _ENVIRONMENT, ExitStack() as stack:  # read while the client is made
            if proxy:
                stack.callback(os.environ.pop, "https_proxy")
                os.environ["https_proxy"] = f"http://127.0.0.1:{proxy.port}"
            return connect(self.kubeconfig(host), connections=2).within(seconds)

    def kubeconfig(self, host: str = "127.0.0.1") -> InlineKubeconfig:
        ca = _authority()[0].key_pair.certificate
        return InlineKubeconfig(f"https://{host}:{self.port}", ca, token="a-token")

    def secured(self, connection: socket.socket) -> socket.socket:
        secured = self.tls.wrap_socket(connection, server_side=True)
        self._open.append(secured)
        return secured

    def requested(self, connection: socket.socket) -> bytes:
        """Reads a request without its body. Raises OSError at the end of the connection."""
        read = b""
        while b"\r\n\r\n" not in read:
            data = connection.recv(_BLOCK)
            if not data:
                raise OSError("the client left")
            read += data
        self.requests.append(read)
        return read

    def play(self, connection: socket.socket, steps: Iterable[Step]) -> None:
        """Sends; pieces without a pause go in blocks, so that a large answer costs no memory."""
        for piece, count, pause in steps:
            many = 1 if pause else max(1, _BLOCK // max(1, len(piece)))
            block = piece * many
            for number in range(0, count, many):
                if self.over.wait(pause) if pause else self.over.is_set():
                    return
                left = count - number
                connection.sendall(block if left >= many else piece * left)

    def close(self) -> None:
        self.over.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            with suppress(OSError):
                socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.accepted += 1
                self._open.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError, ValueError), connection:
            self.script(self, connection)


def playing(*answers: Iterable[Step], closes: bool = False) -> Script:
    """Plays one answer for each request, the last one again and again, unless it `closes` then."""

    def script(server: TenantServer, connection: socket.socket) -> None:
        with server.secured(connection) as secured:
            for steps in answers:
                server.requested(secured)
                server.play(secured, steps)
            while not closes:
                server.requested(secured)
                server.play(secured, answers[-1])

    return script


def chunk(text: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(text), text)


def head(*lines: str, status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "\r\n"]).encode()


def whole(value: Any, *, items: bool = False, status: str = "200 OK") -> list[Step]:
    """An answer with a JSON value, or a list of these items."""
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    text = b'{"kind":"NodeList","items":%s}' % text if items else text
    return [(head(f"Content-Length: {len(text)}", status=status) + text, 1, 0.0)]


def _large(piece: bytes, count: int, start: bytes = b"[", end: bytes = b"]") -> list[Step]:
    """A list whose items are `start`, then a piece again and again, and `end`; made when sent."""
    first = b'{"kind":"NodeList","metadata":{"continue":"more"},"items":' + start
    size = len(first) + len(piece) * count + len(end) + 1
    length = head(f"Content-Length: {size}")
    return [(length + first, 1, 0.0), (piece, count, 0.0), (end + b"}", 1, 0.0)]


def _value(start: bytes, piece: bytes, count: int, end: bytes) -> list[Step]:
    """Any text of this form, made when sent."""
    length = head(f"Content-Length: {len(start) + len(piece) * count + len(end)}")
    return [(length + start, 1, 0.0), (piece, count, 0.0), (end, 1, 0.0)]


_M = 10**6
LISTS: dict[str, list[Step]] = {
    "15 MiB of objects": _large(b"{},", 5 * _M, end=b"{}]"),
    "8 MB of objects": _large(b"{},", 8 * _M // 3, end=b"{}]"),
    "just so many objects": _large(b"{},", 300_000, end=b"{}]"),
    "one object of fields": _large(b'"a":1,', 200_000, b"[{", b'"b":1}]'),
    "nested": _large(b'{"a":{"a":{"a":{}}}},', 70_000, b'[{"x":[', b"1]}]"),
    "strings": _large(b'"ab",', 400_000, b'[{"x":[', b"1]}]"),
    "a string": _large(b"x" * 1000, 7900, b'["', b'"]'),
    "a wide string": _large(b"x" * 1000, 6900, '["\U0001f600'.encode(), b'"]'),
    "pages": _large(b'{"metadata":{"name":"a","labels":{"a":"b","c":"d"}}},', 99, end=b"{}]"),
    "large pages": _large(b'{"text":"' + b"x" * 20_000 + b'"},', 99, end=b"{}]"),
    "a text": _large(b"x" * 1000, 15_000, b"", b""),
    "an error": [(head(status="500 Oops"), 1, 0.0), (b'{"a":{}},', 2 * _M, 0.0)],
    "a chunk extension": [
        (head("Transfer-Encoding: chunked") + b"1;", 1, 0.0),
        (b"x" * 1000, 100_000, 0.0),
    ],
    "chunk extensions": [
        (head("Transfer-Encoding: chunked"), 1, 0.0),
        (b"1;" + b"x" * 60_000 + b"\r\n \r\n", 10**5, 0.0),
    ],
    "bodies of no answer": [
        (head("Content-Length: 60000", status="099 No") + b"x" * 60_000, 3000, 0.0)
    ],
    "quotes": _value(b"[" * 201, b'"', 8 * _M, b""),
    "strings of brackets": _value(b"[" * 201, b'"]]"', 2 * _M, b""),
    "a string without an end": _value(b"[" * 201 + b'"', b'\\"', 4 * _M, b""),
    "hidden levels": whole(
        ('{"a":"\u2201","b":' + "[" * 600 + "]" * 600 + ',"c":"\u2201"}').encode("utf-16-le")
    ),
    "a long message": whole(
        {
            "metadata": {},
            "status": {
                "conditions": [
                    {
                        "type": "Available",
                        "status": "False",
                        "message": "error during apply of object " * 30_000,
                    }
                ]
            },
        }
    ),
    "a kind that is long when shown": _value(b'{"items":[],"kind":["', b"\x7f", 8 * _M, b'"]}'),
}
"""Answers to a list that are as large as a server can make them."""

_CHUNKED = head("Transfer-Encoding: chunked")
_DRIP = 0.02


def _discovery(pause: float) -> list[list[Step]]:
    """404, then a group with versions without end, none of which has resources."""
    versions = [{"groupVersion": "apps/v1"}] * 5000
    empty = b'{"resources":[]}'
    return [
        whole({"kind": "Status", "message": "x"}, status="404 Not Found"),
        whole({"groups": [{"name": "apps", "versions": versions}]}),
        [(head(f"Content-Length: {len(empty)}") + empty, 1, pause)],
    ]


DISCOVERY = _discovery(0.0)


def _dripping(start: bytes, piece: bytes) -> Script:
    return playing([(start, 1, 0.0), (piece, 10**6, _DRIP)])


def _silent(server: TenantServer, _connection: socket.socket) -> None:
    server.over.wait(60)


def _slow_handshake(server: TenantServer, connection: socket.socket) -> None:
    """A record of handshake data that never ends."""
    server.play(connection, [(b"\x16\x03\x03\x40\x00", 1, 0.0), (b"\x02", 10**6, _DRIP)])


def _slow_reader(server: TenantServer, connection: socket.socket) -> None:
    with server.secured(connection) as secured:
        while not server.over.wait(_DRIP):
            secured.recv(_BLOCK)


def _flood(server: TenantServer, connection: socket.socket) -> None:
    """Session tickets (see `tickets`), which are no data: `wrap_socket` sends them all."""
    with server.secured(connection):
        server.over.wait(60)


PHASES: dict[str, Script] = {
    "connected": _silent,
    "TLS": _slow_handshake,
    "request": _slow_reader,
    "tickets": _flood,
    "silence": playing([]),
    "status line": _dripping(b"HTTP/1.1 ", b"2"),
    "head": _dripping(b"HTTP/1.1 200 OK\r\nX: ", b"x"),
    "headers": _dripping(b"HTTP/1.1 200 OK\r\n", b"X: x\r\n"),
    "1xx": _dripping(b"", head(status="102 Processing")),
    "body": _dripping(head("Content-Length: 100000"), b" "),
    "body until the end": _dripping(head(), b" "),
    "no end": playing([(head() + b"{}", 1, 0.0)]),
    "chunks": _dripping(_CHUNKED, b"1\r\n \r\n"),
    "chunk size": _dripping(_CHUNKED, b"0"),
    "chunk extension": _dripping(_CHUNKED + b"1;", b"x"),
    "chunk end": _dripping(_CHUNKED + b"2\r\n{}", b""),
    "trailer": _dripping(_CHUNKED + b"2\r\n{}\r\n0\r\nX: ", b"x"),
    "trailers": _dripping(_CHUNKED + b"2\r\n{}\r\n0\r\n", b"X: x\r\n"),
    "error": _dripping(head("Transfer-Encoding: chunked", status="500 Oops"), b"1\r\n \r\n"),
    "pages": playing(
        [
            (head("Content-Length: 34"), 1, 0.1),
            (b'{"metadata":{"continue":"again"}}\n', 1, 0.0),
        ]
    ),
    "no status": _dripping(head("Content-Length: 100000", status="099 No"), b" "),
    "discovery": playing(*_discovery(0.1)),
}
"""Answers that never end, by the phase of a request in which they hang."""


def late(phases: Iterable[str], limit: float, slack: float) -> tuple[list[str], list[str]]:
    """The phases in which a request outlives its limit, and those in which it has no error of ours.

    All at once. Late requests are ended then.
    """
    names = list(phases)
    servers = [TenantServer(PHASES[name], 10**6 if name == "tickets" else None) for name in names]
    try:
        with ThreadPoolExecutor(len(names)) as pool:
            clients = [server.client(seconds=limit) for server in servers]
            began = time.monotonic()
            futures = [pool.submit(_ask, *pair) for pair in zip(names, clients, strict=True)]
            while time.monotonic() < began + limit + slack and not all(f.done() for f in futures):
                time.sleep(0.01)
            behind = [n for n, f in zip(names, futures, strict=True) if not f.done()]
            for server in servers:
                server.close()
        wrong = [n for n, f in zip(names, futures, strict=True) if f.result() != "ApiError"]
        return behind, wrong
    finally:
        for server in servers:
            server.close()


def _checked(client: HttpClient, seconds: float) -> Any:
    """A health check, in a thread of its own as in a manager."""
    ctx = HealthContext(None, Cluster(), client, lambda: client)
    check = Check("SystemComponentsHealthy", deployment("a", shoot_namespace="b"))
    [found] = Runs().run("a uid", [partial(check.run, ctx)], seconds + 60.0)
    if isinstance(found, Exception):
        raise ApiError(0, str(found))
    return found


def _called(client: HttpClient, seconds: float) -> Any:
    """`ctx.shoot` of an actuator, in a call that has so many seconds."""
    call = Call(Operation.RECONCILE, client, SystemClock(), lambda: None, seconds)
    return ShootClient(client, call, "shoot--a--b", threading.Semaphore()).list(NODES)


CLIENTS: dict[str, Callable[[HttpClient, float], Any]] = {
    "get": lambda client, _: client.get(NODES, "a"),
    "get of a group": lambda client, _: client.get(DEPLOYMENTS, "a", "b"),
    "list": lambda client, _: client.list(NODES),
    "create": lambda client, _: client.create(NODES, {"metadata": {"name": "a"}}),
    "apply": lambda client, _: client.apply(NODES, {"metadata": {"name": "a"}}),
    "patch": lambda client, _: client.patch(NODES, "a", "", {"metadata": {}}),
    "patch of a status": lambda client, _: client.patch(
        DEPLOYMENTS, "a", "b", {"status": {}}, subresource="status"
    ),
    "delete": lambda client, _: client.delete(NODES, "a"),
    "large request": lambda client, _: client.send("POST", "/api/v1/nodes", body=_LARGE),
    "health check": _checked,
    "ctx.shoot": _called,
}
"""All ways in which a manager asks a tenant's server; the numbers are the seconds of a request."""
_OF_PHASE = {"request": "large request", "pages": "list", "discovery": "get of a group"}


def _ask(phase: str, client: HttpClient) -> str:
    try:
        CLIENTS[_OF_PHASE.get(phase, "get")](client, 0.0)
    except ApiError:
        return "ApiError"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "an answer"


@contextmanager
def slow_names(monkeypatch: Any, seconds: float) -> Iterator[list[str]]:
    """Names below .example take so long to resolve, and then are this machine; yields the names."""
    asked: list[str] = []
    real = socket.getaddrinfo
    over = threading.Event()

    def getaddrinfo(host: str, port: int, *given: Any, **named: Any) -> Any:
        if not str(host).endswith(".example"):
            return real(host, port, *given, **named)
        if named.get("flags", 0) & socket.AI_NUMERICHOST:
            raise socket.gaierror(socket.EAI_NONAME, "not a number")
        asked.append(host)
        over.wait(seconds)
        return real("127.0.0.1", port, *given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", getaddrinfo)
        yield asked
        over.set()
        while connecting._LOOKUPS:
            time.sleep(0.01)


def _forward(server: TenantServer, connection: socket.socket) -> None:
    target = server.requested(connection).split()[1].decode().rpartition(":")[2]
    with socket.create_connection(("127.0.0.1", int(target))) as other:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        _pump(connection, other)


def _answering(*steps: Step) -> Script:
    """A proxy that answers with these pieces, and forwards nothing."""

    def script(server: TenantServer, connection: socket.socket) -> None:
        server.requested(connection)
        server.play(connection, steps)
        server.over.wait(60)

    return script


PROXIES: dict[str, Script] = {
    "forwards": _forward,
    "slow": _answering((b"HTTP/1.1 200 OK\r\nX: ", 1, 0.0), (b"x", 10**6, _DRIP)),
    "long": _answering((b"HTTP/1.1 200 OK\r\n", 1, 0.0), (b"X: x\r\n", 10**6, 0.0)),
    "refuses": _answering((b"HTTP/1.1 403 No\r\n\r\n", 1, 0.0)),
    "waits": _answering((head(status="102 Processing"), 10**6, _DRIP)),
    "silent": _silent,
    "talks": _answering(
        (b"HTTP/1.1 200 OK\r\n\r\n", 1, 0.0), (b"\x16\x03\x03\x00\x00", 10**6, 0.0)
    ),
}
"""Answers to CONNECT, by name."""


@contextmanager
def proxied(monkeypatch: Any, *, is_slow: bool = False) -> Iterator[None]:
    """All connections go through a proxy, which forwards them, or never ends its answer."""
    proxy = TenantServer(PROXIES["slow" if is_slow else "forwards"])
    with ExitStack() as stack, monkeypatch.context() as patch:
        stack.callback(proxy.close)
        for name in ("http_proxy", "all_proxy", "no_proxy"):
            patch.delenv(name, raising=False)
            patch.delenv(name.upper(), raising=False)
        patch.setenv("https_proxy", f"http://127.0.0.1:{proxy.port}")
        yield


def _pump(one: socket.socket, other: socket.socket) -> None:
    while True:
        for readable in select.select([one, other], [], [])[0]:
            data = readable.recv(4096)
            (other if readable is one else one).sendall(data)
            if not data:
                return
