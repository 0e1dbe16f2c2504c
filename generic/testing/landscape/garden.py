"""The garden: gardener-apiserver, controller manager, scheduler and admission controller.

Real: these programs, their admission, defaults and validation, and the cluster's etcd, in which
gardener-apiserver has the prefix /registry-gardener. Its API is aggregated into the cluster's, so
`kubectl` works as with any garden. Programs, gardenlets and users have only their permissions
(`manifests/permissions.yaml`, admission.py). Faked: the way to two of the programs (the router
leads their Services to local ports), and the operator, whose objects we create (gardenobjects.py).
Any local user can read health and metrics of three programs and call the webhooks, which give no
access by themselves.

Not here: gardenlet and seeds (seed.py).
"""

import json
import ssl
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

from attrs import frozen

from actuator.errors import ApiError
from actuator.interface import Resource
from actuator.meta import Raw
from generic.kube.client import HttpClient, connect
from generic.library.programs.cache import Progress
from generic.library.programs.processes import Processes
from generic.testing.envtest.certificates import LocalAuthority, new_private_key, save_private
from generic.testing.envtest.environment import Environment
from generic.testing.envtest.servers import HOST, free_port, reserve_port
from generic.testing.garden import resource_of_manifest
from generic.testing.landscape.admission import (
    ADMISSION_ADDRESS,
    ADMISSION_HOST,
    admission_registration,
    authorization_flags,
)
from generic.testing.landscape.clusters import GARDEN as GARDEN_PLAN
from generic.testing.landscape.clusters import landscape_cluster
from generic.testing.landscape.gardenobjects import (
    ADMISSION_CONTROLLER,
    API_VERSIONS,
    APISERVER,
    APISERVER_ADDRESS,
    APISERVER_NAMESPACE,
    CONTROLLERS,
    CORE,
    GARDEN,
    ISSUER,
    api_registration,
    bootstrap,
    controller_configuration,
    read_manifests,
)
from generic.testing.landscape.probes import succeeds
from generic.testing.landscape.programs import find_gardener, gardener_version
from generic.testing.landscape.router import Router

SHOOTS = Resource(CORE, "shoots")
START_SECONDS = 180.0
"""Maximum time for each program to become ready."""
HEALTH_SECONDS = 2.0
_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
"""The form of the list that Go programs read."""
_SERVICES = {
    APISERVER_ADDRESS: (APISERVER_NAMESPACE, APISERVER),
    ADMISSION_ADDRESS: (GARDEN, ADMISSION_CONTROLLER),
}


@frozen
class LandscapeGarden:
    """A running garden."""

    cluster: Environment
    """The cluster in which it serves its API; its kubeconfig is the administrator's."""
    processes: Processes
    """The processes of the landscape, among them those of the garden."""
    directory: Path
    """The folder of the garden's credentials and configuration."""
    client: HttpClient
    """The administrator's client."""
    authority: LocalAuthority
    """Signs the serving certificates of Gardener's programs."""

    def seed_kubeconfig(self, seed: str) -> Path:
        """Write a new kubeconfig for the gardenlet of a seed, as the SeedAuthorizer expects it."""
        user = f"gardener.cloud:system:seed:{seed}"
        group = "gardener.cloud:system:seeds"
        return self.cluster.user_kubeconfig(user, [group])

    def apply(self, manifests: Iterable[Raw]) -> None:
        """Create or update objects as the operator. Raises ApiError."""
        for manifest in manifests:
            self.client.apply(resource_of_manifest(manifest), manifest, field_manager="landscape")


@contextmanager
def running_garden(processes: Processes, progress: Progress) -> Iterator[LandscapeGarden]:
    """Start a garden and stop it when the context is left.

    It is entered when Shoots can be listed and the controllers are ready. Raises EnvtestError with
    the end of the log of a program that does not start.
    """
    program = find_gardener(progress)
    directory = processes.directory / "garden"
    directory.mkdir(mode=0o700)
    router = Router(_SERVICES.get)
    authority = LocalAuthority.new("gardener")
    ca = authority.key_pair.certificate
    with ExitStack() as stack:
        socket = directory / "router"
        router.start(socket)
        stack.callback(router.stop)
        proxy = router.proxy_url(GARDEN)
        flags = authorization_flags(directory, proxy, ca)
        planned = landscape_cluster(GARDEN_PLAN, directory / "cluster", socket, progress, flags)
        cluster = stack.enter_context(planned)
        garden = LandscapeGarden(
            cluster, processes, directory, connect(cluster.kubeconfig), authority
        )
        for name in (APISERVER, *CONTROLLERS):
            stack.callback(processes.kill, name)
        garden.apply(read_manifests("permissions"))
        port = stack.enter_context(closing(reserve_port())).getsockname()[1]
        router.replace(APISERVER_NAMESPACE, {APISERVER: {None: [port]}})
        _start_apiserver(garden, program, port, proxy)
        garden.apply(bootstrap(gardener_version()))
        webhooks = free_port()
        router.replace(GARDEN, {ADMISSION_CONTROLLER: {None: [webhooks]}})
        _start_controllers(garden, program, _serving(garden, webhooks))
        garden.apply(admission_registration(ca))
        yield garden


def _start_apiserver(garden: LandscapeGarden, program: Path, port: int, proxy: str) -> None:
    """Start gardener-apiserver and register its APIs."""
    files = _save_credentials(garden)
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
    environ = {"HTTPS_PROXY": proxy}  # it calls the webhooks for its own objects
    garden.processes.start(APISERVER, command, environ, garden.cluster.directory, keep=True)
    certificate = garden.authority.key_pair.certificate
    ready = partial(_is_ready, port, "HTTPS")
    garden.processes.wait_until(APISERVER, ready, START_SECONDS)
    garden.apply(api_registration(certificate))
    garden.processes.wait_until(APISERVER, partial(_serves, garden), START_SECONDS)


def _save_credentials(garden: LandscapeGarden) -> list[str]:
    """Write the serving certificate and the signing key; return the flags that name them."""
    names = "serving.crt", "serving.key", "workload-identity.key"
    certificate, key, signing = (garden.directory / name for name in names)
    hosts = [f"{APISERVER}.{APISERVER_NAMESPACE}.svc", HOST]
    garden.authority.serving(hosts).save(certificate, key)
    save_private(signing, new_private_key())
    return [
        f"--tls-cert-file={certificate}",
        f"--tls-private-key-file={key}",
        f"--workload-identity-signing-key-file={signing}",
    ]


def _start_controllers(garden: LandscapeGarden, program: Path, webhooks: Raw) -> None:
    """Start the controllers, which become ready at the same time."""
    health = {}
    for name in CONTROLLERS:
        health[name] = free_port()
        server: Raw = {
            "healthProbes": {"bindAddress": HOST, "port": health[name]},
            "metrics": {"bindAddress": HOST, "port": free_port()},
        }
        if name == ADMISSION_CONTROLLER:
            server["webhooks"] = webhooks
        kubeconfig = _kubeconfig(garden, name)
        file = garden.directory / f"{name}.json"
        file.write_text(json.dumps(controller_configuration(name, kubeconfig, server)))
        garden.processes.start(name, [program, name, f"--config={file}"], keep=True)
    for name, port in health.items():
        ready = partial(_is_ready, port, "HTTP")
        garden.processes.wait_until(name, ready, START_SECONDS)


def _serving(garden: LandscapeGarden, port: int) -> Raw:
    """Write the serving certificate of the webhooks; return their configuration."""
    directory = garden.directory / "webhooks"
    directory.mkdir()
    pair = garden.authority.serving([ADMISSION_HOST])
    pair.save(directory / "tls.crt", directory / "tls.key")
    return {"bindAddress": HOST, "port": port, "tls": {"serverCertDir": str(directory)}}


def _kubeconfig(garden: LandscapeGarden, name: str) -> Path:
    return garden.cluster.user_kubeconfig(f"system:serviceaccount:{APISERVER_NAMESPACE}:{name}")


def _is_ready(port: int, scheme: str) -> bool:
    """Return the answer to a readiness probe, as of a pod that has the port."""
    request = {"path": "/readyz", "port": port, "scheme": scheme}
    return succeeds({"httpGet": request, "timeoutSeconds": HEALTH_SECONDS}, int)


def _serves(garden: LandscapeGarden) -> bool:
    """Return whether Shoots can be listed, and programs discover all of Gardener's APIs.

    The API server collects what they discover later than the APIs are available (Kubernetes
    documentation, "The Kubernetes API", aggregated discovery).
    """
    cluster = garden.cluster
    headers = {"Accept": _DISCOVERY, "Authorization": f"Bearer {cluster.admin_token}"}
    trusted = ssl.create_default_context(cafile=str(cluster.ca_file))
    opener = build_opener(ProxyHandler({}), HTTPSHandler(context=trusted))
    try:
        garden.client.list(SHOOTS)
        asked = Request(f"{cluster.url}/apis", headers=headers)  # noqa: S310 - https
        with opener.open(asked, timeout=HEALTH_SECONDS) as answer:
            groups = json.load(answer)["items"]
    except (ApiError, OSError):
        return False
    found = {
        (group["metadata"]["name"], version["version"])
        for group in groups
        for version in group["versions"]
        if version.get("resources")
    }
    return all((group, item) in found for group, all_ in API_VERSIONS.items() for item in all_)
