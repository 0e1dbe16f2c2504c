"""HTTP/1.1 to one server: TLS, connections that are kept between requests, answers as they arrive.

The parser is `httptools`. A request is sent once: neither repeated nor redirected. The connection
that was used last is used first, if the server has not closed it meanwhile.

Errors are OSErrors: TimeoutError if the server sent no data in time, ssl.SSLError if TLS failed,
ConnectionError for everything else about the connection, including an answer that is not HTTP.
Not here: names, proxies and TLS (`connecting`), credentials (`kubeconfig`), the meaning of answers
(`client`).
"""

import select
import socket
import ssl
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from math import inf
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from generic.kube import connecting
from generic.kube.connecting import Route, end_at

_RECEIVED = 16 * 1024
"""Bytes read at once: the size of a TLS record."""
_MAX_HEADERS = 64 * 1024
_AROUND = 8
"""Maximum bytes of an answer that are no body: in total, and more for each byte of its body."""


class HttpTransport:
    """Sends requests to one server; safe to use from any thread."""

    def __init__(
        self,
        server: str,
        tls: ssl.SSLContext,
        server_name: str,
        connections: int,
        *,
        proxy: Route | None = None,
        is_trusted: bool = True,
    ) -> None:
        """Create a transport to the URL `server`, of which only scheme and address are used.

        `server_name` replaces the host in TLS, if given; `connections` is the maximum of idle ones.
        `is_trusted` is False for the server of a tenant: the timeout of a request is its deadline.
        """
        url = urlsplit(server)
        used = tls if url.scheme == "https" else None
        address = url.hostname or "", url.port or (443 if used else 80)
        name = server_name or address[0].rstrip(".")
        self._route = Route(address, used, name, proxy=proxy)
        self._host = url.netloc.rpartition("@")[2]
        self._is_trusted = is_trusted
        self._most_idle = connections
        self._idle: deque[_KeptConnection] = deque()
        weakref.finalize(self, _close_all, self._idle)

    def request(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout: float | None,
    ) -> "Response":
        """Return the answer of any status, once its headers are read. Raises OSError.

        `timeout` is the maximum of seconds to connect, for the headers, and between two pieces of
        data; None for no limit. A tenant's server has so many seconds for all of its answer.
        """
        end = inf if self._is_trusted or timeout is None else monotonic() + timeout
        head = [f"{method} {target} HTTP/1.1", f"Host: {self._host}", "Accept-Encoding: identity"]
        head += [f"{name}: {value}" for name, value in headers.items()]
        if body is not None or method != "GET":
            head.append(f"Content-Length: {len(body or b'')}")
        text = "".join(head)
        if " " in target or not (text.isascii() and text.isprintable()):
            raise ConnectionError("the request has a character that HTTP does not allow")
        request = "\r\n".join([*head, "\r\n"]).encode("ascii") + (body or b"")
        connection = self._kept(end) or self._connect(timeout, end)
        try:
            connection.end = end
            connection.send(request, timeout)
        except BaseException:
            connection.close()
            raise
        return Response(connection, self)

    def keep(self, connection: "_KeptConnection") -> None:
        """Keep a connection for the next request, unless enough are idle."""
        connection.release()
        if len(self._idle) < self._most_idle:
            self._idle.append(connection)
        else:
            connection.close()

    def _kept(self, end: float) -> "_KeptConnection | None":
        """Return an idle connection that the server has not closed."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if connection.is_usable():
                connection.release = end_at(connection.below, end)
                return connection
            connection.close()

    def _connect(self, timeout: float | None, end: float) -> "_KeptConnection":
        seconds = min(connecting.CONNECT_SECONDS, inf if timeout is None else timeout)
        try:
            return _KeptConnection(*self._route.connect(seconds, end), seconds)
        except TimeoutError as error:
            raise ConnectionError(f"no connection within {seconds:.2g} s") from error
        except OSError:
            raise
        except ValueError as error:  # for instance a label of the name that is too long
            raise ConnectionError("the host name of the server cannot be used") from error


class _KeptConnection:
    """A connection, and the answer that is being read from it. Methods `on_…` are the parser's."""

    def __init__(self, connected: Any, release: Callable[[], None], timeout: float) -> None:
        self._socket = connected
        self.below = getattr(connected, "socket", connected)
        self.release = release  # so that the connection outlives the deadline of its request
        self.end = inf
        self._timeout: float | None = timeout
        self._parser = HttpResponseParser(self)
        self._idle = select.poll()
        self._idle.register(connected, select.POLLIN)
        self._start()

    def is_usable(self) -> bool:
        """Whether the server has neither closed the idle connection nor sent more data."""
        return not self._idle.poll(0)

    def send(self, request: bytes, timeout: float | None) -> None:
        """Send a request, and read until the headers of its answer are complete."""
        self._start()
        if timeout != self._timeout:
            self._socket.settimeout(timeout)
            self._timeout = timeout
        self._socket.sendall(request)
        end = inf if timeout is None else monotonic() + timeout
        while self.status < 200:
            if monotonic() > end:
                raise TimeoutError("timed out")
            self.receive()

    def receive(self) -> None:
        """Read more of the answer."""
        data = self._socket.recv(_RECEIVED)
        if self.end != inf and monotonic() >= self.end:
            raise TimeoutError("timed out")
        if not data and (self.status < 200 or self._is_delimited()):
            raise ConnectionError("the server closed the connection before its answer ended")
        if not data:
            self.is_complete = True
            return
        self._size += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            raise ConnectionError(f"the answer is not HTTP: {error}") from error
        if self._size > _MAX_HEADERS:
            raise ConnectionError("the headers of the answer are too long")

    def shutdown(self) -> None:
        """End the connection; a thread that reads from it sees its end."""
        socket.socket.shutdown(self.below, socket.SHUT_RDWR)  # ssl's own would break the read

    def close(self) -> None:
        """Close the connection."""
        self.release()
        self._socket.close()

    def _start(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.pieces: list[bytes] = []
        self.status = self._size = 0
        self.is_complete = self.is_kept = False

    def _is_delimited(self) -> bool:
        return any(n.lower() in (b"content-length", b"transfer-encoding") for n, _ in self.headers)

    def on_message_begin(self) -> None:
        """Refuse a second answer to one request."""
        if self.is_complete:
            raise ValueError("an answer without a request")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header."""
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Read the status. 1xx precedes the answer itself."""
        self.status = self._parser.get_status_code()
        self.is_kept = self._parser.should_keep_alive()

    def on_body(self, data: bytes) -> None:
        """Keep a piece of the body. Each byte allows for some more bytes around it."""
        if self.status < 200:
            raise ValueError("a body in front of the answer")
        self.pieces.append(data)
        self._size = max(0, self._size - _AROUND * len(data))

    def on_message_complete(self) -> None:
        """End the answer."""
        if self.status < 200:
            self.headers.clear()
        else:
            self.is_complete = True


class Response:
    """An answer. Its connection is free for others once `chunks` ends."""

    def __init__(self, connection: _KeptConnection, transport: HttpTransport) -> None:
        self.status = connection.status
        self._headers = connection.headers
        self._connection = connection
        self._transport = transport
        self._is_read = False

    @property
    def headers(self) -> dict[str, str]:
        """The headers; names are in lower case, and the values of repeated ones are joined."""
        found: dict[str, str] = {}
        for name, value in self._headers:
            key = name.decode("latin-1").lower()
            text = value.decode("latin-1")
            found[key] = f"{found[key]}, {text}" if key in found else text
        return found

    def chunks(self) -> Iterator[bytes]:
        """Yield the body as it arrives. Raises OSError."""
        connection = self._connection
        try:
            while True:
                if connection.pieces:
                    data = b"".join(connection.pieces)
                    connection.pieces.clear()
                    yield data
                if connection.is_complete:
                    break
                connection.receive()
            self._is_read = connection.is_kept
        finally:
            if self._is_read:
                self._transport.keep(connection)
            else:
                connection.close()

    def shutdown(self) -> None:
        """End the body while another thread waits for it."""
        self._connection.shutdown()

    def close(self) -> None:
        """Close the connection, unless the body was read to its end."""
        if not self._is_read:
            self._connection.close()


def _close_all(idle: deque[_KeptConnection]) -> None:
    while idle:
        idle.pop().close()
