"""WebhookServer: serves webhooks over TLS, in one thread for each connection.

The thread of a connection runs the handler; if that takes too long, a timer answers in its place
and closes the connection. Not here: what a webhook answers (`review`), and the life of
certificates (`certificates`).
"""

import logging
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import Struct, field

from actuator.errors import ConfigurationError
from actuator.interface import Client
from generic.controller.httpserver import Address, Handler, HttpServer
from generic.controller.metrics.webhooks import WebhookMetrics
from generic.kube.certificates import KeyPair
from generic.kube.timers import Timers
from generic.library.webhooks.review import Answer, InvalidReview, Request, evaluate, failure, parse
from generic.library.webhooks.webhook import Webhook

logger = logging.getLogger(__name__)

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
        certificate, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
        pair.save(certificate, key)
        try:
            tls.load_cert_chain(certificate, key, password="")
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"the webhook certificate cannot be used: {error}") from error
    return tls


class _Served(Struct, eq=False):
    """A webhook, with its limits on concurrent requests."""

    webhook: Webhook
    calls: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(AT_ONCE))
    unanswered: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(UNANSWERED))


class WebhookServer(HttpServer):
    """Serves between `start` and `stop`."""

    connections = 512
    closes_busy = False
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
        super().__init__(address, _Handler)
        self.large = threading.Semaphore(LARGE_AT_ONCE)
        self.paths = {one.path: _Served(one) for one in webhooks}
        self._client = client
        self._timers = timers
        self._metrics = metrics

    def review(self, served: _Served, request: Request, handler: Handler) -> None:
        """Answer a request in time."""
        webhook = served.webhook
        began = time.monotonic()
        self._metrics.began(webhook.name)
        limit = max(webhook.timeout_seconds - _MARGIN, _MARGIN)
        late = failure(webhook, request.uid, f"the handler did not end within {limit:g} s")

        def end(answer: Answer, send: Callable[[int, bytes, str], None]) -> None:
            self._count(webhook.name, answer, time.monotonic() - began)
            send(200, answer.encode(), _JSON)

        timer = self._timers.call_later(limit, lambda: end(late, handler.abandon))
        answer = self._evaluate(served, request, limit) or late
        if timer.cancel():
            end(answer, handler.answer)

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

    def _count(self, name: str, answer: Answer, seconds: float) -> None:
        """Count and log an answer."""
        outcome = "failed" if answer.failed else "allowed" if answer.allowed else "denied"
        self._metrics.ended(name, seconds, outcome)
        if answer.message:
            fields = {"webhook": name, "request": answer.uid, "reason": answer.reason}
            log = logger.error if answer.failed else logger.info
            log(f"request {outcome}", extra={"fields": fields})


class _Handler(Handler):
    server: WebhookServer

    def respond(self) -> None:
        served = self.server.paths.get(self.path.partition("?")[0])
        if served is None:
            self.send_error(404)
        elif self.command != "POST":
            self.send_error(405)
        elif self.headers.get_content_type() != _JSON:
            self.send_error(415)
        elif (length := self.find_length(MAX_BODY)) is None:
            return
        elif length <= LARGE:
            self._review(served, length)
        elif self.server.large.acquire(timeout=self.server.request_seconds):
            try:
                self._review(served, length)
            finally:
                self.server.large.release()
        else:
            raise TimeoutError("too many large requests")

    def _review(self, served: _Served, length: int) -> None:
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionError("the client closed the connection")
        try:
            request = parse(body)
        except InvalidReview as error:
            fields = {"webhook": served.webhook.name, "error": str(error)}
            logger.warning("invalid AdmissionReview", extra={"fields": fields})
            self.send_error(400)
        else:
            self.server.review(served, request, self)
