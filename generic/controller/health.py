"""HealthServer: /healthz, /readyz and /metrics over plain HTTP.

Checks are functions that return None if healthy, else the reason. A server answers only for the
checks it was given; every other path is 404. It bounds the resources of a client: connections,
time, and header sizes. Not here: the checks themselves.
"""

import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import ThreadingMixIn
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from actuator.errors import ConfigurationError

logger = logging.getLogger(__name__)

Check = Callable[[], str | None]
"""Return None if healthy, else the reason."""

Remarks = Callable[[], Sequence[str]]

CONNECTIONS = 16
"""Maximum open connections; one more closes the oldest, so that slow clients block no probe."""
SECONDS = 5.0
"""Seconds without a byte from a client before its connection is closed."""
_LOOK_SECONDS = 3600.0
"""Seconds after which a server without connections looks around; `shutdown` wakes it."""
_TEXT = "text/plain; charset=utf-8"


class Address(Struct, frozen=True):
    """A listen address; host "" means every address of the machine, port 0 any free port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address | None:
    """Parse an address of a flag: `127.0.0.1:8081`, `[::1]:8081`, `:8081` for all addresses.

    Return None for "" and "0", which disable a server. Raises ConfigurationError.
    """
    if text in ("", "0"):
        return None
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not port.isdecimal() or int(port) > 65535 or (":" in host and not bracketed):
        raise ConfigurationError(
            f"invalid address {text!r}; set HOST:PORT, :PORT for all interfaces, or 0 to disable"
        )
    return Address(host[1:-1] if bracketed else host, int(port))


class HealthServer:
    """Serves in its own threads between `start` and `stop`."""

    def __init__(
        self,
        address: Address,
        *,
        healthz: Mapping[str, Check] | None = None,
        readyz: Mapping[str, Check] | None = None,
        remarks: Remarks = list,
        metrics: Callable[[], tuple[bytes, str]] | None = None,
    ) -> None:
        """`remarks` returns lines that /readyz shows besides the checks, without failing."""
        self.address = address
        self._pages: dict[str, Callable[[bool], _Answer]] = {}
        if healthz is not None:
            self._pages["/healthz"] = lambda verbose: _run(healthz, verbose=verbose)
        if readyz is not None:
            self._pages["/readyz"] = lambda verbose: _run(readyz, remarks, verbose=verbose)
        if metrics is not None:
            self._pages["/metrics"] = lambda _verbose: _Answer(200, *metrics())
        self._server: _Server | None = None

    def start(self) -> None:
        """Start to listen, and set `address` to the real port. Raises ConfigurationError."""
        try:
            self._server = _Server(self.address, self._pages)
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {self.address}: {error.strerror or error}; set another address"
            ) from error
        self.address = Address(self.address.host, self._server.server_address[1])
        name = f"http-{self.address.port}"
        threading.Thread(
            target=self._server.serve_forever, args=(_LOOK_SECONDS,), name=name, daemon=True
        ).start()

    def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


class _Answer(Struct, frozen=True):
    status: int
    body: bytes
    content_type: str = _TEXT


def _run(checks: Mapping[str, Check], remarks: Remarks = list, *, verbose: bool) -> _Answer:
    """Run all checks; the body lists them if one failed or `verbose` is set."""
    lines, failed = [], False
    for name, check in checks.items():
        try:
            reason = check()
        except Exception as error:  # a check that raises has failed
            reason = f"{type(error).__name__}: {error}"
        failed = failed or reason is not None
        lines.append(f"[+]{name} ok" if reason is None else f"[-]{name} failed: {reason}")
    if not failed and not verbose:
        return _Answer(200, b"ok\n")
    lines += [f"[i]{remark}" for remark in remarks()]
    lines.append("not ok" if failed else "ok")
    return _Answer(503 if failed else 200, ("\n".join(lines) + "\n").encode())


class _Handler(BaseHTTPRequestHandler):
    """Handles one request per connection (HTTP/1.0)."""

    server: "_Server"
    timeout = SECONDS
    server_version, sys_version = "actuator", ""

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        url = urlsplit(self.path)
        page = self.server.pages.get(url.path)
        if page is None:
            answer = _Answer(404, b"not found\n")
        else:
            try:
                answer = page("verbose" in url.query.split("&"))
            except Exception as error:  # unreadable metrics: report the error and continue
                logger.warning(
                    "HTTP handler failed", extra={"fields": {"path": url.path}}, exc_info=True
                )
                answer = _Answer(500, f"{type(error).__name__}: {error}\n".encode())
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if with_body:
            self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: probes arrive every few seconds."""


class _Server(ThreadingMixIn, HTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128  # connections waiting to be accepted; socketserver has 5

    def __init__(self, address: Address, pages: Mapping[str, Callable[[bool], _Answer]]) -> None:
        self.pages = pages
        self._open: dict[socket.socket, None] = {}
        self._lock = threading.Lock()
        everywhere = not address.host and socket.has_dualstack_ipv6()
        if everywhere or ":" in address.host:
            self.address_family = socket.AF_INET6
        super().__init__(("::" if everywhere else address.host, address.port), _Handler)

    def server_bind(self) -> None:
        """Bind without HTTPServer's lookup of the host name, which may be slow."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "", self.server_address[1]

    def shutdown(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # ends the wait for a connection
        super().shutdown()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            if len(self._open) >= CONNECTIONS:
                oldest = next(iter(self._open))
                del self._open[oldest]
                with contextlib.suppress(OSError):  # the client closed it first
                    oldest.shutdown(socket.SHUT_RDWR)  # its thread reads the end, and closes it
            self._open[request] = None
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        logger.debug("client disconnected")
