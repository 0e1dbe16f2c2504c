"""Access to the shoots of a seed, and the simulated nodes of each.

The administrator of a shoot gets a client certificate of the authority that gardenlet made for its
API server, as the seed has no kubeconfig of an administrator. Machines come from the simulated
machine-controller-manager. Not here: the API server, which is a process of the kubelet, and what a
node shows (`nodes`).
"""

import base64
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from attrs import define, field, frozen

from actuator.errors import ApiError
from actuator.interface import SECRETS, Client, Clock
from actuator.meta import Raw
from generic.kube.certificates import KeyPair
from generic.kube.client import HttpClient, connect
from generic.kube.clusters import NAMESPACES
from generic.kube.inline_kubeconfig import InlineKubeconfig
from generic.testing.envtest.certificates import Authority
from generic.testing.envtest.servers import HOST
from generic.testing.landscape.kubeletport import KubeletPort
from generic.testing.landscape.nodes import ShootNodes
from generic.testing.landscape.router import Router
from generic.testing.machinecontroller import MachineControllers

_ROLE = "gardener.cloud/role=shoot"
_MANAGED, _ISSUED = "managed-by=secrets-manager", "issued-at-time"
_SERVER, _CLIENT, _KUBELET = "ca", "ca-client", "ca-kubelet"
"""The authorities of a shoot: of its API server, of that one's clients, of its kubelets."""
_APISERVER, _HTTPS = "kube-apiserver", 443


def authorities(secrets: list[Raw]) -> Mapping[str, Authority]:
    """Return the newest authority of each name among a shoot's Secrets (Gardener, secretsmanager).

    Of an authority whose key is kept elsewhere there is none.
    """
    found: dict[str, tuple[int, Authority]] = {}
    for secret in secrets:
        labels, data = secret["metadata"].get("labels") or {}, secret.get("data") or {}
        if "ca.key" not in data:
            continue
        pair = KeyPair(base64.b64decode(data["ca.crt"]), base64.b64decode(data["ca.key"]))
        name, issued = str(labels.get("name")), int(labels.get(_ISSUED) or 0)
        if name not in found or found[name][0] < issued:
            found[name] = issued, Authority(pair)
    return {name: authority for name, (_, authority) in found.items()}


@frozen
class ShootAccess:
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
        pair = found[_CLIENT].client("landscape", ["system:masters"])
        server, name = f"https://{HOST}:{ports[0]}", _APISERVER
        ca = found[_SERVER].key_pair.certificate
        return InlineKubeconfig(
            server, ca, certificate=pair.certificate, key=pair.key, tls_server_name=name
        )

    def authorities(self) -> Mapping[str, Authority]:
        """Return the authorities in the seed. Raises ApiError."""
        return authorities(self.seed.list(SECRETS, self.namespace, label_selector=_MANAGED))


@define
class _Shoot:
    """The simulated nodes of one shoot, and their port once its authorities exist."""

    access: ShootAccess
    client: HttpClient | None = None
    server: str = ""
    """The address to which `client` is connected; it changes with the API server's process."""
    nodes: ShootNodes | None = None
    stack: ExitStack = field(factory=ExitStack)

    def connect(self) -> HttpClient | None:
        """Return a client for the running API server."""
        ports = self.access.router.find(self.access.namespace, _APISERVER, _HTTPS)
        server = f"https://{HOST}:{ports[0]}" if ports else ""
        if server != self.server:
            self.server, self.client = "", None
        if self.client is None and (found := self.access.kubeconfig()):
            self.client, self.server = connect(found), found.server
        return self.client


class Shoots:
    """Simulates machines and nodes for all shoots of a seed; each `poll` is one round of work."""

    def __init__(
        self,
        seed: Client,
        router: Router,
        directory: Path,
        version: str,
        clock: Clock,
        removed: Callable[[str], None],
    ) -> None:
        """`directory` is private; `version` is that of the kubelets.

        `removed` is called with the namespace of each shoot that does not exist any more.
        """
        self._seed = seed
        self._router = router
        self._directory = directory
        self._version = version
        self._clock = clock
        self._removed = removed
        self._machines = MachineControllers(seed)
        self._shoots: dict[str, _Shoot] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for shoot in self._shoots.values():
            shoot.stack.close()

    def access(self, namespace: str) -> ShootAccess:
        """Return the access to a shoot."""
        return ShootAccess(self._seed, namespace, self._router)

    def poll(self) -> None:
        """Do one round of work. Raises ApiError."""
        self._machines.poll()
        listed = self._seed.list(NAMESPACES, label_selector=_ROLE)
        names = {one["metadata"]["name"] for one in listed}
        for name in self._shoots.keys() - names:
            self._shoots.pop(name).stack.close()
            self._removed(name)
        for name in names:
            shoot = self._shoots.setdefault(name, _Shoot(self.access(name)))
            try:
                self._serve(shoot)
            except ApiError:  # its API server is not reachable, as while it is deleted
                shoot.client = None

    def _serve(self, shoot: _Shoot) -> None:
        if shoot.nodes is None:
            kubelets = shoot.access.authorities().get(_KUBELET)
            if kubelets is None:
                return
            port = shoot.stack.enter_context(self._port(shoot.access.namespace, kubelets))
            shoot.nodes = ShootNodes(
                self._seed,
                shoot.access.namespace,
                shoot.connect,
                port.number,
                self._version,
                self._clock,
            )
        shoot.nodes.poll()

    def _port(self, namespace: str, kubelets: Authority) -> KubeletPort:
        """Return a port with a certificate of the shoot's kubelets, which its API server trusts."""
        folder = self._directory / namespace
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        certificate, key, ca = (folder / f"kubelet{end}" for end in (".crt", ".key", "-ca.crt"))
        kubelets.serving([HOST, "localhost"]).save(certificate, key)
        ca.write_bytes(kubelets.key_pair.certificate)
        return KubeletPort(certificate, key, ca)
