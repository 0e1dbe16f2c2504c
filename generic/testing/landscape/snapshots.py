"""Snapshots: answers gardenlet's request for the last snapshot of an etcd before a migration.

Faked: etcd-backup-restore, which serves it in a seed, and the bucket (see `shootetcd`). gardenlet
names a Service and its port, and uses no proxy. Its program resolves all names to one address of
the loopback network, where this server listens with a certificate of each shoot. As in a seed, the
request has no credential. It changes nothing while an API server of the shoot runs, so that another
local user can cause nothing that a migration would not: gardenlet also asks after it has encrypted
the data of a new shoot.
"""

import random
import re
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from generic.library.programs.errors import EnvtestError
from generic.library.webhooks.server import server_context
from generic.testing.envtest.certificates import KeyPair

PORT = 8080
"""The port of etcd-backup-restore; gardenlet has no option for it."""
_PATH = "/snapshot/full?final=true"
_HOST = re.compile(r"etcd-main-client\.(shoot--[a-z0-9-]{1,60})")
_MAX_ATTEMPTS = 20
_SECONDS = 30.0
"""Maximum time for each step of a request."""

Serving = Callable[[str, str], KeyPair | None]
"""Returns a certificate for a namespace and a host; None for an unknown namespace."""
Snapshot = Callable[[str], None]
"""Takes the snapshot of a namespace."""


def require_port() -> None:
    """Raise EnvtestError if no address has the port, before anything is built."""
    _listener().close()


def _listener() -> socket.socket:
    """Listen on an address of the loopback network that no other landscape uses."""
    for _ in range(_MAX_ATTEMPTS):
        bits = random.getrandbits(16)
        try:
            return socket.create_server((f"127.{bits >> 8}.{bits & 255}.80", PORT))
        except OSError:
            continue
    raise EnvtestError(
        f"port {PORT} is in use by a program that listens on all addresses, and gardenlet needs it "
        "for snapshots of etcd; stop that program to have backups and migrations"
    )


class SnapshotPort:
    """Serves the request while the context is open."""

    def __init__(self, serving: Serving, snapshot: Snapshot) -> None:
        self._serving = serving
        listener = _listener()
        self.address: str = listener.getsockname()[0]
        """The address of the server, which has PORT."""
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.sni_callback = self._choose
        handler = partial(_SnapshotHandler, snapshot)
        self._server = ThreadingHTTPServer(listener.getsockname(), handler, False)
        self._server.socket.close()
        self._server.socket = tls.wrap_socket(
            listener, server_side=True, do_handshake_on_connect=False
        )

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, name="snapshots", daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _choose(self, client: ssl.SSLObject, host: str | None, _: ssl.SSLContext) -> int | None:
        """Choose the certificate by the name that the client asks for."""
        namespace = namespace_of(host or "")
        pair = self._serving(namespace, host or "") if namespace else None
        if pair is None:
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        client.context = server_context(pair)
        return None


def namespace_of(host: str) -> str:
    """Return the namespace of the shoot whose etcd has this host name, or ""."""
    found = _HOST.fullmatch(host.removesuffix(f":{PORT}"))
    return found[1] if found else ""


class _SnapshotHandler(BaseHTTPRequestHandler):
    """Answers one request."""

    timeout = _SECONDS

    def __init__(self, snapshot: Snapshot, *connection: Any) -> None:
        self._snapshot = snapshot
        super().__init__(*connection)

    def handle(self) -> None:
        """Answer, unless the connection fails, as that of a client with another certificate."""
        with suppress(OSError):
            super().handle()

    def do_GET(self) -> None:
        """Take a snapshot."""
        namespace = namespace_of(self.headers.get("Host", ""))
        is_known = bool(namespace) and self.path == _PATH
        if is_known:
            self._snapshot(namespace)
        self.send_response(200 if is_known else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Write no log."""
