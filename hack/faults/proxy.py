"""FaultProxy: a proxy between a manager and a real API server that injects faults.

Loopback only, TLS verified on both sides: clients must present the certificate of the kubeconfig
that the proxy writes. Towards the API server the proxy uses the credentials and the certificate
authority of its own kubeconfig. So a manager keeps the permissions of its Role.

Not here: the definition of faults (requests.py), their implementation (relay.py).
"""

import ssl
import tempfile
from pathlib import Path
from typing import Self

from generic.kube.access import find_access
from generic.kube.kubeconfig import InlineKubeconfig
from generic.testing.envtest.certificates import LocalAuthority, save_private
from generic.testing.envtest.servers import HOST, reserve_port
from hack.faults.relay import Listener
from hack.faults.requests import Fault
from hack.faults.rules import Injection, Injections

_CONNECTIONS = 128


class FaultProxy:
    """A proxy to the API server that can fail on request; for use in a `with` statement.

    `kubeconfig` is the access to the API server. The proxy writes its files into a new folder below
    `directory`. Raises ConfigurationError if the kubeconfig cannot be used. Safe to use from any
    thread.
    """

    def __init__(self, kubeconfig: Path, directory: Path) -> None:
        self._access = find_access(kubeconfig, None, _CONNECTIONS)
        self._directory = Path(tempfile.mkdtemp(prefix="fault-proxy-", dir=directory))
        self._faults: Injections[Fault] = Injections()
        self._port = reserve_port()
        self.url = f"https://{HOST}:{self._port.getsockname()[1]}"
        authority = LocalAuthority.new("fault-proxy")
        self._context = _context(authority, self._directory)
        self.kubeconfig = self._directory / "kubeconfig"
        """The kubeconfig for clients of the proxy, mode 0600."""
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
        """Activate a fault until it has hit `times` times or `remove()` of the result is called."""
        return self._faults.add(fault)

    def go_down(self) -> None:
        """Refuse connections, as if no API server were running, until `come_back()`."""
        listener = self._listener
        self._listener = None
        if listener is not None:
            listener.stop()

    def come_back(self) -> None:
        """Listen again, at the same address."""
        if self._listener is None:
            port = self._port.getsockname()[1]
            self._listener = Listener(port, self._context, self._access, self._faults)
            self._listener.start()

    def close(self) -> None:
        """End all faults and connections, and free the port. The files stay."""
        self._faults.remove_all()
        self.go_down()
        self._port.close()


def _context(authority: LocalAuthority, directory: Path) -> ssl.SSLContext:
    """Return TLS for the clients' side; clients must present a certificate of the authority."""
    certificate = directory / "serving.crt"
    key = directory / "serving.key"
    authority.serving([HOST]).save(certificate, key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=authority.key_pair.certificate.decode())
    return context
