"""The HTTP side of the fault proxy: takes requests, sends them on, and does to them what it must.

Watches go through line by line (JSON only: other encodings have
no lines); any other answer is read whole first. Nothing is ever repeated. Where the API server
does not answer, the client sees its connection closed, as it would without a proxy.

`Listener` has the loopback port, TLS, and the open connections, with a thread for each.

Not here: where the API server is, certificates (proxy.py).
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from socketserver import BaseRequestHandler, TCPServer, ThreadingMixIn
from typing import Any

import urllib3
from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse

from actuator.errors import ApiError
from generic.kube.kubeconfig import Access
from generic.testing.envtest.servers import HOST
from generic.testing.faults.requests import Call, Effect, Fault, body_of
from generic.testing.faults.rules import Injection, Injections

_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 60.0
_LOOK_SECONDS = 0.1
"""How soon a held request notices that its client left."""
_HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "host", "content-length", "transfer-encoding", "accept-encoding"}
)
_BROKEN = (HTTPError, OSError, ApiError, ValueError)
"""What a lost API server looks like; ValueError: a TLS socket that was shut by another thread."""


class Listener(ThreadingMixIn, TCPServer):
    """Listens until `close`; `speak` is what talks to a client."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_port = True
    request_queue_size = 128

    def __init__(
        self,
        port: int,
        context: ssl.SSLContext,
        speak: type[BaseRequestHandler],
        access: Access,
        faults: Injections[Fault],
    ) -> None:
        self.access = access
        self.faults = faults
        self._context = context
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__((HOST, port), speak)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening, and cut all connections."""
        self.shutdown()
        self._thread.join()
        self.server_close()
        self.cut()

    def cut(self) -> None:
        """End all connections of this moment."""
        with self._lock:
            for connection in self._open:
                _shut(connection)

    def get_request(self) -> tuple[socket.socket, Any]:
        """The next connection; its TLS handshake takes place in its own thread."""
        accepted, address = self.socket.accept()
        wrapped = self._context.wrap_socket(
            accepted, server_side=True, do_handshake_on_connect=False
        )
        with self._lock:
            self._open.add(wrapped)
        return wrapped, address

    def shutdown_request(self, request: Any) -> None:
        """End one connection."""
        with self._lock:
            self._open.discard(request)
            _shut(request)
        request.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away, or is not ours, is no news."""


class Relay(BaseHTTPRequestHandler):
    """The requests of one connection, one after another."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Listener

    def _handle(self) -> None:
        if "Transfer-Encoding" in self.headers:
            self.send_error(411)
            return
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        call = Call.parse(self.command, self.path)
        injection = self.server.faults.pick(lambda fault: fault.hits(call))
        if injection is not None and not self._survives(injection):
            return
        self._forward(call, body, answers=injection is None or not _drops(injection))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle  # noqa: N815 - http.server's names

    def _survives(self, injection: Injection[Fault]) -> bool:
        """Do to a request what the fault says; whether it goes on to the API server."""
        fault = injection.rule
        if fault.effect is Effect.ANSWER:
            after = {"Retry-After": str(fault.retry_after)} if fault.retry_after else {}
            self._answer(
                fault.status, {"Content-Type": "application/json", **after}, body_of(fault)
            )
        elif fault.effect is Effect.DELAY:
            injection.wait(fault.seconds)
        elif fault.effect is Effect.STALL:
            self._hold(injection)
        if fault.effect in (Effect.CUT, Effect.STALL):
            self.close_connection = True
        return fault.effect in (Effect.DELAY, Effect.DROP_ANSWER)

    def _forward(self, call: Call, body: bytes, *, answers: bool) -> None:
        try:
            response = self._ask(call, body)
            try:
                if not answers:
                    self.close_connection = True
                elif call.verb == "watch" and response.status < 300:
                    self._stream(call, response)
                else:
                    content = response.read(decode_content=False)
                    self._answer(response.status, response.headers, content)
            finally:
                response.close()
        except _BROKEN:
            self.close_connection = True

    def _ask(self, call: Call, body: bytes) -> BaseHTTPResponse:
        access = self.server.access
        headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP_BY_HOP}
        if "Authorization" not in self.headers and (authorization := access.authorization()):
            headers["Authorization"] = authorization
        read = None if call.verb == "watch" else _ANSWER_SECONDS
        response: BaseHTTPResponse = access.pool.urlopen(
            self.command,
            f"{access.prefix}{self.path}",
            body=body or None,
            headers=headers,
            timeout=urllib3.Timeout(connect=_CONNECT_SECONDS, read=read),
            retries=False,
            redirect=False,
            preload_content=False,
            decode_content=False,
        )
        if response.status == 401:
            access.refused(headers.get("Authorization", ""))
        return response

    def _answer(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self._head(status, headers, f"Content-Length: {len(content)}")
        self.wfile.write(content)

    def _head(self, status: int, headers: Mapping[str, str], framing: str) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in _HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header(*framing.split(": "))
        self.end_headers()

    def _stream(self, call: Call, response: BaseHTTPResponse) -> None:
        """Send a watch on. Its connection is not used again, so that what it says now is: over."""
        self.close_connection = True
        self._head(response.status, response.headers, "Transfer-Encoding: chunked")
        over = threading.Event()
        threading.Thread(target=self._hang_up, args=(response, over), daemon=True).start()
        try:
            for line in _lines(response):
                injection = self.server.faults.pick(lambda fault: fault.hits(call, line=True))
                if injection is not None and not self._line_survives(injection):
                    return
                self._chunk(line)
            self._chunk(b"")
        finally:
            over.set()

    def _line_survives(self, injection: Injection[Fault]) -> bool:
        """Do to a line what the fault says; whether the watch goes on with that line."""
        fault = injection.rule
        if fault.effect is Effect.STREAM_ERROR:
            self._chunk(b'{"type":"ERROR","object":%s}\n' % body_of(fault))
            self._chunk(b"")
        elif fault.effect is Effect.SILENCE:
            self._hold(injection)
        elif fault.effect is Effect.DELAY_LINE:
            injection.wait(fault.seconds)
        return fault.effect is Effect.DELAY_LINE

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _hold(self, injection: Injection[Fault]) -> None:
        """Do nothing, until the fault is over or the client has left."""
        seconds = injection.rule.seconds or float("inf")
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not injection.removed:
            if self._client_left():
                return

    def _hang_up(self, response: BaseHTTPResponse, over: threading.Event) -> None:
        """End the watch at the API server when its client leaves, not at the next line."""
        while not over.is_set():
            if self._client_left():
                try:
                    response.shutdown()
                except (OSError, RuntimeError, ValueError):
                    pass  # it has ended by itself
                return

    def _client_left(self) -> bool:
        """Whether the client closed its end, after a short wait: in a request it says no more."""
        try:
            readable, _, _ = select.select([self.connection], [], [], _LOOK_SECONDS)
        except (OSError, ValueError):
            return True
        return bool(readable)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: whoever injects faults counts their hits."""


def _drops(injection: Injection[Fault]) -> bool:
    return injection.rule.effect is Effect.DROP_ANSWER


def _lines(response: BaseHTTPResponse) -> Iterator[bytes]:
    """Complete lines with their ends, each as soon as it is there."""
    pending = b""
    for chunk in response.stream(amt=None, decode_content=False):
        *lines, pending = (pending + chunk).split(b"\n")
        yield from (line + b"\n" for line in lines)


def _shut(connection: socket.socket) -> None:
    """End a connection whoever uses it: ssl's own method would break a read in another thread."""
    try:
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
    except OSError:
        pass  # the other side was faster
