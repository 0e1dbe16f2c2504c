"""WebhookServer: serves webhooks over TLS, in one thread for each connection.

The thread of a connection runs the handler; if that takes too long, a timer answers in its place
and closes the connection. Not here: what a webhook answers (`review`), and the life of
certificates (`certificates`).
"""

import logging
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import Struct, field

from actuator.errors import ConfigurationError
from actuator.interface import Client
from generic.kube.certificates import KeyPair
from generic.kube.timers import Timers
from generic.library.webhooks.review import (
    InvalidReview,
    ReviewAnswer,
    ReviewRequest,
    evaluate,
    failure,
    parse,
)
from generic.library.webhooks.webhook import Webhook
from generic.serving.httpserver import Address, Handler, HttpServer
from generic.serving.metrics.webhooks import WebhookMetrics

logger = logging.getLogger(__name__)

AT_ONCE = 32
"""Maximum concurrent calls of a webhook's handler, abandoned ones included."""
UNANSWERED = 256
"""Maximum requests of a webhook that are handled or wait for a handler, so that one webhook leaves
connections for the others."""
MAX_BODY = 6 * 2**20
"""Bytes; a review has two objects, of at most 3 MiB in a request and 1.5 MiB in etcd."""
MAX_SMALL = 64 * 1024
"""Bytes of a small request, which waits for no large one."""
MAX_HANDLED = MAX_BODY
MAX_HANDLED_SMALL = 2 * 2**20
"""Bytes of large requests that are handled at the same time, and of small ones. As objects and
their copies they can need fifty times as much; both together fit into 512 MiB."""
MAX_RECEIVED = 8 * MAX_BODY
"""Bytes of bodies in memory, each without its first MAX_SMALL."""
_MARGIN = 0.5
"""Seconds before the API server's timeout at which a handler is abandoned."""
_JSON = "application/json"
CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"


def server_context(pair: KeyPair) -> ssl.SSLContext:
    """Return the TLS settings of a server: version 1.2 or later, forward secrecy.

    Raises ConfigurationError. Python reads the key from a file only, which is deleted at once.
    """
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    tls.set_ciphers(CIPHERS)
    tls.set_alpn_protocols(["http/1.1"])
    with tempfile.TemporaryDirectory() as folder:  # only its owner can enter
        certificate = Path(folder, "tls.crt")
        key = Path(folder, "tls.key")
        pair.save(certificate, key)
        try:
            tls.load_cert_chain(certificate, key, password="")
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"the webhook certificate cannot be used: {error}") from error
    return tls


class _LimitedWebhook(Struct, eq=False):
    """A webhook, with its limits on concurrent requests."""

    webhook: Webhook
    calls: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(AT_ONCE))
    unanswered: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(UNANSWERED))


class _Memory:
    """A number of bytes that requests share; safe to use from any thread."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._changed = threading.Condition()

    def take(self, size: int, seconds: float) -> bool:
        """Take bytes as soon as they are free; return False if they were not in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._left >= size, seconds):
                return False
            self._left -= size
        return True

    def give(self, size: int) -> None:
        """Give bytes back."""
        with self._changed:
            self._left += size
            self._changed.notify_all()


class WebhookServer(HttpServer):
    """Serves between `start` and `stop`."""

    connections = 512
    closes_answering = False
    idle_seconds = 120.0
    """Longer than the 90 s after which the API server closes an idle connection: if both closed it
    at the same time, a request could be lost."""
    request_seconds = 10.0
    remedy = "set another --webhook-config-server-port"

    def __init__(
        self,
        webhooks: Iterable[Webhook],
        address: Address,
        client: Client,
        timers: Timers,
        metrics: WebhookMetrics,
    ) -> None:
        """`client` is passed to the handlers."""
        super().__init__(address, _ReviewHandler)
        self.small = _Memory(MAX_HANDLED_SMALL)
        self.large = _Memory(MAX_HANDLED)
        self._received: dict[socket.socket, int] = {}
        self._counting = threading.Lock()
        self.paths = {webhook.path: _LimitedWebhook(webhook) for webhook in webhooks}
        self._client = client
        self._timers = timers
        self._metrics = metrics

    def receive(self, connection: socket.socket, size: int) -> None:
        """Count bytes of a body; if there are too many, drop the one that arrives for longest.

        The bytes of a dropped one count no more, although its thread may need time to free them:
        the next chunk would drop another one.
        """
        with self._counting:
            self._received[connection] = size
            kept = dict(self._received).items()
            received = {item: size for item, size in kept if item in self._open}
            if sum(received.values()) > MAX_RECEIVED:
                self.close_oldest(received)

    def forget(self, connection: socket.socket) -> None:
        """Forget the bytes of a body."""
        self._received.pop(connection, None)

    def review(self, served: _LimitedWebhook, request: ReviewRequest, handler: Handler) -> None:
        """Answer a request in time."""
        webhook = served.webhook
        began = time.monotonic()
        self._metrics.began(webhook.name)
        limit = max(webhook.timeout_seconds - _MARGIN, _MARGIN)
        late = failure(webhook, request.uid, f"the handler did not end within {limit:g} s")

        def end(answer: ReviewAnswer, send: Callable[[int, bytes, str], None]) -> None:
            self._count(webhook.name, answer, time.monotonic() - began)
            send(200, answer.encode(), _JSON)

        timer = self._timers.call_later(limit, lambda: end(late, handler.abandon))
        answer = self._evaluate(served, request, limit) or late
        if timer.cancel():
            end(answer, handler.answer)

    def _evaluate(
        self, served: _LimitedWebhook, request: ReviewRequest, limit: float
    ) -> ReviewAnswer | None:
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

    def _count(self, name: str, answer: ReviewAnswer, seconds: float) -> None:
        outcome = "failed" if answer.failed else "allowed" if answer.allowed else "denied"
        self._metrics.ended(name, seconds, outcome)
        if answer.message:
            fields = {"webhook": name, "request": answer.uid, "reason": answer.reason}
            log = logger.error if answer.failed else logger.info
            log(f"request {outcome}", extra={"fields": fields})


class _ReviewHandler(Handler):
    server: WebhookServer

    def respond(self) -> None:
        served = self.server.paths.get(self.path.partition("?")[0])
        if served is None:
            self.send_error(404)
        elif self.command != "POST":
            self.send_error(405)
        elif self.headers.get_content_type() != _JSON:
            self.send_error(415)
        elif (length := self.find_length(MAX_BODY)) is not None:
            self._review(served, length)

    def _review(self, served: _LimitedWebhook, length: int) -> None:
        server = self.server
        memory = server.small if length <= MAX_SMALL else server.large
        try:
            body = self._read(length)
            server.answering(self.connection)
            if not memory.take(length, server.request_seconds):
                self.answer(503)
                return
            try:
                self._answer(served, body)
            finally:
                memory.give(length)
        finally:
            server.forget(self.connection)

    def _read(self, length: int) -> bytes:
        body = bytearray()
        while len(body) < length:
            chunk = self.rfile.read(min(length - len(body), MAX_SMALL))
            if not chunk:
                raise ConnectionError("the client closed the connection")
            body += chunk
            if len(body) > MAX_SMALL:
                self.server.receive(self.connection, len(body) - MAX_SMALL)
        return bytes(body)

    def _answer(self, served: _LimitedWebhook, body: bytes) -> None:
        try:
            request = parse(body)
        except InvalidReview as error:
            fields = {"webhook": served.webhook.name, "error": str(error)}
            logger.warning("invalid AdmissionReview", extra={"fields": fields})
            self.send_error(400)
        else:
            self.server.review(served, request, self)
