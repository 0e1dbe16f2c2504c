"""FaultProxy: stands between a manager and a real API server, and makes the way there bad.

Loopback only, TLS verified on both sides: clients have to show the certificate of the kubeconfig
that the proxy writes; towards the API server the proxy uses the credentials, and the trust, of
the kubeconfig that it was given. So a manager under its Role stays under its Role.

Not here: what the faults are (requests.py), how they are brought about (relay.py).
"""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path
from typing import Self

from generic.kube.inline_kubeconfig import InlineKubeconfig
from generic.kube.kubeconfig import find_access
from generic.testing.envtest.certificates import Authority, save_private
from generic.testing.envtest.servers import HOST, reserve_port
from generic.testing.faults.relay import Listener, Relay
from generic.testing.faults.requests import Fault
from generic.testing.faults.rules import Injection, Injections

_CONNECTIONS = 128


class FaultProxy:
    """A way to the API server that can be made to fail; for use in a `with` statement.

    `kubeconfig` is the one to reach the API server with, `context` the one in it (None: its
    current one); what the proxy writes goes into a new folder below `directory`. Raises
    ConfigurationError where the kubeconfig cannot be used. Safe to use from any thread.
    """

    def __init__(self, kubeconfig: Path, directory: Path, context: str | None = None) -> None:
        self._access = find_access(kubeconfig, context, _CONNECTIONS)
        self._directory = Path(tempfile.mkdtemp(prefix="fault-proxy-", dir=directory))
        self._faults: Injections[Fault] = Injections()
        self._port = reserve_port()
        self.url = f"https://{HOST}:{self._port.getsockname()[1]}"
        authority = Authority.new("fault-proxy")
        self._context = _context(authority, self._directory)
        self.kubeconfig = self._directory / "kubeconfig"
        """What a client needs to come this way, mode 0600."""
        client = authority.client("client-of-the-fault-proxy", [])
        ca = authority.key_pair.certificate
        written = InlineKubeconfig(self.url, ca, certificate=client.certificate, key=client.key)
        save_private(self.kubeconfig, written.encoded("fault-proxy"))
        self._listener: Listener | None = None

    def __enter__(self) -> Self:
        self.come_back()
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def inject(self, fault: Fault) -> Injection[Fault]:
        """Put a fault in force, until its `times` are over or the result's `remove()`."""
        return self._faults.add(fault)

    def cut(self) -> None:
        """End all connections of this moment."""
        if self._listener is not None:
            self._listener.cut()

    def go_down(self) -> None:
        """Refuse connections, as when no API server runs, until `come_back()`."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()

    def come_back(self) -> None:
        """Listen again, at the same address."""
        if self._listener is None:
            port = self._port.getsockname()[1]
            self._listener = Listener(port, self._context, Relay, self._access, self._faults)

    def close(self) -> None:
        """End all faults and connections, and free the port. The files stay."""
        self._faults.remove_all()
        self.go_down()
        self._port.close()


def _context(authority: Authority, directory: Path) -> ssl.SSLContext:
    """TLS for the side of the clients, who have to show a certificate of the authority."""
    certificate, key = directory / "serving.crt", directory / "serving.key"
    authority.serving([HOST]).save(certificate, key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=authority.key_pair.certificate.decode())
    return context
