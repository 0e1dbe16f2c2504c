"""Access to the shoots of a seed, and the simulated nodes of each.

The administrator of a shoot gets a client certificate of the authority that gardenlet made for its
API server, as the seed has no kubeconfig of an administrator. Machines come from the simulated
machine-controller-manager. Not here: the API server, which is a process of the kubelet, and what a
node shows (`nodes`).
"""

import base64
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Self

from attrs import define, field, frozen

from actuator.errors import ApiError
from actuator.interface import SECRETS, Client, Clock
from actuator.meta import Raw
from generic.kube.certificates import KeyPair
from generic.kube.client import HttpClient, connect
from generic.kube.clusters import NAMESPACES
from generic.kube.kubeconfig import InlineKubeconfig
from generic.testing.envtest.certificates import LocalAuthority
from generic.testing.envtest.servers import HOST
from generic.testing.landscape.kubeletport import KubeletPort
from generic.testing.landscape.nodes import ShootNodes
from generic.testing.landscape.router import Router
from generic.testing.machinecontroller import MachineControllers

_ROLE = "gardener.cloud/role=shoot"
ETCD = "ca-etcd"
_SERVER = "ca"
_CLIENT = "ca-client"
_KUBELET = "ca-kubelet"
"""The authorities of a shoot: of its API server, of that one's clients, of its kubelets."""
_MANAGED = f"managed-by=secrets-manager,name in ({_SERVER},{_CLIENT},{_KUBELET},{ETCD})"
_ISSUED = "issued-at-time"
_APISERVER = "kube-apiserver"
_HTTPS = 443
_LOOK_SECONDS = 10.0
"""Between two looks for new authorities; a rotation of credentials waits longer for nodes."""


@frozen
class Authorities:
    """The authorities of one name: several during a rotation of credentials, else one."""

    newest: LocalAuthority
    certificates: bytes
    """The certificates of all: a server may still have a certificate of the old one."""


def authorities(secrets: list[Raw]) -> Mapping[str, Authorities]:
    """Return the authorities of each name among a shoot's Secrets (Gardener, secretsmanager).

    Those whose key is kept elsewhere are left out.
    """
    found: dict[str, dict[int, KeyPair]] = {}
    for secret in secrets:
        labels = secret["metadata"].get("labels") or {}
        data = secret.get("data") or {}
        if "ca.key" in data:
            pair = KeyPair(base64.b64decode(data["ca.crt"]), base64.b64decode(data["ca.key"]))
            name = str(labels.get("name"))
            issued = int(labels.get(_ISSUED) or 0)
            found.setdefault(name, {})[issued] = pair
    return {
        name: Authorities(
            LocalAuthority(pairs[max(pairs)]),
            b"".join(pairs[issued].certificate for issued in sorted(pairs)),
        )
        for name, pairs in found.items()
    }


@frozen
class ShootApi:
    """Access to one shoot, whose namespace in the seed is `namespace`."""

    seed: Client
    namespace: str
    router: Router

    def kubeconfig(self) -> InlineKubeconfig | None:
        """Return a kubeconfig of a new administrator; None before the API server runs."""
        ports = self.router.find(self.namespace, _APISERVER, _HTTPS)
        found = self.authorities()
        if not ports or not {_SERVER, _CLIENT} <= found.keys():
            return None
        pair = found[_CLIENT].newest.client("landscape", ["system:masters"])
        server = f"https://{HOST}:{ports[0]}"
        name = _APISERVER
        ca = found[_SERVER].certificates
        return InlineKubeconfig(
            server, ca, certificate=pair.certificate, key=pair.key, tls_server_name=name
        )

    def authorities(self) -> Mapping[str, Authorities]:
        """Return the authorities in the seed. Raises ApiError."""
        return authorities(self.seed.list(SECRETS, self.namespace, label_selector=_MANAGED))


@define
class _SimulatedShoot:
    """The simulated nodes of one shoot, and their port once its authorities exist."""

    access: ShootApi
    client: HttpClient | None = None
    server: str = ""
    """The address to which `client` is connected; it changes with the API server's process."""
    nodes: ShootNodes | None = None
    port: KubeletPort | None = None
    kubelets: Authorities | None = None
    """The authorities of the port's certificate and of its clients."""
    next_look: float = 0.0
    """When to look for others, on the monotonic clock."""
    stack: ExitStack = field(factory=ExitStack)

    def connect(self) -> HttpClient | None:
        """Return a client for the running API server."""
        ports = self.access.router.find(self.access.namespace, _APISERVER, _HTTPS)
        server = f"https://{HOST}:{ports[0]}" if ports else ""
        if server != self.server:
            self.server = ""
            self.client = None
        if self.client is None and (found := self.access.kubeconfig()):
            self.client = connect(found)
            self.server = found.server
        return self.client


class SimulatedMachines:
    """Simulates machines and nodes for all shoots of a seed; each `poll` is one round of work."""

    def __init__(
        self,
        seed: Client,
        router: Router,
        version: str,
        clock: Clock,
        removed: Callable[[str], None],
    ) -> None:
        """`version` is that of the kubelets.

        `removed` is called with the namespace of each shoot that does not exist any more.
        """
        self._seed = seed
        self._router = router
        self._version = version
        self._clock = clock
        self._removed = removed
        self._machines = MachineControllers(seed)
        self._shoots: dict[str, _SimulatedShoot] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for shoot in self._shoots.values():
            shoot.stack.close()

    def access(self, namespace: str) -> ShootApi:
        """Return the access to a shoot."""
        return ShootApi(self._seed, namespace, self._router)

    def poll(self) -> None:
        """Do one round of work. Raises ApiError."""
        self._machines.poll()
        listed = self._seed.list(NAMESPACES, label_selector=_ROLE)
        names = {obj["metadata"]["name"] for obj in listed}
        for name in self._shoots.keys() - names:
            self._shoots.pop(name).stack.close()
            self._removed(name)
        for name in names:
            shoot = self._shoots.setdefault(name, _SimulatedShoot(self.access(name)))
            try:
                self._serve(shoot)
            except ApiError:  # its API server is not reachable, as while it is deleted
                shoot.client = None

    def _serve(self, shoot: _SimulatedShoot) -> None:
        now = self._clock.monotonic()
        if shoot.port is None or now >= shoot.next_look:
            shoot.next_look = now + _LOOK_SECONDS
            kubelets = shoot.access.authorities().get(_KUBELET)
            if kubelets is not None and kubelets != shoot.kubelets:
                self._renew_port(shoot, kubelets)
        if shoot.nodes is None and shoot.port is not None:
            shoot.nodes = ShootNodes(
                self._seed,
                shoot.access.namespace,
                shoot.connect,
                shoot.port.number,
                self._version,
                self._clock,
            )
        if shoot.nodes is not None:
            shoot.nodes.poll()

    def _renew_port(self, shoot: _SimulatedShoot, kubelets: Authorities) -> None:
        """Give the port a certificate of the shoot's kubelets, which its API server trusts."""
        pair = kubelets.newest.serving([HOST, "localhost"])
        if shoot.port is None:
            port = KubeletPort(pair, kubelets.certificates)
            shoot.port = shoot.stack.enter_context(port)
        else:
            shoot.port.renew(pair, kubelets.certificates)
        shoot.kubelets = kubelets
