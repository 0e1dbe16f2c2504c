"""LocalNetwork and LocalContainerRuntime: the ManagedResources for the shoot."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actuator.codec import decode
from actuator.interface import Resource
from actuator.meta import Base64
from actuator.v1alpha1 import ContainerRuntime, Network
from extensions.local.containerruntime import LocalContainerRuntime
from extensions.local.network import RESERVATION, LocalNetwork
from tests.support.cluster.harness import Seed, eventually
from tests.support.samples.local import (
    assert_configuration_problem,
    bring_back,
    change,
    config,
    error,
    force,
    manifest,
    take_away,
)

MANAGED = Resource("resources.gardener.cloud/v1alpha1", "managedresources")
SECRETS = Resource("v1", "secrets")
HELD = {"metadata": {"finalizers": ["resources.gardener.cloud/gardener-resource-manager"]}}
POOL_B = {"name": "b", "selector": {"matchLabels": {"pool": "b"}}}


@pytest.fixture
def network(outside, start) -> LocalNetwork:
    made = LocalNetwork(outside)
    start(made)
    return made


@pytest.fixture
def runtime(start) -> None:
    start(LocalContainerRuntime())


def managed(seed: Seed) -> list[dict[str, Any]]:
    return seed.client.list(MANAGED, seed.namespace)


def manifests(seed: Seed) -> list[str]:
    """The objects that the ManagedResources deploy to the shoot: kinds, names."""
    return sorted(
        f"{document['kind']} {document['metadata']['name']}" for document in _documents(seed)
    )


def _documents(seed: Seed) -> list[dict[str, Any]]:
    import yaml

    found = []
    for obj in managed(seed):
        for reference in obj["spec"]["secretRefs"]:
            secret = seed.client.get(SECRETS, reference["name"], seed.namespace)
            for data in secret["data"].values():
                found += list(yaml.safe_load_all(Base64(data).decode_bytes()))
    return [item for item in found if item]


def hold(seed: Seed) -> None:
    """Add the finalizer of the shoot's resource manager, as it does for applied objects."""
    for obj in managed(seed):
        seed.client.patch(MANAGED, obj["metadata"]["name"], seed.namespace, HELD)


def release(seed: Seed) -> None:
    """It has removed everything from the shoot."""
    for obj in managed(seed):
        patch = {"metadata": {"finalizers": None}}
        seed.client.patch(MANAGED, obj["metadata"]["name"], seed.namespace, patch)


def test_ranges_are_reserved_and_the_network_goes_into_the_shoot(network, deploy, outside):
    looking_at = deploy(Network)
    (reservation,) = outside.find({"shoot": looking_at.namespace})
    assert reservation.properties == {"podCIDR": "100.96.0.0/11", "serviceCIDR": "100.64.0.0/13"}
    assert manifests(looking_at) == ["ConfigMap local-net", "DaemonSet local-net"]
    (one,) = managed(looking_at)
    assert one["spec"].get("class") is None, "the shoot's, not the seed's"
    assert looking_at.status()["ipFamilies"] == ["IPv4"]
    assert looking_at.status()["state"]["id"] == reservation.id
    (recorded,) = network.external_resources(decode(Network, looking_at.get()))
    assert (recorded.type, recorded.id) == (RESERVATION, reservation.id)


def test_a_changed_configuration_reaches_the_shoot(network, deploy):
    looking_at = deploy(Network, providerConfig=config("NetworkConfig", mtu=1400))
    assert "1400" in json.dumps(_documents(looking_at))
    change(looking_at, providerConfig=config("NetworkConfig", mtu=1300))
    assert "1300" in json.dumps(_documents(looking_at))
    assert len(managed(looking_at)) == 1


def test_the_reservation_is_released_after_the_objects_in_the_shoot(network, deploy, outside):
    looking_at = deploy(Network)
    hold(looking_at)
    looking_at.delete()
    eventually(lambda: managed(looking_at)[0]["metadata"].get("deletionTimestamp"))
    eventually(lambda: looking_at.last_operation() == ("Delete", "Processing"))
    assert len(outside.find({})) == 1, "still in use"
    release(looking_at)
    eventually(looking_at.is_gone)
    assert outside.find({}) == []


def test_an_outside_that_fails_is_named_and_a_forced_deletion_does_without(
    network, deploy, outside
):
    looking_at = deploy(Network)
    take_away(outside)
    looking_at.delete()
    assert error(looking_at)["codes"] == ["ERR_INFRA_DEPENDENCIES"]
    force(looking_at)
    bring_back(outside)
    assert [thing.type for thing in outside.find({})] == [RESERVATION]


def test_a_forced_deletion_leaves_objects_in_the_shoot_to_gardenlet(network, deploy):
    looking_at = deploy(Network)
    hold(looking_at)
    force(looking_at)
    (left,) = managed(looking_at)
    assert left["metadata"]["deletionTimestamp"]
    release(looking_at)


def test_an_ip_family_that_is_not_supported_is_refused(network, deploy, outside):
    looking_at = deploy(Network, ready=False, ipFamilies=["IPv4", "IPv7"])
    assert_configuration_problem(looking_at, "spec.ipFamilies: remove 'IPv7': not IPv4 or IPv6")
    looking_at.delete()
    eventually(looking_at.is_gone)
    assert outside.find({}) == []


def test_a_network_that_cannot_work_is_refused(network, deploy, outside):
    looking_at = deploy(Network, ready=False, podCIDR="100.96.0.1/11")
    assert_configuration_problem(looking_at, "spec.podCIDR", "'100.96.0.1/11'")
    assert outside.find({}) == []
    assert managed(looking_at) == []


def test_a_network_moves_with_its_shoot(network, deploy, outside, seed, other_seed):
    looking_at = deploy(Network)
    (reservation,) = outside.find({})
    hold(looking_at)
    looking_at.ask("migrate")
    (one,) = eventually(
        lambda: [o for o in managed(seed) if o["metadata"].get("deletionTimestamp")]
    )
    assert one["spec"]["keepObjects"] is True, "the shoot's network goes on"
    release(seed)
    eventually(lambda: looking_at.last_operation() == ("Migrate", "Succeeded"))
    moved = other_seed.of(Network, "x")
    made = manifest(Network, seed.namespace)
    made["metadata"] |= {
        "namespace": other_seed.namespace,
        "annotations": {"gardener.cloud/operation": "wait-for-state"},
    }
    moved.create(made)
    state = looking_at.status()["state"]
    moved.patch({"status": {"state": state}}, subresource="status")
    moved.ask("restore")
    eventually(lambda: moved.last_operation() == ("Restore", "Succeeded"))
    assert outside.find({}) == [reservation]
    assert len(managed(moved)) == 1
    assert managed(seed) == []


def test_two_pools_have_a_runtime_each(runtime, deploy, seed):
    first = deploy(ContainerRuntime, "local-a")
    deploy(ContainerRuntime, "local-b", workerPool=POOL_B, binaryPath="/opt/bin")
    both = [
        "DaemonSet local-runtime-local-a",
        "DaemonSet local-runtime-local-b",
        "RuntimeClass local-runtime-local-a",
        "RuntimeClass local-runtime-local-b",
    ]
    assert manifests(seed) == both
    assert "/opt/bin" in json.dumps(_documents(seed))
    first.delete()
    eventually(first.is_gone)
    assert manifests(seed) == both[1::2]


def test_a_runtime_is_changed_in_place_and_goes_again(runtime, deploy, seed):
    looking_at = deploy(ContainerRuntime)
    change(looking_at, binaryPath="/opt/other")
    assert "/opt/other" in json.dumps(_documents(seed))
    looking_at.delete()
    eventually(looking_at.is_gone)
    assert managed(seed) == []


def test_a_forced_deletion_of_a_runtime_waits_for_nothing(runtime, deploy, seed):
    looking_at = deploy(ContainerRuntime)
    hold(seed)
    force(looking_at)
    assert len(managed(seed)) == 1
    release(seed)
