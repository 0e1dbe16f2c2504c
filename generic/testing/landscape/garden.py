"""The garden: gardener-apiserver, gardener-controller-manager and gardener-scheduler in a cluster.

Real: these programs, their admission plugins, defaults and validation, and the cluster's etcd, in
which gardener-apiserver has the prefix /registry-gardener. Its API is aggregated into the
cluster's, so `kubectl` works as with any garden. Faked: the way from the cluster to
gardener-apiserver (the router leads its Service to a local port), the objects that an operator
creates (gardenobjects.py), and the permissions of the three programs, which are in system:masters.
Health and metrics of two of them answer any local user; they have no credential in Gardener.

Not here: gardenlet and seeds (seed.py), and the admission controller.
"""

import json
import ssl
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from urllib.request import HTTPSHandler, ProxyHandler, build_opener

from attrs import frozen

from actuator.errors import ApiError
from actuator.interface import Resource
from actuator.meta import Raw
from generic.kube.client import HttpClient, connect
from generic.library.programs.cache import Progress
from generic.library.programs.processes import Processes
from generic.testing.envtest.certificates import Authority, new_private_key, save_private
from generic.testing.envtest.environment import Environment
from generic.testing.envtest.servers import HOST, free_port, reserve_port
from generic.testing.garden import resource_of_manifest
from generic.testing.landscape.clusters import GARDEN, landscape_cluster
from generic.testing.landscape.gardenobjects import (
    APISERVER,
    APISERVER_ADDRESS,
    APISERVER_NAMESPACE,
    CORE,
    ISSUER,
    api_registration,
    bootstrap,
)
from generic.testing.landscape.programs import find_gardener, gardener_version
from generic.testing.landscape.router import Router

CONTROLLER_MANAGER = "gardener-controller-manager"
SCHEDULER = "gardener-scheduler"
SHOOTS = Resource(CORE, "shoots")
API_SERVICES = Resource("apiregistration.k8s.io/v1", "apiservices", namespaced=False)
START_SECONDS = 180.0
"""Maximum time for each program to become ready."""
HEALTH_SECONDS = 2.0
_CONTROLLER_MANAGER = {
    "apiVersion": "controllermanager.config.gardener.cloud/v1alpha1",
    "kind": "ControllerManagerConfiguration",
}
_SCHEDULER = {
    "apiVersion": "scheduler.config.gardener.cloud/v1alpha1",
    "kind": "SchedulerConfiguration",
}


@frozen
class Garden:
    """A running garden."""

    cluster: Environment
    """The cluster in which it serves its API; its kubeconfig is the administrator's."""
    processes: Processes
    """The processes of the landscape, among them those of the garden."""
    directory: Path
    """The folder of the garden's credentials and configuration."""
    client: HttpClient
    """The administrator's client."""

    def apply(self, manifests: Iterable[Raw]) -> None:
        """Create or update objects as the operator. Raises ApiError."""
        for manifest in manifests:
            self.client.apply(resource_of_manifest(manifest), manifest, field_manager="landscape")


@contextmanager
def running_garden(processes: Processes, progress: Progress) -> Iterator[Garden]:
    """Start a garden and stop it when the context is left.

    It is entered when Shoots can be listed and the controllers are ready. Raises EnvtestError with
    the end of the log of a program that does not start.
    """
    program = find_gardener(progress)
    directory = processes.directory / "garden"
    directory.mkdir(mode=0o700)
    router = Router({APISERVER_ADDRESS: (APISERVER_NAMESPACE, APISERVER)}.get)
    with ExitStack() as stack:
        socket = directory / "router"
        router.start(socket)
        stack.callback(router.stop)
        planned = landscape_cluster(GARDEN, directory / "cluster", socket, progress)
        cluster = stack.enter_context(planned)
        garden = Garden(cluster, processes, directory, connect(cluster.kubeconfig))
        for name in (APISERVER, CONTROLLER_MANAGER, SCHEDULER):
            stack.callback(processes.kill, name)
        port = stack.enter_context(closing(reserve_port())).getsockname()[1]
        router.set(APISERVER_NAMESPACE, APISERVER, port)
        _start_apiserver(garden, program, port)
        garden.apply(bootstrap(gardener_version()))
        _start_controllers(garden, program)
        yield garden


def _start_apiserver(garden: Garden, program: Path, port: int) -> None:
    """Start gardener-apiserver and register its APIs."""
    authority = Authority.new("gardener")
    files = _save_credentials(garden.directory, authority)
    kubeconfig = _kubeconfig(garden, APISERVER)
    command: list[str | Path] = [
        program,
        APISERVER,
        "--etcd-servers=unix://clients:1",  # a path in the working directory, see `etcd_command`
        "--cluster-identity=landscape",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--kubeconfig={kubeconfig}",
        f"--bind-address={HOST}",
        f"--secure-port={port}",
        "--permit-port-sharing",
        *files,
        f"--workload-identity-token-issuer={ISSUER}",
        "--log-format=text",
    ]
    garden.processes.start(APISERVER, command, cwd=garden.cluster.directory)
    certificate = authority.key_pair.certificate
    trusted = ssl.create_default_context(cadata=certificate.decode())
    ready = partial(_answers, f"https://{HOST}:{port}/readyz", trusted)
    garden.processes.wait_until(APISERVER, ready, START_SECONDS)
    garden.apply(api_registration(certificate))
    garden.processes.wait_until(APISERVER, partial(_serves, garden.client), START_SECONDS)


def _save_credentials(directory: Path, authority: Authority) -> list[str]:
    """Write the serving certificate and the signing key; return the flags that name them."""
    certificate, key = directory / "serving.crt", directory / "serving.key"
    signing = directory / "workload-identity.key"
    hosts = [f"{APISERVER}.{APISERVER_NAMESPACE}.svc", HOST]
    authority.serving(hosts).save(certificate, key)
    save_private(signing, new_private_key())
    return [
        f"--tls-cert-file={certificate}",
        f"--tls-private-key-file={key}",
        f"--workload-identity-signing-key-file={signing}",
    ]


def _start_controllers(garden: Garden, program: Path) -> None:
    """Start controller manager and scheduler; they become ready at the same time."""
    configurations = {
        CONTROLLER_MANAGER: (_CONTROLLER_MANAGER, "gardenClientConnection"),
        SCHEDULER: (_SCHEDULER, "clientConnection"),
    }
    health = {}
    for name, (base, connection) in configurations.items():
        health[name] = free_port()
        configuration = base | {
            connection: {"kubeconfig": str(_kubeconfig(garden, name)), "qps": 100, "burst": 130},
            "leaderElection": {"leaderElect": False},
            "logLevel": "info",
            "logFormat": "text",
            "server": {
                "healthProbes": {"bindAddress": HOST, "port": health[name]},
                "metrics": {"bindAddress": HOST, "port": free_port()},
            },
        }
        file = garden.directory / f"{name}.json"
        file.write_text(json.dumps(configuration))
        garden.processes.start(name, [program, name, f"--config={file}"])
    for name, port in health.items():
        ready = partial(_answers, f"http://{HOST}:{port}/readyz")
        garden.processes.wait_until(name, ready, START_SECONDS)


def _kubeconfig(garden: Garden, name: str) -> Path:
    user = f"system:serviceaccount:{APISERVER_NAMESPACE}:{name}"
    return garden.cluster.user_kubeconfig(user, ["system:masters"])


def _answers(url: str, trusted: ssl.SSLContext | None = None) -> bool:
    """Return whether the server says so; the user's HTTPS_PROXY is not for local servers."""
    direct = ProxyHandler({}), HTTPSHandler(context=trusted)
    try:
        with build_opener(*direct).open(url, timeout=HEALTH_SECONDS):
            return True
    except OSError:
        return False


def _serves(client: HttpClient) -> bool:
    """Return whether Shoots can be listed and the cluster knows all of Gardener's APIs."""
    try:
        client.list(SHOOTS)
        found = client.list(API_SERVICES)
    except ApiError:
        return False
    return all(_is_available(registered) for registered in found)


def _is_available(registered: Raw) -> bool:
    conditions = registered.get("status", {}).get("conditions", ())
    return ("Available", "True") in [(one["type"], one["status"]) for one in conditions]
