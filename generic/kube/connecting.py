"""New connections to one server: names, addresses, a proxy and TLS, all before one deadline.

Where no timeout applies, another thread enforces it: `getaddrinfo` cannot be interrupted, and
OpenSSL continues to read while a server sends records without data. Not here: HTTP (`transport`).
"""

import re
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from math import inf
from time import monotonic
from typing import Any

from msgspec import Struct

from generic.kube.clock import SystemClock
from generic.kube.timers import Timers

CONNECT_SECONDS = 5.0
"""Maximum seconds for each step of a new connection: TCP to one address, a proxy's answer, TLS."""
_MAX_LOOKUPS = 64
"""Maximum names that are resolved at a time, each in a thread until its name server answers."""
_MAX_ANSWER = 16 * 1024
"""Maximum bytes of a proxy's answer."""
_DEADLINES = Timers("request-deadlines", SystemClock())
_Address = tuple[str, int]
_LOCK = threading.Lock()
_LOOKUPS: dict[_Address, Future[list[_Address]]] = {}


class Route(Struct, frozen=True):
    """The way to a server, or to an HTTP proxy, to which alone `headers` are sent."""

    address: _Address
    tls: ssl.SSLContext | None
    server_name: str
    headers: Mapping[str, str] = {}
    proxy: "Route | None" = None

    def connect(self, seconds: float, end: float) -> tuple[Any, Callable[[], None]]:
        """Return a socket, or a like one whose `socket` is below it, and a function of `end_at`.

        Each step takes at most `seconds`; all end at the monotonic time `end`. Raises OSError, and
        ValueError for a host name that cannot be used.
        """
        proxy = self.proxy
        tls = self.tls
        if proxy:
            below = _connected_to_proxy(proxy.address, seconds, end)
        else:
            below = _connected(self.address, seconds, end)
        cancel = end_at(below, end)
        try:
            below.settimeout(seconds)
            below.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            below.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if proxy and proxy.tls:
                below = proxy.tls.wrap_socket(below, server_hostname=proxy.server_name)
            if proxy:
                _tunnel(below, self.address, proxy.headers)
            if proxy and proxy.tls and tls:
                from urllib3.util.ssltransport import SSLTransport

                return SSLTransport(below, tls, self.server_name), cancel
            if tls:
                below = tls.wrap_socket(below, server_hostname=self.server_name)
            return below, cancel
        except BaseException:
            cancel()
            below.close()
            raise


def end_at(connected: socket.socket, end: float) -> Callable[[], None]:
    """End a connection at a monotonic time, unless the returned function is called before."""
    if end == inf:
        return lambda: None
    # A descriptor of its own: TLS takes over the given one.
    own = socket.fromfd(connected.fileno(), connected.family, connected.type)

    def shutdown() -> None:
        with suppress(OSError):  # the server closed the connection
            own.shutdown(socket.SHUT_RDWR)

    timer = _DEADLINES.call_later(end - monotonic(), shutdown)

    def cancel() -> None:
        timer.cancel()
        own.close()

    return cancel


def _connected(address: _Address, seconds: float, end: float) -> socket.socket:
    """Connect to the first address that answers."""
    if end == inf:
        return socket.create_connection(address, seconds)
    problem: OSError = ConnectionError("timed out")
    for found in _addresses(address, end):
        if (left := min(seconds, end - monotonic())) > 0:
            try:
                return socket.create_connection(found, left)
            except OSError as error:
                problem = error
    raise ConnectionError(f"no address of the server answers: {problem}")


def _connected_to_proxy(address: _Address, seconds: float, end: float) -> socket.socket:
    try:
        return _connected(address, seconds, end)
    except OSError as error:
        host, port = address
        raise type(error)(f"the proxy {host}:{port} does not answer: {error}") from error


def _addresses(name: _Address, end: float) -> list[_Address]:
    """Return the addresses of a host; each name is resolved once at a time."""
    with suppress(socket.gaierror):
        return _look_up(name, socket.AI_NUMERICHOST)
    with _LOCK:
        lookup = _LOOKUPS.get(name)
        if lookup is None:
            if len(_LOOKUPS) >= _MAX_LOOKUPS:
                raise ConnectionError("too many host names are being resolved; try again later")
            lookup = Future()
            threading.Thread(target=_resolve, args=(name, lookup), daemon=True).start()
            _LOOKUPS[name] = lookup
    return lookup.result(max(0.0, end - monotonic()))


def _resolve(name: _Address, lookup: Future[list[_Address]]) -> None:
    try:
        lookup.set_result(_look_up(name))
    except Exception as error:
        lookup.set_exception(error)
    with _LOCK:
        del _LOOKUPS[name]


def _look_up(name: _Address, flags: int = 0) -> list[_Address]:
    found = socket.getaddrinfo(*name, type=socket.SOCK_STREAM, flags=flags)
    return [(str(entry[4][0]), int(entry[4][1])) for entry in found]


def _tunnel(connected: socket.socket, address: _Address, headers: Mapping[str, str]) -> None:
    """Let a proxy connect to the address (RFC 9110, CONNECT)."""
    host, port = address
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    head = [f"CONNECT {target} HTTP/1.1", f"Host: {target}", *map(": ".join, headers.items())]
    connected.sendall("\r\n".join([*head, "\r\n"]).encode("latin-1"))
    answer = data = connected.recv(_MAX_ANSWER)
    while data and len(answer) < _MAX_ANSWER and not answer.endswith(b"\r\n\r\n"):
        data = connected.recv(_MAX_ANSWER)
        answer += data
    if not re.match(rb"HTTP/1\.[01] 2", answer) or not answer.endswith(b"\r\n\r\n"):
        raise ConnectionError(f"the proxy refused the connection: {answer[:12]!r}")
