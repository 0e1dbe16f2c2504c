"""Things that go wrong between a client and the API server, made to go wrong.

`TcpProxy` hurts connections, and knows nothing of their content. `HttpProxy` speaks HTTP: it
sees each request, and may answer it itself, drop it, or change where it goes. Behind both is the
real API server.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import attrs

RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close with a reset


class TcpProxy:
    """Forwards connections to `url` until a test changes its mode."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self._target = (address.hostname, address.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._pairs: list[_Pair] = []
        self._lock = threading.Lock()
        self.accepted = 0
        self.refuses = False
        """Whether new connections are closed at once, as if no server listened."""
        self.delay = 0.0
        """Seconds by which each piece of an answer is late."""
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._listener.getsockname()[1]}"

    def cut(self) -> None:
        """Resets all connections of this moment."""
        for pair in self._take_all():
            pair.reset()

    def stall(self) -> None:
        """Connections of this moment stay open, and carry nothing any more."""
        with self._lock:
            for pair in self._pairs:
                pair.unresponsive = True

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept()
        self._listener.close()
        self.cut()

    def _take_all(self) -> list[_Pair]:
        with self._lock:
            pairs = self._pairs
            self._pairs = []
        return pairs

    def _connect(self) -> socket.socket:
        return socket.create_connection(self._target)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                self.accepted += 1
                try:
                    server = None if self.refuses else self._connect()
                except OSError:
                    server = None
                if server is None:
                    client.close()
                    continue
                pair = _Pair(client, server)
                with self._lock:
                    self._pairs.append(pair)
                threading.Thread(target=pair.pump, args=(client, server), daemon=True).start()
                threading.Thread(
                    target=pair.pump, args=(server, client, lambda: self.delay), daemon=True
                ).start()


class Balancer(TcpProxy):
    """Forwards each connection to one of several addresses, those that are ready first."""

    def __init__(self, ready: Callable[[], Sequence[tuple[str, int]]]) -> None:
        super().__init__("https://127.0.0.1:0")
        self._ready = ready

    def _connect(self) -> socket.socket:
        targets = list(self._ready())
        offset = self.accepted % len(targets) if targets else 0
        for target in targets[offset:] + targets[:offset]:
            with contextlib.suppress(ConnectionRefusedError):
                return socket.create_connection(target)
        raise ConnectionRefusedError


@attrs.define(eq=False)
class _Pair:
    client: socket.socket
    server: socket.socket
    unresponsive: bool = False

    def pump(self, source, sink, delay: Callable[[], float] = lambda: 0.0) -> None:
        try:
            while data := source.recv(65536):
                if delay():
                    time.sleep(delay())
                if not self.unresponsive:
                    sink.sendall(data)
        except OSError:
            pass
        if not self.unresponsive:
            self._shut(source)
            self._shut(sink)

    def reset(self) -> None:
        for end in (self.client, self.server):
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            self._shut(end)
            end.close()

    @staticmethod
    def _shut(end: socket.socket) -> None:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@attrs.frozen
class Answer:
    """An answer of the proxy itself."""

    status: int
    body: bytes = b"{}"
    headers: dict[str, str] = attrs.field(factory=dict)


def status(code: int, reason: str, **headers: str) -> Answer:
    """An error as the API server words it."""
    body = {"kind": "Status", "code": code, "reason": reason, "message": f"the proxy: {reason}"}
    return Answer(code, json.dumps(body).encode(), headers)


DROP = Answer(0)
"""No answer at all: the connection is closed when the request has arrived."""

Edit = Callable[[str, str, Iterator[bytes]], Iterator[bytes]]
"""Method, target and pieces of an answer of the API server to the pieces to send."""

Rule = Callable[[str, str], str | Answer]
"""Method and target to the target to forward it to, or the answer."""


class HttpProxy:
    """Forwards requests to the API server as its administrator; plain HTTP in front."""

    def __init__(self, environment) -> None:
        self.requests: list[tuple[str, str]] = []
        """Method and target of every request that came."""
        self.rule: Rule = lambda _method, target: target
        self.edit: Edit = lambda _method, _target, pieces: pieces
        self.headers: dict[str, str] = {}
        """Added to the answers of the API server."""
        trust = ssl.create_default_context(cafile=str(environment.ca_file))
        address = urlsplit(environment.url)
        self.connect = lambda: http.client.HTTPSConnection(
            address.hostname, address.port, context=trust, timeout=60
        )
        self.token = environment.admin_token
        self._server = _Server(self)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def count(self, method: str) -> int:
        return sum(sent == method for sent, _ in self.requests)

    def cut(self) -> None:
        """Ends all connections of this moment."""
        for client in list(self._server.open):
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self.cut()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, proxy: HttpProxy) -> None:
        self.proxy = proxy
        self.open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    def process_request(self, request, client_address) -> None:
        self.open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request) -> None:
        self.open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a client that closes its connection."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        proxy = self.server.proxy
        proxy.requests.append((self.command, self.path))
        answer = proxy.rule(self.command, self.path)
        if answer is DROP:
            self.close_connection = True
        elif isinstance(answer, Answer):
            self._send(answer.status, iter([answer.body]), **answer.headers)
        else:
            self._forward(proxy, answer, body)

    do_GET = do_POST = do_PATCH = do_DELETE = _handle  # noqa: N815

    def _forward(self, proxy: HttpProxy, target: str, body: bytes) -> None:
        server = proxy.connect()
        try:
            headers = {"Authorization": f"Bearer {proxy.token}"}
            headers["Content-Type"] = self.headers.get("Content-Type", "application/json")
            server.request(self.command, target, body or None, headers)
            response = server.getresponse()
            pieces = proxy.edit(self.command, target, iter(lambda: response.read1(65536), b""))
            self._send(response.status, pieces, **proxy.headers)
        except OSError:
            self.close_connection = True
        finally:
            server.close()

    def _send(self, code: int, pieces: Iterator[bytes], **headers: str) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in pieces:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:
        pass


def kubeconfig(path: Path, server: str, ca_file: Path | None = None, **user: object) -> Path:
    """Writes a kubeconfig for `server`; `user` is its user's entry."""
    cluster = {"server": server}
    if ca_file is not None:
        cluster["certificate-authority"] = str(ca_file)
    path.write_text(
        json.dumps(
            {
                "clusters": [{"name": "c", "cluster": cluster}],
                "users": [{"name": "u", "user": user}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    return path
