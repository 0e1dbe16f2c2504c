"""A folder as the outside, and a shoot's namespace with one object of a kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs
import pytest

from actuator.meta import Object, Raw
from extensions.local.mounts import Mount, MountController
from extensions.local.outside import Outside
from generic.kube.clusters import CLUSTERS
from generic.kube.crds import crd
from generic.library.managedresources import ManagedResource
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.testing.garden import NAMESPACES
from generic.testing.seed import install_crds
from tests.support.cluster.harness import Seed, connected, eventually
from tests.support.objects import builders
from tests.support.samples.local import manifest

Deploy = Callable[..., Seed]


@pytest.fixture(scope="session", autouse=True)
def crds(admin) -> None:
    """The kinds of others that the sample uses."""
    install_crds(admin, [crd(Mount), crd(ManagedResource)])


@pytest.fixture
def outside(tmp_path) -> Outside:
    directory = tmp_path / "outside"
    directory.mkdir()
    return Outside(directory)


@pytest.fixture
def deploy(seed) -> Deploy:
    """Creates an object as gardenlet does, and waits until it is ready."""
    is_shoot: Raw = {"metadata": {"labels": {"gardener.cloud/role": "shoot"}}}
    seed.client.patch(NAMESPACES, seed.namespace, "", is_shoot)

    def deployer(cls: type[Object], name: str = "x", *, ready: bool = True, **spec: Raw) -> Seed:
        looking_at = seed.of(cls, name)
        seed.garden.deploy(manifest(cls, seed.namespace, name, **spec))
        if ready:
            eventually(looking_at.is_ready)
        return looking_at

    return deployer


@pytest.fixture
def other_seed(seed, admin) -> Iterator[Seed]:
    """The same shoot, as the seed sees it that it moves to."""
    namespace = f"{seed.namespace}-moved"
    meta = {"name": namespace, "labels": {"gardener.cloud/role": "shoot"}}
    admin.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    cluster = builders.cluster(namespace)
    cluster["spec"]["shoot"]["status"]["technicalID"] = seed.namespace
    admin.create(CLUSTERS, cluster)
    yield Seed(admin, namespace)
    admin.delete(CLUSTERS, namespace)


@pytest.fixture
def serve_mounts(environment, admin, namespace) -> Iterator[Callable[[], None]]:
    """Switches the storage vendor's controller on, for the Mounts of this test alone."""
    options = Options(metrics_bind_address="0", health_bind_address="0")
    manager = Manager(attrs.evolve(options, leader_election=False))
    manager.add(MountController(), namespaces=[namespace, f"{namespace}-moved"])
    with connected(environment, admin, manager, namespace):
        yield manager.start
