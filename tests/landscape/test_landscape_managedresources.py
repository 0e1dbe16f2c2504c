"""The real gardener-resource-manager applies objects of this project, in seed and shoot.

It is Gardener's program, on embedded clusters: the seed's instance reads and writes one cluster,
the shoot's reads a seed and writes another cluster.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator
from functools import partial
from random import Random

import attrs
import pytest

from actuator.errors import RequeueAfter
from actuator.interface import CONFIG_MAPS, SECRETS, Client
from actuator.meta import Raw
from generic.kube.client import connect
from generic.kube.clock import SystemClock
from generic.kube.clusters import NAMESPACES
from generic.library import managedresources
from generic.library.managedresources import ManagedResource
from generic.library.managedresources.kind import MANAGED_RESOURCES, NO_CLEANUP, SEED_CLASS
from generic.library.managedresources.packing import COMPRESSED, KEY, LIMIT
from generic.library.manifests import manifest
from generic.testing.envtest import Environment
from generic.testing.seed import install_crds
from tests.support.cluster.harness import eventually
from tests.support.landscape.resource_manager import running_resource_manager

NAME = "mine"
SECONDS = 90.0
"""For one change by the resource manager; it looks at the health of objects once a minute."""


@attrs.frozen
class Managed:
    """A ManagedResource of this test: its namespace in the seed, and where its objects are."""

    client: Client
    target: Client
    namespace: str
    class_: str

    def deploy(self, *manifests: Raw) -> None:
        deploy = managedresources.deploy_for_shoot
        if self.class_ == SEED_CLASS:
            deploy = managedresources.deploy_for_seed
        deploy(self.client, NAME, self.namespace, manifests)

    def wait_until_applied(self, *expected: Raw) -> None:
        """Wait until the resource manager reports health, and compare objects of the target."""
        eventually(self.is_healthy, SECONDS)
        assert self.applied() == {obj["metadata"]["name"]: content(obj) for obj in expected}

    def is_healthy(self) -> bool:
        try:
            managedresources.wait_until_healthy(
                self.client, SystemClock(), NAME, namespace=self.namespace
            )
        except RequeueAfter:
            return False
        return True

    def applied(self) -> Raw:
        found = self.target.list(CONFIG_MAPS, self.namespace)
        return {obj["metadata"]["name"]: content(obj) for obj in found if is_of_test(obj)}

    def config_map(self, name: str, **data: str) -> Raw:
        return manifest("v1", "ConfigMap", name, self.namespace, data=data)

    def large(self, name: str) -> Raw:
        """One that fits into a cluster, and as a document into no Secret."""
        size = 900_000
        data = base64.b64encode(Random(name).randbytes(size)).decode()
        return manifest("v1", "ConfigMap", name, self.namespace, binaryData={"data": data})

    def references(self) -> set[str]:
        """The names of the Secrets that the ManagedResource refers to."""
        managed = self.client.get(MANAGED_RESOURCES, NAME, self.namespace)
        return {reference["name"] for reference in managed["spec"]["secretRefs"]}

    def written(self) -> list[str]:
        """The keys of these Secrets."""
        found = [self.client.get(SECRETS, name, self.namespace) for name in self.references()]
        return sorted(key for secret in found for key in secret["data"])

    def delete(self) -> None:
        """Delete it as an actuator does, until the deletion ends; its Secrets end with it."""
        references = self.references()
        managedresources.delete(self.client, NAME, self.namespace)
        eventually(self.is_deleted, SECONDS)
        left = {obj["metadata"]["name"] for obj in self.client.list(SECRETS, self.namespace)}
        assert left & references == set()

    def is_deleted(self) -> bool:
        try:
            managedresources.check_deleted(
                self.client, SystemClock(), NAME, namespace=self.namespace
            )
        except RequeueAfter:
            return False
        return True


def is_of_test(obj: Raw) -> bool:
    return obj["metadata"]["name"] != "kube-root-ca.crt"


def content(obj: Raw) -> Raw:
    return {key: obj[key] for key in ("data", "binaryData") if key in obj}


@pytest.fixture(scope="module")
def shoot() -> Iterator[Environment]:
    with Environment() as running:
        yield running


@pytest.fixture(scope="module", params=[SEED_CLASS, ""], ids=["seed", "shoot"])
def managing(request, environment):
    """The seed, the cluster with the objects, and the class, while a resource manager runs."""
    class_ = request.param
    target = environment if class_ else request.getfixturevalue("shoot")
    install_crds(connect(environment.kubeconfig), [ManagedResource])
    with running_resource_manager(environment, target, class_):
        yield environment, target, class_


@pytest.fixture
def managed(managing) -> Managed:
    source, target, class_ = managing
    name = f"test-{secrets.token_hex(5)}"
    clients = (connect(source.kubeconfig), connect(target.kubeconfig))
    for client in clients if source is not target else clients[:1]:
        client.create(NAMESPACES, {"metadata": {"name": name}})
    return Managed(*clients, name, class_)


def test_a_resource_manager_applies_one_secret_and_deletes_objects_removed_from_it(managed):
    first, second, third = (managed.config_map(name, key=name) for name in ("a", "b", "c"))
    managed.deploy(first, second)
    managed.wait_until_applied(first, second)
    labels = managed.target.get(CONFIG_MAPS, "a", managed.namespace)["metadata"]["labels"]
    assert (NO_CLEANUP in labels) is not bool(managed.class_)
    changed = managed.config_map("a", key="changed")
    managed.deploy(changed, third)
    managed.wait_until_applied(changed, third)
    managed.deploy()
    managed.wait_until_applied()
    managed.delete()


def test_a_resource_manager_applies_several_secrets_and_then_fewer(managed):
    many = [managed.config_map(name, key=name * (LIMIT * 2 // 3)) for name in ("a", "b", "c")]
    managed.deploy(*many)
    assert managed.written() == [KEY] * 3
    managed.wait_until_applied(*many)
    managed.deploy(many[0], many[2])
    assert managed.written() == [KEY] * 2
    managed.wait_until_applied(many[0], many[2])
    managed.delete()
    assert managed.applied() == {}


def test_a_resource_manager_reads_compressed_manifests(managed):
    small = managed.config_map("small", key="value")
    large = [managed.large(name) for name in ("large", "larger")]
    managed.deploy(large[0], small, large[1])
    assert managed.written() == [COMPRESSED, COMPRESSED, KEY]
    managed.wait_until_applied(small, *large)
    managed.deploy(large[1])
    assert managed.written() == [COMPRESSED]
    managed.wait_until_applied(large[1])
    managed.delete()
    assert managed.applied() == {}


def test_a_resource_manager_keeps_objects_with_keep_objects(managed):
    kept = [managed.config_map("small", key="value"), managed.large("large")]
    managed.deploy(*kept)
    managed.wait_until_applied(*kept)
    set_keep = partial(managedresources.set_keep_objects, managed.client, NAME, managed.namespace)
    set_keep(keep=True)
    managed.delete()
    assert managed.applied().keys() == {"small", "large"}
    managed.deploy(*kept)
    managed.wait_until_applied(*kept)
    managed.delete()
    assert managed.applied() == {}


def test_a_refusal_of_the_target_cluster_is_reported(managed):
    managed.deploy(managed.config_map("Not_a_name"))

    def reported() -> bool:
        with pytest.raises(RequeueAfter) as raised:
            managedresources.wait_until_healthy(
                managed.client, SystemClock(), NAME, namespace=managed.namespace
            )
        return "Not_a_name" in str(raised.value)

    eventually(reported, SECONDS)
    managed.delete()
