"""A seed: a cluster with a gardenlet, and what plays its nodes and operators.

Real: gardenlet, and the programs of pods that the process kubelet knows: gardener-resource-manager,
API servers of shoots, extensions. Faked: see kubelet.py, operators.py, nodes.py. gardenlet has a
client certificate for the garden, from which it reads the expiry, and reaches Services of the seed
through the router. Not here: the garden (garden.py), and data (seedobjects.py).
"""

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from attrs import frozen

from actuator.errors import ApiError
from actuator.interface import Resource
from generic.kube.certificates import KeyPair
from generic.kube.client import HttpClient, connect
from generic.kube.clock import SystemClock
from generic.library.programs.cache import Progress
from generic.testing.envtest.binaries import find_binaries, kubernetes_version
from generic.testing.envtest.environment import Environment
from generic.testing.envtest.servers import KillableServer, free_port
from generic.testing.garden import resource_of_manifest
from generic.testing.landscape.clusters import SEED, landscape_cluster
from generic.testing.landscape.containers import Image
from generic.testing.landscape.garden import START_SECONDS, LandscapeGarden
from generic.testing.landscape.gardenobjects import CORE, GARDEN, read_manifests
from generic.testing.landscape.images import landscape_images
from generic.testing.landscape.kubelet import Kubelet
from generic.testing.landscape.operators import serve_operators
from generic.testing.landscape.programs import find_gardener
from generic.testing.landscape.router import Router
from generic.testing.landscape.seedobjects import (
    SeedPlan,
    gardenlet_configuration,
    seed_credentials,
)
from generic.testing.landscape.services import Services
from generic.testing.landscape.shootetcd import ShootEtcds
from generic.testing.landscape.shoots import ETCD, SimulatedMachines
from generic.testing.landscape.snapshots import SnapshotPort
from generic.testing.polling import polling

SEEDS = Resource(CORE, "seeds", namespaced=False)
_POLL_SECONDS = 0.5


@frozen
class LandscapeSeed:
    """A running seed."""

    plan: SeedPlan
    cluster: Environment
    client: HttpClient
    """The administrator's client."""
    router: Router
    shoots: SimulatedMachines

    @property
    def gardenlet(self) -> str:
        """The name of gardenlet's process."""
        return f"gardenlet-{self.plan.name}"


@contextmanager
def running_seed(
    garden: LandscapeGarden,
    plan: SeedPlan,
    images: Mapping[str, Image],
    progress: Progress,
) -> Iterator[LandscapeSeed]:
    """Start a seed and its gardenlet, and stop both when the context is left.

    `images` has the images of extensions, by the name of their repository. It is entered when
    gardenlet has registered the Seed, and prepares the cluster. Raises EnvtestError with the end
    of the log of a program that does not start.
    """
    directory = garden.processes.directory / plan.name
    directory.mkdir(mode=0o700)
    with ExitStack() as stack:
        services, cluster, client = _start_cluster(stack, plan, directory, progress)
        garden.apply([seed_credentials(plan)])
        binaries = find_binaries(progress)
        program = find_gardener(progress)
        folder = directory / "etcd"
        kept = garden.processes.directory / "snapshots"
        etcds = ShootEtcds(binaries[KillableServer.ETCD], folder, garden.processes, kept)
        known = landscape_images(binaries, program, etcds.start) | dict(images)
        kubelet = Kubelet(cluster, services, known, garden.processes)
        kubelet.start()
        stack.callback(kubelet.stop)
        shoots = _start_simulations(stack, services, client, plan.name, etcds)
        seed = LandscapeSeed(plan, cluster, client, services.router, shoots)
        stack.callback(garden.processes.kill, seed.gardenlet)
        environ = _snapshots(stack, seed, etcds) if plan.backup else {}
        _start_gardenlet(garden, seed, directory, program, environ)
        yield seed


def _start_cluster(
    stack: ExitStack, plan: SeedPlan, directory: Path, progress: Progress
) -> tuple[Services, Environment, HttpClient]:
    """Start router and cluster, with the objects that a real one has."""
    socket = directory / "router"
    stop = threading.Event()
    router = Router(lambda host: services.lookup(host) or shoot_of(host, plan.domain))
    router.start(socket)
    stack.callback(router.stop)
    planned = landscape_cluster(SEED, directory / "cluster", socket, progress)
    cluster = stack.enter_context(planned)
    client = connect(cluster.kubeconfig)
    services = Services(client, router)
    for manifest in read_manifests("seed"):
        client.apply(resource_of_manifest(manifest), manifest, field_manager="landscape")
    services.start(stop)
    stack.callback(stop.set)
    return services, cluster, client


def _start_simulations(
    stack: ExitStack,
    services: Services,
    client: HttpClient,
    name: str,
    etcds: ShootEtcds,
) -> SimulatedMachines:
    """Start the simulated operators, machines and nodes."""
    version = kubernetes_version()
    clock = SystemClock()
    shoots = SimulatedMachines(client, services.router, version, clock, etcds.remove)
    stack.enter_context(shoots)
    operators = partial(serve_operators, client, clock)
    stack.enter_context(polling(operators, f"{name}-operators", every=_POLL_SECONDS))
    stack.enter_context(polling(shoots.poll, f"{name}-shoots", every=_POLL_SECONDS))
    return shoots


def shoot_of(host: str, domain: str) -> tuple[str, str] | None:
    """Return namespace and Service of a shoot's API server by its name in DNS, or None.

    Neither DNS nor a load balancer is on the way: the records of the extension are not asked.
    """
    pattern = r"api\.([a-z0-9-]+)\.([a-z0-9-]+)\.(?:internal|default)\." + re.escape(domain)
    found = re.fullmatch(pattern, host)
    return (f"shoot--{found[2]}--{found[1]}", "kube-apiserver") if found else None


def _snapshots(stack: ExitStack, seed: LandscapeSeed, etcds: ShootEtcds) -> Mapping[str, str]:
    """Serve the request for a snapshot; return the variables with which gardenlet finds it."""

    def serving(namespace: str, host: str) -> KeyPair | None:
        found = seed.shoots.access(namespace).authorities().get(ETCD)
        return found.newest.serving([host]) if found else None

    def snapshot(namespace: str) -> None:
        if not seed.router.find(namespace, "kube-apiserver", 443):
            etcds.snapshot(namespace)

    port = stack.enter_context(SnapshotPort(serving, snapshot))
    return {"LANDSCAPE_RESOLVED": port.address}


def _start_gardenlet(
    garden: LandscapeGarden,
    seed: LandscapeSeed,
    directory: Path,
    program: Path,
    more: Mapping[str, str],
) -> None:
    health = free_port()
    metrics = free_port()
    paths = str(garden.seed_kubeconfig(seed.plan.name)), str(seed.cluster.kubeconfig)
    configuration = gardenlet_configuration(seed.plan, *paths, health, metrics)
    file = directory / "gardenlet.json"
    file.write_text(json.dumps(configuration))
    environ = {"HTTPS_PROXY": seed.router.proxy_url(GARDEN), "NAMESPACE": GARDEN, **more}
    command: list[str | Path] = [program, "gardenlet", f"--config={file}"]
    garden.processes.start(seed.gardenlet, command, environ, keep=True)
    ready = partial(_is_registered, garden, seed)
    garden.processes.wait_until(seed.gardenlet, ready, START_SECONDS)


def _is_registered(garden: LandscapeGarden, seed: LandscapeSeed) -> bool:
    try:
        garden.client.get(SEEDS, seed.plan.name)
    except ApiError:
        return False
    return True
