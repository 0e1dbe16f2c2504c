"""The port of a simulated kubelet, with which gardenlet checks that it reaches the nodes.

gardenlet forwards a port to a pod of the VPN; the API server passes the upgrade on to the node's
kubelet. This port accepts the upgrade and carries no data, and answers every other request with
200. Not here: the nodes (`nodes`).
"""

import socket
import ssl
import threading
from contextlib import suppress
from typing import Self

from generic.kube.certificates import KeyPair
from generic.library.webhooks.server import server_context

_MAX_HEAD = 16 * 1024
_SECONDS = 30.0
"""Maximum seconds for TLS and the head of a request, and between two pieces of an upgraded one."""
_UPGRADED = (
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
    b"X-Stream-Protocol-Version: portforward.k8s.io\r\n\r\n"
)
_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


class KubeletPort:
    """Listens on loopback while the context is open; only clients of `client_ca` are answered."""

    def __init__(self, pair: KeyPair, client_ca: bytes) -> None:
        self.renew(pair, client_ca)
        self._listener = socket.create_server(("127.0.0.1", 0))

    def renew(self, pair: KeyPair, client_ca: bytes) -> None:
        """Use these for connections from now on, as after a rotation of credentials."""
        tls = server_context(pair)
        tls.load_verify_locations(cadata=client_ca.decode())
        tls.verify_mode = ssl.CERT_REQUIRED
        self._tls = tls

    @property
    def number(self) -> int:
        """The port."""
        port: int = self._listener.getsockname()[1]
        return port

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, name="kubelet-port", daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept()
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                raw, _ = self._listener.accept()
                threading.Thread(target=self._answer, args=(raw,), daemon=True).start()

    def _answer(self, raw: socket.socket) -> None:
        with suppress(OSError), raw:
            raw.settimeout(_SECONDS)
            with self._tls.wrap_socket(raw, server_side=True) as connected:
                head = b""
                while b"\r\n\r\n" not in head and len(head) < _MAX_HEAD:
                    piece = connected.recv(_MAX_HEAD)
                    if not piece:
                        return
                    head += piece
                if b"upgrade: spdy/" not in head.lower():
                    connected.sendall(_OK)
                    return
                connected.sendall(_UPGRADED)
                while connected.recv(_MAX_HEAD):
                    pass
