"""LocalExtension: a share outside, a Mount in the seed that another controller holds."""

from __future__ import annotations

import pytest

from actuator.codec import decode
from actuator.interface import Resource
from actuator.meta import Base64
from actuator.v1alpha1 import Extension
from extensions.local import seed as seed_objects
from extensions.local.mounts import MOUNTS, Mount
from extensions.local.share import SHARE, LocalExtension
from tests.support.cluster.harness import eventually
from tests.support.objects import builders
from tests.support.samples.local import (
    assert_configuration_problem,
    bring_back,
    config,
    error,
    force,
    manifest,
    take_away,
)

SECRETS = Resource("v1", "secrets")
FINALIZER = "extensions.gardener.cloud/local-extension"


@pytest.fixture
def actuator(outside, start) -> LocalExtension:
    extension = LocalExtension(outside)
    start(extension)
    return extension


def mounts(seed) -> list:
    return seed.client.list(MOUNTS, seed.namespace)


def recorded(actuator, looking_at) -> list:
    return list(actuator.external_resources(decode(Extension, looking_at.get())))


def test_a_share_is_made_and_mounted_and_a_change_reaches_it(actuator, deploy, outside):
    extension = deploy(Extension)
    (share,) = outside.find({"shoot": extension.namespace})
    assert share.properties == {"capacity": "1Gi"}
    (mount,) = mounts(extension)
    assert mount["spec"] == {"share": share.id}
    assert mount["metadata"]["finalizers"] == [Mount.KIND.finalizer]
    assert extension.get()["metadata"]["finalizers"] == [FINALIZER]
    assert extension.status()["state"]["id"] == share.id
    (one,) = recorded(actuator, extension)
    assert (one.type, one.id, one.tags) == (SHARE, share.id, share.tags)
    extension.patch({"spec": {"providerConfig": config("ShareConfig", capacity="2Gi")}})
    extension.ask("reconcile")
    eventually(extension.is_ready)
    (share,) = outside.find({})
    assert share.properties == {"capacity": "2Gi"}


def test_a_mount_deleted_in_the_seed_is_created_again(actuator, deploy, seed):
    extension = deploy(Extension)
    (mount,) = mounts(seed)
    name = mount["metadata"]["name"]
    seed.client.delete(MOUNTS, name, seed.namespace)
    extension.ask("reconcile")
    eventually(lambda: name in extension.status()["lastOperation"]["description"])
    assert extension.last_operation() == ("Reconcile", "Processing"), "it still goes"
    seed.client.patch(MOUNTS, name, seed.namespace, {"metadata": {"finalizers": None}})
    eventually(extension.is_ready)
    assert [mount["metadata"].get("deletionTimestamp") for mount in mounts(seed)] == [None]


def test_a_deletion_waits_for_the_other_controller(actuator, deploy, outside, serve_mounts):
    extension = deploy(Extension)
    extension.delete()
    eventually(lambda: outside.find({}) == [])
    eventually(lambda: extension.last_operation() == ("Delete", "Processing"))
    eventually(lambda: Mount.KIND.finalizer in extension.status()["lastOperation"]["description"])
    assert recorded(actuator, extension) == []
    serve_mounts()
    eventually(extension.is_gone)
    assert mounts(extension) == []


def test_the_other_controller_is_reported_when_it_takes_too_long(actuator, deploy, monkeypatch):
    monkeypatch.setattr(seed_objects, "MAX_WAIT_SECONDS", 1.0)
    extension = deploy(Extension)
    extension.delete()
    last_error = error(extension)
    assert last_error["codes"] == ["ERR_CLEANUP_CLUSTER_RESOURCES"]
    assert f"held by {Mount.KIND.finalizer}" in last_error["description"]


def test_a_forced_deletion_needs_neither_outside_nor_the_other_controller(
    actuator, deploy, outside
):
    extension = deploy(Extension)
    (one,) = recorded(actuator, extension)
    take_away(outside)
    extension.delete()
    assert error(extension)["codes"] == ["ERR_INFRA_DEPENDENCIES"]
    force(extension)
    assert mounts(extension) == []
    bring_back(outside)
    assert [thing.id for thing in outside.find({})] == [one.id], "left behind, as recorded"


def test_a_forced_deletion_leaves_another_extensions_mount(actuator, deploy, seed):
    first = deploy(Extension, "first")
    _second = deploy(Extension, "second")
    force(first)
    assert [mount["metadata"]["name"] for mount in mounts(seed)] == ["share-second"]


def test_a_share_never_created_is_deleted_without_the_external_system(actuator, deploy, outside):
    take_away(outside)
    extension = deploy(
        Extension, ready=False, providerConfig=config("ShareConfig", capacity="much")
    )
    assert_configuration_problem(extension, "spec.providerConfig.capacity", "'much'", "10Gi")
    extension.delete()
    eventually(extension.is_gone)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (config("ShareConfig", size="1Gi"), ["spec.providerConfig", "size"]),
        (config("ShareConfig", capacity=1), ["spec.providerConfig", "capacity"]),
        (config("NetworkConfig"), ["spec.providerConfig", "kind ShareConfig"]),
        (config("ShareConfig", credentials="mine"), ["spec.resources", "'mine'"]),
    ],
)
def test_each_configuration_problem_is_named(actuator, deploy, given, words, outside):
    extension = deploy(Extension, ready=False, providerConfig=given)
    assert_configuration_problem(extension, *words)
    assert outside.find({}) == []


def test_a_referenced_secret_is_used_and_carried_along(actuator, deploy, seed):
    resources = [
        {"name": "mine", "resourceRef": {"kind": "Secret", "name": "password", "apiVersion": "v1"}}
    ]
    cluster = builders.cluster(seed.namespace)
    cluster["spec"]["shoot"]["spec"]["resources"] = resources
    seed.update_cluster(cluster)
    given = config("ShareConfig", credentials="mine")
    extension = deploy(Extension, ready=False, providerConfig=given)
    eventually(lambda: "ref-password" in str(extension.status().get("lastOperation")))
    assert "resources" not in extension.status(), "what does not exist is not named"
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "ref-password", "namespace": seed.namespace},
        "data": {"password": Base64.encode_bytes(b"s3cret")},
    }
    seed.client.create(SECRETS, secret)
    extension.ask("reconcile")
    eventually(extension.is_ready)
    (mount,) = mounts(seed)
    assert mount["spec"]["secretName"] == "ref-password"
    assert extension.status()["resources"] == [
        {
            "name": "mine",
            "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "ref-password"},
        }
    ]
    assert "s3cret" not in str(extension.get())


def test_a_share_moves_with_its_shoot(actuator, deploy, outside, seed, other_seed, serve_mounts):
    extension = deploy(Extension)
    (share,) = outside.find({})
    extension.ask("migrate")
    serve_mounts()
    eventually(lambda: extension.last_operation() == ("Migrate", "Succeeded"))
    assert mounts(extension) == []
    assert outside.find({}) == [share]
    state = extension.status()["state"]
    moved = other_seed.of(Extension, "x")
    made = manifest(Extension, seed.namespace)
    made["metadata"] |= {
        "namespace": other_seed.namespace,
        "annotations": {"gardener.cloud/operation": "wait-for-state"},
    }
    moved.create(made)
    moved.patch({"status": {"state": state}}, subresource="status")
    moved.ask("restore")
    eventually(lambda: moved.last_operation() == ("Restore", "Succeeded"))
    assert outside.find({}) == [share]
    assert [mount["spec"]["share"] for mount in mounts(moved)] == [share.id]
    moved.delete()
    eventually(moved.is_gone)
    assert outside.find({}) == []


def test_a_restored_id_that_leads_out_of_the_folder_writes_nothing_there(
    actuator, deploy, outside, seed, other_seed
):
    state = deploy(Extension).status()["state"]
    moved = other_seed.of(Extension, "x")
    made = manifest(Extension, seed.namespace)
    made["metadata"] |= {
        "namespace": other_seed.namespace,
        "annotations": {"gardener.cloud/operation": "wait-for-state"},
    }
    moved.create(made)
    moved.patch({"status": {"state": {**state, "id": "../victim"}}}, subresource="status")
    moved.ask("restore")
    assert_configuration_problem(moved, "'../victim'", "status.state", "restore the id")
    assert not list(outside.directory.parent.glob("victim*"))
    force(moved)
