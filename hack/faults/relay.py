"""The HTTP side of the fault proxy: forwards requests and applies faults to them.

Watches are forwarded line by line (JSON only: other encodings have no lines); any other response
is read completely first. No request is retried. If the API server does not answer, the client's
connection is closed, as it would be without a proxy.

Not here: the address of the API server, certificates (proxy.py).
"""

import select
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress

from actuator.errors import ApiError
from generic.kube.access import Access
from generic.kube.transport import Response
from generic.serving.httpserver import Address, Handler, HttpServer
from generic.testing.envtest.servers import HOST
from hack.faults.requests import Effect, Fault, FaultyCall, body_of
from hack.faults.rules import Injection, Injections

_ANSWER_SECONDS = 60.0
_MAX_BODY = 100 * 1024 * 1024
"""Bytes; many times the limit of an API server."""
_LOOK_SECONDS = 0.1
"""Seconds until a held request notices that its client disconnected."""
_HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "host", "content-length", "transfer-encoding", "accept-encoding"}
)
_BROKEN = (OSError, ApiError, ValueError)
"""Errors of a lost API server; ValueError: a TLS socket that another thread closed."""


class Listener(HttpServer):
    """Listens until `stop`; nothing of a client is limited."""

    shares_port = True
    connections = 10_000
    idle_seconds = head_seconds = request_seconds = 3600.0

    def __init__(
        self, port: int, tls: ssl.SSLContext, access: Access, faults: Injections[Fault]
    ) -> None:
        super().__init__(Address(HOST, port), Relay)
        self.tls = tls
        self.access = access
        self.faults = faults


class Relay(Handler):
    """The requests of one connection, one after another."""

    server: Listener

    def respond(self) -> None:
        """Forward a request, unless a fault hits it."""
        length = self.find_length(_MAX_BODY)
        if length is None:
            return
        body = self.rfile.read(length)
        if self.server.draining:  # it was accepted at the last moment
            self.close_connection = True
            return
        call = FaultyCall.parse(self.command, self.path)
        injection = self.server.faults.pick(lambda fault: fault.hits(call))
        if injection is not None and not self._survives(injection):
            return
        dropped = injection is not None and injection.rule.effect is Effect.DROP_ANSWER
        self._forward(call, body, answers=not dropped)

    do_PUT = do_PATCH = do_DELETE = Handler.do_GET  # noqa: N815 - http.server's names

    def _survives(self, injection: Injection[Fault]) -> bool:
        """Apply the fault to a request; return whether it is forwarded to the API server."""
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

    def _forward(self, call: FaultyCall, body: bytes, *, answers: bool) -> None:
        try:
            response = self._ask(call, body)
            try:
                if not answers:
                    self.close_connection = True
                elif call.verb == "watch" and response.status < 300:
                    self._stream(call, response)
                else:
                    content = b"".join(response.chunks())
                    self._answer(response.status, response.headers, content)
            finally:
                response.close()
        except _BROKEN:
            self.close_connection = True

    def _ask(self, call: FaultyCall, body: bytes) -> Response:
        access = self.server.access
        headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP_BY_HOP}
        if "Authorization" not in self.headers and (authorization := access.authorization()):
            headers["Authorization"] = authorization
        read = None if call.verb == "watch" else _ANSWER_SECONDS
        target = f"{access.prefix}{self.path}"
        response = access.transport.request(self.command, target, headers, body or None, read)
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

    def _stream(self, call: FaultyCall, response: Response) -> None:
        """Forward a watch. Its connection is not reused, so its end is the end of the watch."""
        self.close_connection = True
        self._head(response.status, response.headers, "Transfer-Encoding: chunked")
        self.wfile.flush()
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
        """Apply the fault to a line; return whether the watch continues with that line."""
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
        self.wfile.flush()

    def _hold(self, injection: Injection[Fault]) -> None:
        """Wait until the fault is over or the client has disconnected."""
        seconds = injection.rule.seconds or float("inf")
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not injection.removed:
            if self._client_left():
                return

    def _hang_up(self, response: Response, over: threading.Event) -> None:
        """End the watch at the API server when its client disconnects, not at the next line."""
        while not over.is_set():
            if self._client_left():
                with suppress(OSError, ValueError):  # it has already ended
                    response.shutdown()
                return

    def _client_left(self) -> bool:
        """Wait shortly; return whether the client closed its end (it sends nothing else now)."""
        try:
            readable, _, _ = select.select([self.connection], [], [], _LOOK_SECONDS)
        except (OSError, ValueError):
            return True
        return bool(readable)


def _lines(response: Response) -> Iterator[bytes]:
    """Yield complete lines with their newline, each as soon as it arrives."""
    pending = b""
    for chunk in response.chunks():
        *lines, pending = (pending + chunk).split(b"\n")
        yield from (line + b"\n" for line in lines)
