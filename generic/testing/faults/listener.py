"""The listening side of the fault proxy: a loopback port, TLS, and the open connections.

One thread for each connection. What is said over them is relay.py's business.
"""

from __future__ import annotations

import socket
import ssl
import threading
from socketserver import BaseRequestHandler, TCPServer, ThreadingMixIn
from typing import Any

from generic.kube.kubeconfig import Access
from generic.testing.envtest.servers import HOST
from generic.testing.faults.requests import Fault
from generic.testing.faults.rules import Injections

__all__ = ["Listener"]


class Listener(ThreadingMixIn, TCPServer):
    """Listens until `close`; `speak` is what talks to a client."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_port = True
    request_queue_size = 128

    def __init__(
        self,
        port: int,
        context: ssl.SSLContext,
        speak: type[BaseRequestHandler],
        access: Access,
        faults: Injections[Fault],
    ) -> None:
        self.access = access
        self.faults = faults
        self._context = context
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__((HOST, port), speak)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening, and cut all connections."""
        self.shutdown()
        self._thread.join()
        self.server_close()
        self.cut()

    def cut(self) -> None:
        """End all connections of this moment."""
        with self._lock:
            for connection in self._open:
                _shut(connection)

    def get_request(self) -> tuple[socket.socket, Any]:
        """The next connection; its TLS handshake takes place in its own thread."""
        accepted, address = self.socket.accept()
        wrapped = self._context.wrap_socket(
            accepted, server_side=True, do_handshake_on_connect=False
        )
        with self._lock:
            self._open.add(wrapped)
        return wrapped, address

    def shutdown_request(self, request: Any) -> None:
        """End one connection."""
        with self._lock:
            self._open.discard(request)
            _shut(request)
        request.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away, or is not ours, is no news."""


def _shut(connection: socket.socket) -> None:
    """End a connection whoever uses it: ssl's own method would break a read in another thread."""
    try:
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
    except OSError:
        pass  # the other side was faster
