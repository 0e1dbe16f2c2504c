"""Router: an HTTP CONNECT proxy that leads names and addresses of Services to local ports.

API servers use it as egress selector, through a Unix socket that only the user can open. Other
programs use it as HTTPS_PROXY, on a port of the loopback address: they need the credential of this
run, whose user name is the namespace in which short names are resolved.

A route exists only if it was set: the router connects to no other address, and to no port of the
machine that is not the port of a route. Not here: the order of routes and Services (`services`).
"""

import asyncio
import logging
import secrets
import socket
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from generic.library.programs.errors import EnvtestError
from generic.testing.envtest.servers import HOST
from generic.testing.landscape.connects import Connect, ConnectRefused, parse_request, service_of

logger = logging.getLogger(__name__)

HEAD_BYTES = 16 * 1024
"""Maximum size of a request."""
HEAD_SECONDS = 10.0
"""Maximum time for a request to arrive."""
CONNECT_SECONDS = 5.0
"""Maximum time to connect to a local port."""
HALF_CLOSED_SECONDS = 120.0
"""Maximum time for which one direction of a connection continues after the other has ended."""
MAX_UNKNOWN = 128
"""Maximum number of TCP clients that have not sent the credential; one more ends the oldest."""
_LINGER_SECONDS = 1.0
_PIECE = 64 * 1024
_REASONS = {400: "Bad Request", 407: "Proxy Authentication Required", 502: "Bad Gateway"}

Routes = Mapping[str, Mapping[int | None, Sequence[int]]]
"""Local ports by Service and its port; None stands for every port that is not named.

The first local port is used, and the others if it refuses connections.
"""
Lookup = Callable[[str], tuple[str, str] | None]
"""Returns namespace and name of the Service with an IP address or another host name, or None.

The router calls it in its own thread, so it must answer from memory.
"""


class Router:
    """Listens between `start` and `stop`; routes may be changed at any time, from any thread."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._routes: dict[str, Routes] = {}
        self._token = secrets.token_urlsafe(32)
        self._running: _RouterThread | None = None
        self.port = 0
        """The port of the loopback address."""

    def replace(self, namespace: str, routes: Routes) -> None:
        """Replace the routes of a namespace, all at once."""
        self._routes[namespace] = routes

    def find(self, namespace: str, service: str, port: int) -> list[int]:
        """Return the local ports for a port of a Service, the preferred one first."""
        routes = self._routes.get(namespace, {}).get(service, {})
        return list(routes.get(port) or routes.get(None) or ())

    def proxy_url(self, namespace: str) -> str:
        """Return the value of HTTPS_PROXY for a program in a namespace. It has the credential."""
        return f"http://{quote(namespace, safe='')}:{self._token}@{HOST}:{self.port}"

    def start(self, uds: Path) -> None:
        """Listen on the Unix socket, which replaces an old one, and on a TCP port.

        Raises EnvtestError.
        """
        tcp = socket.create_server((HOST, 0))
        unix = socket.socket(socket.AF_UNIX)
        try:
            uds.unlink(missing_ok=True)
            unix.bind(str(uds))
            uds.chmod(0o600)  # before it listens, so no other user can connect in between
            unix.listen(128)
        except OSError as error:
            tcp.close()
            unix.close()
            raise EnvtestError(f"the router cannot listen on {uds}: {error}") from error
        self.port = tcp.getsockname()[1]
        self._running = _RouterThread(self, unix, tcp)

    def stop(self) -> None:
        """Stop listening, and end all connections. A second call does nothing."""
        running = self._running
        self._running = None
        if running is not None:
            running.stop()

    def authorize(self, request: Connect) -> None:
        """Raises Refused if the request does not have the credential of this run."""
        if not secrets.compare_digest(request.password.encode(), self._token.encode()):
            raise ConnectRefused(407, "the credential of this run is missing or wrong")

    def targets(self, request: Connect) -> list[int]:
        """Return the local ports for a request. Raises Refused if it has no route."""
        try:
            found = service_of(request.host, request.user) or self._lookup(request.host)
        except Exception:  # another part's: it must not end the router
            logger.exception("lookup failed")
            found = None
        ports = self.find(*found, request.port) if found else []
        if not ports:
            raise ConnectRefused(502, f"no route to {request.host}:{request.port}")
        return ports


class _RouterThread:
    """The thread and the connections of a started router."""

    def __init__(self, router: Router, unix: socket.socket, tcp: socket.socket) -> None:
        self._router = router
        self._sockets = unix, tcp
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._clients: set[asyncio.Task[None]] = set()
        self._unknown: dict[asyncio.BaseTransport, None] = {}  # the oldest first
        self._thread = threading.Thread(target=self._run, name="router", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._main())  # at its end, the runner cancels the tasks of all clients

    async def _main(self) -> None:
        unix, tcp = self._sockets
        listeners = [
            await asyncio.start_unix_server(self._begin_user, sock=unix, limit=HEAD_BYTES),
            await asyncio.start_server(self._begin_unknown, sock=tcp, limit=HEAD_BYTES),
        ]
        await self._over.wait()
        for listener in listeners:
            listener.close()

    def _begin_user(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._begin(self._serve(reader, writer, lambda _request: None))

    def _begin_unknown(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._unknown[writer.transport] = None
        if len(self._unknown) > MAX_UNKNOWN:
            oldest = next(iter(self._unknown))
            del self._unknown[oldest]
            oldest.close()
        self._begin(self._serve_unknown(reader, writer))

    def _begin(self, serving: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(serving)
        self._clients.add(task)
        task.add_done_callback(self._clients.discard)

    async def _serve_unknown(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        def authorize(request: Connect) -> None:
            self._router.authorize(request)
            self._unknown.pop(writer.transport, None)

        try:
            await self._serve(reader, writer, authorize)
        finally:
            self._unknown.pop(writer.transport, None)

    async def _serve(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        authorize: Callable[[Connect], None],
    ) -> None:
        """Serve one client to its end."""
        try:
            request = parse_request(await _read_head(reader))
            authorize(request)
            far_reader, far_writer = await _connect(self._router.targets(request))
            try:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await _forward(_pump(reader, far_writer), _pump(far_reader, writer))
            finally:
                far_writer.transport.abort()
        except ConnectRefused as refused:
            await _refuse(reader, writer, refused)
        except (OSError, EOFError):  # one side was reset, or ended before its request
            pass
        finally:
            writer.transport.abort()


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    try:
        async with asyncio.timeout(HEAD_SECONDS):
            return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise ConnectRefused(400, f"the request has more than {HEAD_BYTES} bytes") from None
    except TimeoutError:
        raise ConnectRefused(400, f"the request took more than {HEAD_SECONDS:g} s") from None


async def _connect(ports: list[int]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    for port in ports:
        with suppress(OSError):
            async with asyncio.timeout(CONNECT_SECONDS):
                return await asyncio.open_connection(HOST, port)
    raise ConnectRefused(502, "the program does not accept connections")


async def _forward(*directions: Coroutine[None, None, None]) -> None:
    """Wait until both directions have ended, or one has failed."""
    tasks = [asyncio.create_task(direction) for direction in directions]
    try:
        done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if others and not any(task.exception() for task in done):
            await asyncio.wait(others, timeout=HALF_CLOSED_SECONDS)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Forward data until the source ends, then end that direction only. Raises OSError."""
    sink.transport.set_write_buffer_limits(0)  # `drain` waits until everything is sent
    while data := await source.read(_PIECE):
        sink.write(data)
        await sink.drain()
    sink.write_eof()


async def _refuse(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, refused: ConnectRefused
) -> None:
    """Answer, and read on for a moment: a connection with unread data would lose the answer."""
    text = f"{refused}\n"
    lines = [
        f"HTTP/1.1 {refused.status} {_REASONS[refused.status]}",
        *(['Proxy-Authenticate: Basic realm="landscape"'] if refused.status == 407 else []),
        "Content-Type: text/plain",
        f"Content-Length: {len(text.encode())}",
        "Connection: close",
    ]
    writer.write("\r\n".join([*lines, "", text]).encode())
    with suppress(OSError):
        writer.write_eof()
        async with asyncio.timeout(_LINGER_SECONDS):
            while await reader.read(_PIECE):
                pass
