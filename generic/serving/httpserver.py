"""HttpServer: serves HTTP/1.1, with or without TLS, in one thread for each connection.

Every resource of a client is bounded: connections, the size of a request, and the time to send it.
Not here: the answers, which handlers give (`health`, and the webhooks of the library).
"""

import io
import logging
import os
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from enum import Enum, auto
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler
from math import inf
from operator import itemgetter
from typing import Any

from msgspec import Struct

from actuator.errors import ConfigurationError

logger = logging.getLogger(__name__)

MAX_HEAD = 64 * 1024
"""Maximum bytes of a request without its body."""
_PAUSE = 0.05
"""Seconds between two attempts if the process has no resources left."""
_LINGER_SECONDS = 1.0
"""Seconds in which the rest of a refused request is read and dropped."""
_CHUNK = 16 * 1024
"""Bytes; the size of a TLS record."""
_SLOW_SECONDS = 1.0
"""Seconds after which a connection whose request has not arrived is closed before others."""


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


class _Incoming(io.RawIOBase):
    """The bytes of a client, up to a number and until a time."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._end = 0.0
        self.left = inf
        """The number; beyond it, reading raises HTTPException, which is status 431 for a head."""

    def allow(self, seconds: float, size: float = inf) -> None:
        """Set the limits; later, reading raises TimeoutError."""
        self._end = time.monotonic() + seconds
        self.left = size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if (seconds := self._end - time.monotonic()) <= 0:
            raise TimeoutError("the request took too long")
        self._connection.settimeout(seconds)
        size = self._connection.recv_into(buffer)
        self.left -= size
        if self.left < 0:
            raise HTTPException("the request is too large")
        return size


class _State(Enum):
    """What a connection is doing."""

    NEW = auto()
    """Nothing of a request has arrived."""
    RECEIVING = auto()
    ANSWERING = auto()
    """The request has arrived in full."""
    IDLE = auto()
    """Its last request is answered."""


class _Accepted(Struct):
    peer: str
    """The address of the client."""
    since: float
    """When its state began, on the monotonic clock."""
    state: _State = _State.NEW

    @property
    def is_slow(self) -> bool:
        """Whether its request has not arrived for longer than it takes an API server."""
        arriving = self.state in (_State.NEW, _State.RECEIVING)
        return arriving and time.monotonic() - self.since >= _SLOW_SECONDS


class Handler(BaseHTTPRequestHandler):
    """Serves one connection; subclasses answer its requests."""

    protocol_version = default_request_version = "HTTP/1.1"
    server: "HttpServer"  # type: ignore[assignment]  # it has everything that is used

    def respond(self) -> None:
        """Call `answer` or `send_error`."""
        raise NotImplementedError

    def do_GET(self) -> None:
        """See BaseHTTPRequestHandler."""
        self.respond()

    do_HEAD = do_POST = do_GET  # noqa: N815 - http.server's names

    def setup(self) -> None:
        """Shake hands, and make the files of the connection."""
        self.connection = self.request
        self.connection.settimeout(self.server.head_seconds)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if isinstance(self.connection, ssl.SSLSocket):
            self.connection.do_handshake()
        self._incoming = _Incoming(self.connection)
        self.rfile = self._reader = io.BufferedReader(self._incoming, _CHUNK)
        self.wfile = self.connection.makefile("wb")

    def handle_one_request(self) -> None:
        """Serve a request within the limits of the server."""
        self._incoming.allow(self.server.idle_seconds)
        self.close_connection = not self._reader.peek(1)
        if self.close_connection:
            return
        self.server.receiving(self.connection)
        self._incoming.allow(self.server.head_seconds, MAX_HEAD)
        super().handle_one_request()

    def find_length(self, most: int) -> int | None:
        """Return the length of the body; if it has none or is too long, refuse the request."""
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers:
            self.send_error(411)
        elif not length.isdecimal() or len(length) > 12 or int(length) > most:
            self.send_error(413)
        else:
            self._incoming.allow(self.server.request_seconds)
            return int(length)
        return None

    def answer(self, status: int, body: bytes = b"", content_type: str = "text/plain") -> None:
        """Answer the request."""
        self.close_connection = self.close_connection or self.server.draining
        self.connection.settimeout(self.server.request_seconds)
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(body)))
        if body:
            self.send_header("Content-Type", content_type)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else body)
        self.server.answered(self.connection)  # before the client can use another connection
        self.wfile.flush()

    def abandon(self, status: int, body: bytes, content_type: str) -> None:
        """Answer, and end the connection, while its thread is still in a method."""
        self.close_connection = True
        with suppress(OSError):
            self.answer(status, body, content_type)
        self.server.close(self.connection)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse a request that is not read to its end, and wait until the client has the answer.

        Closing a connection with unread data would discard the answer (RFC 9112, section 9.6).
        """
        self.close_connection = True
        self.answer(code)
        self._incoming.allow(_LINGER_SECONDS)
        with suppress(TimeoutError):
            while self._reader.read1(_CHUNK):
                pass

    def handle_expect_100(self) -> bool:
        """Send no interim answer: clients send the body without one after a moment."""
        return True

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: probes arrive every few seconds."""


class HttpServer:
    """Serves in its own threads between `start` and `stop`."""

    tls: ssl.SSLContext | None = None
    """Used for each new connection."""
    connections = 16
    """Maximum open connections; one more closes the one that was idle longest."""
    closes_answering = True
    """If all requests have arrived: whether the oldest connection is closed, or the new one."""
    idle_seconds = 5.0
    """Seconds without a request after which a connection is closed."""
    head_seconds = 3.0
    """Seconds for a TLS handshake, and for the head of a request from its first byte."""
    request_seconds = 5.0
    """Seconds for the body of a request, and for its answer."""
    remedy = "set another address"
    """The remedy in the error about an address that is in use."""
    shares_port = False
    """Whether other sockets of the same user may be bound to the port."""

    def __init__(self, address: Address, handler: type[Handler]) -> None:
        self.address = address
        self._handler = handler
        self.draining = False
        """Whether connections are closed after their next answer; new ones are still accepted."""
        self._open: dict[socket.socket, _Accepted] = {}
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None

    @property
    def listening(self) -> bool:
        """Whether the server accepts connections, and keeps them."""
        return self._listener is not None and not self.draining

    @property
    def is_busy(self) -> bool:
        """Whether a request has begun and is not answered."""
        with self._lock:
            states = {item.state for item in self._open.values()}
        return not states.isdisjoint((_State.RECEIVING, _State.ANSWERING))

    def start(self) -> None:
        """Start to listen, and set `address` to the real port. Raises ConfigurationError."""
        host = self.address.host
        everywhere = not host and socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if everywhere or ":" in host else socket.AF_INET
        try:
            self._listener = socket.create_server(
                (host, self.address.port),
                family=family,
                backlog=128,
                reuse_port=self.shares_port,
                dualstack_ipv6=everywhere,
            )
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {self.address}: {_reason(error)}; {self.remedy}"
            ) from error
        self.address = Address(host, self._listener.getsockname()[1])
        name = f"http-{self.address.port}"
        given = (self._listener,)
        threading.Thread(target=self._accept, args=given, name=name, daemon=True).start()

    def stop(self, seconds: float = 0.0) -> bool:
        """Stop listening, let running requests end, close all connections.

        Return False if requests were still running after `seconds`.
        """
        self.draining = True
        if self._listener is not None:
            _shut(self._listener)  # ends the wait for a connection
            self._listener.close()
            self._listener = None
        end = time.monotonic() + seconds
        while self.is_busy and time.monotonic() < end:
            time.sleep(0.01)
        finished = not self.is_busy
        for connection in list(self._open):
            self.close(connection)
        return finished

    def receiving(self, connection: socket.socket) -> None:
        """Note that a request has begun."""
        self._note(connection, _State.RECEIVING)

    def answering(self, connection: socket.socket) -> None:
        """Note that the request has arrived: no new connection takes its place."""
        self._note(connection, _State.ANSWERING)

    def answered(self, connection: socket.socket) -> None:
        """Note that the request is answered."""
        self._note(connection, _State.IDLE)

    def _note(self, connection: socket.socket, state: _State) -> None:
        with self._lock:
            if found := self._open.get(connection):
                found.state = state
                found.since = time.monotonic()

    def close(self, connection: socket.socket) -> None:
        """End a connection, also while its thread waits for data."""
        with self._lock:
            self._open.pop(connection, None)
        _shut(connection)

    def close_oldest(self, connections: Iterable[socket.socket]) -> None:
        """Close the one of these whose request has been arriving for longest, if there is one."""
        with self._lock:
            known = [
                (connection, found)
                for connection in connections
                if (found := self._open.get(connection))
            ]
            arriving = [(at.since, item) for item, at in known if at.state is _State.RECEIVING]
        if arriving:
            self.close(min(arriving, key=itemgetter(0))[1])

    def _accept(self, listener: socket.socket) -> None:
        while self._listener is not None:
            try:
                accepted, peer = listener.accept()
            except OSError:
                time.sleep(_PAUSE)  # no file descriptor is left: others close theirs
            else:
                self._begin(accepted, str(peer[0]))

    def _begin(self, connection: socket.socket, peer: str) -> None:
        try:
            if self.tls is not None:
                connection = self.tls.wrap_socket(
                    connection, server_side=True, do_handshake_on_connect=False
                )
            if self._make_room(connection, peer):
                given = (connection,)
                threading.Thread(target=self._serve, args=given, name="http", daemon=True).start()
                return
        except OSError:
            logger.debug("client disconnected")
        except RuntimeError:  # no thread is left
            logger.exception("connection failed")
        self.close(connection)
        connection.close()

    def _make_room(self, connection: socket.socket, peer: str) -> bool:
        """Add a connection, and close another one if there are too many."""
        with self._lock:
            if len(self._open) >= self.connections:
                closed = self._choose()
                if closed is None:
                    return False
                del self._open[closed]
                _shut(closed)  # its thread reads the end, and closes it
            self._open[connection] = _Accepted(peer, time.monotonic())
        return True

    def _choose(self) -> socket.socket | None:
        """Return the connection that is closed for a new one, or None.

        That is one of a client with more than half of the connections, if there is such a client:
        first one that is slow to send a request, then an idle one, each time the oldest.
        """
        of_peer = Counter(item.peer for item in self._open.values())

        def urgency(connection: socket.socket) -> tuple[bool, bool, int, float]:
            one = self._open[connection]
            rank = 0 if one.is_slow else 1 if one.state is _State.IDLE else 2
            has_share = of_peer[one.peer] <= self.connections / 2
            return one.state is _State.ANSWERING, has_share, rank, one.since

        chosen = min(self._open, key=urgency)
        is_answering = self._open[chosen].state is _State.ANSWERING
        return None if is_answering and not self.closes_answering else chosen

    def _serve(self, connection: socket.socket) -> None:
        """Serve a connection; only its thread releases the socket."""
        try:
            self._handler(connection, None, self)  # type: ignore[arg-type]  # serves it
        except OSError:
            logger.debug("client disconnected")
        except Exception:  # the server stays up whatever happens to one connection
            logger.exception("connection failed")
        finally:
            self.close(connection)
            connection.close()


def _reason(error: OSError) -> str:
    """Return the reason without Python's addition, which repeats the address."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)  # not ssl's: it is no handshake
