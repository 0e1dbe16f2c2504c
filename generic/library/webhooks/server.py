"""WebhookServer: serves webhooks over TLS, in one thread for each connection.

Every resource of a client is bounded: connections, the size of a request, the time to send it and
the time of a handler. The thread of a connection runs the handler; if that takes too long, a timer
answers in its place and closes the connection. Not here: what a webhook answers (`review`), and
the life of certificates (`certificates`).
"""

import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any

import httptools
from msgspec import Struct, field

from actuator.errors import ConfigurationError
from actuator.interface import Client
from generic.controller.health import Address
from generic.controller.metrics.webhooks import WebhookMetrics
from generic.kube.timers import Timers
from generic.library.webhooks.review import Answer, InvalidReview, Request, evaluate, failure, parse
from generic.library.webhooks.webhook import Webhook

logger = logging.getLogger(__name__)

CONNECTIONS = 512
"""Maximum open connections; one more closes the connection that was idle longest."""
AT_ONCE = 32
"""Maximum concurrent calls of a webhook's handler, abandoned ones included."""
UNANSWERED = 256
"""Maximum requests of a webhook that are handled or wait for a handler, so that one webhook leaves
connections for the others."""
MAX_BODY = 8 * 2**20
"""Bytes; a review has two objects, and the API server accepts objects of 3 MiB."""
LARGE = 512 * 1024
"""Bytes of a large request. A few million values in 8 MiB need hundreds of MiB as objects."""
LARGE_AT_ONCE = 4
"""Maximum concurrent large requests; the others wait until one has ended."""
MAX_HEAD = 64 * 1024
IDLE_SECONDS = 120.0
"""Longer than the 90 s after which the API server closes an idle connection: if both closed it at
the same time, a request could be lost."""
REQUEST_SECONDS = 10.0
"""Seconds for a TLS handshake, and for a whole request from its first byte."""
_PAUSE = 0.05
"""Seconds between two attempts if the process has no resources left."""
_LINGER_SECONDS = 1.0
"""Seconds in which the rest of a refused request is read and dropped."""
_MARGIN = 0.5
"""Seconds before the API server's timeout at which a handler is abandoned."""
_CHUNK = 16 * 1024
"""Bytes; the size of a TLS record."""
CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"


def server_context(certificate_file: str, key_file: str) -> ssl.SSLContext:
    """Return the TLS settings of a server: version 1.2 or later, forward secrecy.

    Raises OSError (ssl.SSLError) if the files do not fit.
    """
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    tls.set_ciphers(CIPHERS)
    tls.set_alpn_protocols(["http/1.1"])
    tls.load_cert_chain(certificate_file, key_file, password="")
    return tls


Send = Callable[[bytes, bool], None]
"""Send a body; whether the connection may be kept."""


class _Refused(Exception):
    """The request is answered with this HTTP status, and its connection closed."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class _Parsed:
    """Collects one request; httptools calls its methods."""

    def __init__(self) -> None:
        self.url = b""
        self.headers: dict[bytes, bytes] = {}
        self.body = bytearray()
        self.complete = False
        self.size = 0
        """The bytes received."""
        self._has_head = False

    def count(self, size: int) -> None:
        """Count the bytes received, those that the parser keeps to itself included."""
        self.size += size
        if self.size > MAX_HEAD + (MAX_BODY if self._has_head else 0):
            raise _Refused(413)

    def on_message_begin(self) -> None:
        if self.complete:  # the next request, sent before the answer
            raise _Refused(400)

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        self._has_head = True
        length = self.headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > MAX_BODY:
            raise _Refused(413)

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.complete = True


class _Served(Struct, eq=False):
    """A webhook, with its limits on concurrent requests."""

    webhook: Webhook
    calls: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(AT_ONCE))
    unanswered: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(UNANSWERED))


class WebhookServer:
    """Serves between `start` and `stop`."""

    def __init__(
        self,
        webhooks: Iterable[Webhook],
        address: Address,
        client: Client,
        timers: Timers,
        metrics: WebhookMetrics,
    ) -> None:
        """`client` is passed to the handlers."""
        self.address = address
        self.large = threading.Semaphore(LARGE_AT_ONCE)
        self._paths = {one.path.encode(): _Served(one) for one in webhooks}
        self._client = client
        self._timers = timers
        self._metrics = metrics
        self._tls: ssl.SSLContext | None = None
        self._listener: socket.socket | None = None
        self._connections: dict[_Connection, None] = {}
        self._lock = threading.Lock()
        self._draining = self._stopping = False

    def use(self, tls: ssl.SSLContext) -> None:
        """Use these TLS settings for each new connection."""
        self._tls = tls

    @property
    def draining(self) -> bool:
        """Whether connections are closed after their next answer."""
        return self._draining

    @property
    def listening(self) -> bool:
        """Whether the server accepts connections."""
        return self._listener is not None and not self._draining

    def start(self) -> None:
        """Start to listen, and set `address` to the real port. Raises ConfigurationError."""
        host = self.address.host
        everywhere = not host and socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if everywhere or ":" in host else socket.AF_INET
        try:
            self._listener = socket.create_server(
                (host, self.address.port), family=family, backlog=128, dualstack_ipv6=everywhere
            )
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {self.address}: {error.strerror or error}; "
                "set another --webhook-config-server-port"
            ) from error
        self.address = Address(host, self._listener.getsockname()[1])
        thread = threading.Thread(
            target=self._accept, args=(self._listener,), name="webhooks", daemon=True
        )
        thread.start()

    def drain(self) -> None:
        """Close each connection after its next answer; new ones are still accepted."""
        self._draining = True

    def stop(self, seconds: float) -> bool:
        """Stop listening, let running requests end, close all connections.

        Return False if requests were still running after `seconds`.
        """
        self._draining = self._stopping = True
        if self._listener is not None:
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)  # ends the wait for a connection
            self._listener.close()
        end = time.monotonic() + seconds
        while (busy := self._is_busy()) and time.monotonic() < end:
            time.sleep(0.01)
        for connection in list(self._connections):
            connection.interrupt()
        return not busy

    def _is_busy(self) -> bool:
        return any(one.busy for one in list(self._connections))

    def _accept(self, listener: socket.socket) -> None:
        while not self._stopping:
            try:
                accepted, _ = listener.accept()
            except OSError:
                time.sleep(_PAUSE)  # no file descriptor is left: others close theirs
                continue
            self._begin(_Connection(self, accepted))

    def _begin(self, connection: "_Connection") -> None:
        """Serve a connection, if there is room for it or another one can be closed."""
        with self._lock:
            if len(self._connections) >= CONNECTIONS:
                idle = [one for one in list(self._connections) if not one.busy]
                if not idle:
                    connection.close()
                    return
                longest = min(idle, key=lambda one: one.since)
                longest.interrupt()
                del self._connections[longest]
            self._connections[connection] = None
        try:
            threading.Thread(target=connection.run, name="webhook", daemon=True).start()
        except RuntimeError:  # no thread is left
            logger.exception("webhook connection failed")
            connection.close()
            self.forget(connection)

    def forget(self, connection: "_Connection") -> None:
        """Forget a connection that ended."""
        with self._lock:
            self._connections.pop(connection, None)

    def secured(self, raw: socket.socket) -> ssl.SSLSocket:
        """Return the connection after its TLS handshake. Raises OSError."""
        if self._tls is None:
            raise OSError("no certificate yet")
        return self._tls.wrap_socket(raw, server_side=True)

    def answer(self, parsed: _Parsed, method: bytes, send: Send) -> bool:
        """Answer a request in time; return False if the time was over. Raises _Refused."""
        served = self._route(parsed, method)
        webhook = served.webhook
        try:
            request = parse(bytes(parsed.body))
        except InvalidReview as error:
            fields = {"webhook": webhook.name, "error": str(error)}
            logger.warning("invalid AdmissionReview", extra={"fields": fields})
            raise _Refused(400) from None
        exchange = _Exchange(webhook, self._metrics, send)
        limit = max(webhook.timeout_seconds - _MARGIN, _MARGIN)
        late = failure(webhook, request.uid, f"the handler did not end within {limit:g} s")
        timer = self._timers.call_later(limit, lambda: exchange.end(late, keep=False))
        try:
            answer = self._evaluate(served, request, limit)
        finally:
            timer.cancel()
        return exchange.end(answer or late)

    def _evaluate(self, served: _Served, request: Request, limit: float) -> Answer | None:
        """Return the answer; None if no handler was free in time."""
        if not served.unanswered.acquire(blocking=False):
            return failure(served.webhook, request.uid, f"{UNANSWERED} requests are unanswered")
        try:
            if not served.calls.acquire(timeout=limit):
                return None
            try:
                return evaluate(served.webhook, request, self._client)
            finally:
                served.calls.release()
        finally:
            served.unanswered.release()

    def _route(self, parsed: _Parsed, method: bytes) -> _Served:
        served = self._paths.get(parsed.url.partition(b"?")[0])
        if served is None:
            raise _Refused(404)
        if method != b"POST":
            raise _Refused(405)
        media_type, _, _ = parsed.headers.get(b"content-type", b"").partition(b";")
        if media_type.strip().lower() != b"application/json":
            raise _Refused(415)
        return served


class _Exchange:
    """One request: its first answer is sent, counted and logged."""

    def __init__(self, webhook: Webhook, metrics: WebhookMetrics, send: Send) -> None:
        self._webhook = webhook
        self._metrics = metrics
        self._send = send
        self._lock = threading.Lock()
        self._ended = False
        self._began = time.monotonic()
        metrics.began(webhook.name)

    def end(self, answer: Answer, *, keep: bool = True) -> bool:
        """Send the answer, unless another was sent before; return whether this one was sent.

        The connection cannot be kept if its thread is still in the handler.
        """
        with self._lock:
            if self._ended:
                return False
            self._ended = True
        name = self._webhook.name
        outcome = "failed" if answer.failed else "allowed" if answer.allowed else "denied"
        try:
            self._send(answer.encode(), keep)
        finally:
            self._metrics.ended(name, time.monotonic() - self._began, outcome)
        if answer.message:
            fields = {"webhook": name, "request": answer.uid, "reason": answer.reason}
            log = logger.error if answer.failed else logger.info
            log(f"request {outcome}", extra={"fields": fields})
        return True


class _Connection:
    """One connection, and the thread that serves it; only that thread closes the socket."""

    def __init__(self, server: WebhookServer, raw: socket.socket) -> None:
        self.busy = False
        """Whether a request has begun and is not answered."""
        self.since = time.monotonic()
        """When it was idle last."""
        self._server = server
        self._socket = raw
        self._is_large = False

    def run(self) -> None:
        """Serve requests until the connection ends."""
        try:
            self._socket.settimeout(REQUEST_SECONDS)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket = self._server.secured(self._socket)
            while self._serve_one():
                pass
        except OSError:
            logger.debug("webhook client disconnected")
        except Exception:  # the server stays up whatever happens to one connection
            logger.exception("webhook connection failed")
        finally:
            self.close()
            self._server.forget(self)

    def interrupt(self) -> None:
        """End the connection, also while its thread waits for data."""
        with suppress(OSError):
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # not ssl's: it is no handshake

    def close(self) -> None:
        """Release the socket."""
        self.interrupt()
        self._socket.close()

    def _serve_one(self) -> bool:
        """Serve one request; return False if the connection must be closed."""
        parsed = _Parsed()
        parser = httptools.HttpRequestParser(parsed)
        try:
            if not self._read(parser, parsed):
                return False
            kept = bool(parser.should_keep_alive())
            return self._server.answer(parsed, parser.get_method(), partial(self._answer, kept))
        except _Refused as refused:
            self._refuse(refused.status)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            cause = error.__context__
            self._refuse(cause.status if isinstance(cause, _Refused) else 400)
        finally:
            self.busy = False
            if self._is_large:
                self._is_large = False
                self._server.large.release()
        return False

    def _refuse(self, status: int) -> None:
        """Answer a request that is not read to its end, and wait until the client has the answer.

        Closing a connection with unread data would discard the answer (RFC 9112, section 9.6).
        """
        self._send(status, b"", keep=False)
        end = time.monotonic() + _LINGER_SECONDS
        while (left := end - time.monotonic()) > 0:
            self._socket.settimeout(left)
            if not self._socket.recv(_CHUNK):
                return

    def _read(self, parser: Any, parsed: _Parsed) -> bool:
        """Read one request; return False at the end of the connection. Raises OSError."""
        self._socket.settimeout(IDLE_SECONDS)
        end = 0.0
        while not parsed.complete:
            data = self._socket.recv(_CHUNK)
            if not data:
                return False
            if not self.busy:
                self.busy, end = True, time.monotonic() + REQUEST_SECONDS
            parser.feed_data(data)
            parsed.count(len(data))
            if parsed.size > LARGE and not self._is_large:
                patience = max(end - time.monotonic(), 0.0)
                self._is_large = self._server.large.acquire(timeout=patience)
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError("the request took too long")
            self._socket.settimeout(left)
        self._socket.settimeout(REQUEST_SECONDS)
        return True

    def _answer(self, kept: bool, body: bytes, keep: bool) -> None:
        """Send an answer, and end a connection that is not kept, even if the handler hangs."""
        kept = kept and keep and not self._server.draining
        self.since = time.monotonic()  # before the client can use another connection
        self._send(200, body, keep=kept)
        self.busy = False
        if not kept:
            self.interrupt()
            self._server.forget(self)

    def _send(self, status: int, body: bytes, *, keep: bool) -> None:
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Length: {len(body)}\r\n"
        if body:
            head += "Content-Type: application/json\r\n"
        if not keep:
            head += "Connection: close\r\n"
        self._socket.sendall(f"{head}\r\n".encode() + body)
