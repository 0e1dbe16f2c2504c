"""AzureControlPlane: the generic actuator, and objects of its remedy controller."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import timedelta

import pytest

from actuator.errors import NotFound
from actuator.interface import Resource, resource_of
from actuator.meta import Raw
from actuator.v1alpha1 import ControlPlane
from extensions.azurecontrolplane import actuator, extension
from extensions.azurecontrolplane.actuator import API_VERSION, AzureControlPlane
from extensions.azurecontrolplane.parts import REMEDY
from extensions.azurecontrolplane.remedies import PublicIPAddress, VirtualMachine
from generic.kube.crds import crd
from generic.library.controlplane.parts import CONFIG, SEED, SHOOT, STORAGE_CLASSES
from generic.library.managedresources.kind import SHOOT_FINALIZER
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.testing.polling import polling
from generic.testing.resourcemanager import ResourceManager
from generic.testing.seed import OneShoot, install_crds
from generic.testing.shoots import Shoots
from tests.support.cluster.harness import eventually
from tests.support.cluster.shoot_extension import Extended, shoot_managers

DEPLOYMENTS = Resource("apps/v1", "deployments")
SECRETS = Resource("v1", "secrets")
HELD = "example.org/held"
BASIC: Raw = {"region": "eu-1", "secretRef": {"name": "cloudprovider"}}
INSIDE = {("DaemonSet", "kube-system/csi-driver-node-disk"), ("StorageClass", "default")}


def config(**fields) -> dict:
    return {"apiVersion": API_VERSION, "kind": "ControlPlaneConfig", **fields}


@pytest.fixture
def shoots(admin, namespace) -> Iterator[Shoots]:
    install_crds(admin, [crd(PublicIPAddress), crd(VirtualMachine)])
    with (
        shoot_managers(admin, namespace) as found,
        polling(ResourceManager(OneShoot(admin, namespace)).poll, "resource-manager"),
    ):
        yield found


@pytest.fixture
def cp(seed, shoots, start) -> Extended:
    put_credentials(seed, "one")
    start(AzureControlPlane())
    return Extended(seed, shoots, ControlPlane)


def put_credentials(cp, value: str) -> None:
    meta = {"name": "cloudprovider", "namespace": cp.namespace}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta}
    data = {"clientSecret": base64.b64encode(value.encode()).decode()}
    cp.client.apply(SECRETS, {**secret, "data": data})


def pod_annotations(cp) -> dict[str, str]:
    found = cp.client.get(DEPLOYMENTS, "cloud-controller-manager", cp.namespace)
    return found["spec"]["template"]["metadata"]["annotations"]


def make(cp, cls, **spec) -> None:
    """As the remedy controller does."""
    meta = {"name": "x", "namespace": cp.namespace, "finalizers": [cls.KIND.finalizer]}
    manifest = {"apiVersion": cls.KIND.api_version, "kind": cls.KIND.name}
    cp.client.create(resource_of(cls.KIND), {**manifest, "metadata": meta, "spec": spec})


def release(cp, cls) -> None:
    """As the remedy controller does, once nothing is left in Azure."""
    no_finalizers = {"metadata": {"finalizers": None}}
    cp.client.patch(resource_of(cls.KIND), "x", cp.namespace, no_finalizers)


def remedies(cp) -> dict[str, bool]:
    """The remedy controller's objects by kind, and whether each is being deleted."""
    return {
        cls.KIND.name: "deletionTimestamp" in obj["metadata"]
        for cls in (PublicIPAddress, VirtualMachine)
        for obj in cp.client.list(resource_of(cls.KIND), cp.namespace)
    }


def deployments(cp) -> set[str]:
    found = cp.client.list(DEPLOYMENTS, cp.namespace)
    return {obj["metadata"]["name"] for obj in found}


@pytest.fixture
def running(cp) -> Extended:
    """A control plane whose remedy controller has an address and a machine."""
    cp.deploy(**BASIC)
    eventually(cp.is_ready)
    eventually(lambda: deployments(cp) == {"cloud-controller-manager", REMEDY})
    eventually(lambda: cp.inside() == INSIDE)
    make(cp, PublicIPAddress, ipAddress="203.0.113.7")
    make(cp, VirtualMachine, hostname="node-1")
    return cp


def test_the_sample_serves_control_planes_on_azure():
    manager = Manager(Options())
    extension(manager)
    [one] = manager.registrations
    assert (one.kind.name, one.types) == ("ControlPlane", ("azure",))


def test_the_parts_are_those_of_the_generic_actuator(running):
    for part in (CONFIG, SEED, SHOOT, STORAGE_CLASSES):
        assert running.managed(part.name)["metadata"]["labels"]["origin"] == "provider-azure"
    assert remedies(running) == {"PublicIPAddress": False, "VirtualMachine": False}


def test_rotated_credentials_roll_the_cloud_controller_manager(running):
    before = pod_annotations(running)
    names = {"checksum/secret-cloudprovider", "checksum/configmap-cloud-provider-config"}
    assert before.keys() == names
    put_credentials(running, "two")
    running.ask("reconcile")
    eventually(lambda: pod_annotations(running) != before)
    after = pod_annotations(running)
    assert {name for name in names if after[name] != before[name]} == {
        "checksum/secret-cloudprovider"
    }


def test_missing_credentials_are_an_error_with_a_code_and_a_remedy(seed, shoots, start):
    start(AzureControlPlane())
    cp = Extended(seed, shoots, ControlPlane)
    cp.deploy(**BASIC)
    error = eventually(lambda: cp.status().get("lastError"))
    assert error["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
    assert "spec.secretRef" in error["description"]


def test_a_deletion_first_lets_the_remedy_controller_give_addresses_back(running):
    running.delete()
    error = eventually(lambda: running.status().get("lastError"))
    assert error["codes"] == ["ERR_CLEANUP_CLUSTER_RESOURCES"]
    assert "publicipaddresses.azure.remedy.gardener.cloud x (held by" in error["description"]
    assert remedies(running) == {"PublicIPAddress": True, "VirtualMachine": False}
    assert REMEDY in deployments(running), "it still runs"
    release(running, PublicIPAddress)
    eventually(running.is_gone)
    assert remedies(running) == {}, "nobody would let go of the machine any more"
    assert deployments(running) == set()
    assert running.inside() == set()


def failures(caplog):
    return [record.message for record in caplog.records].count("operation failed")


def test_after_ten_minutes_a_deletion_goes_on_without_it(running, monkeypatch, caplog):
    assert timedelta(minutes=10) == actuator.MAX_WAIT
    running.delete()
    eventually(lambda: running.status().get("lastError"))
    monkeypatch.setattr(actuator, "MAX_WAIT", timedelta())
    tried = failures(caplog)
    eventually(lambda: failures(caplog) > tried + 1)
    waits = "publicipaddresses.azure.remedy.gardener.cloud x"
    assert waits in running.status()["lastError"]["description"], "the clock may be wrong"
    monkeypatch.setattr("generic.kube.clock.WINDOW", 1.0)
    eventually(running.is_gone)
    assert remedies(running) == {}
    assert len(running.events("FinalizerStripped")) == 2


def test_a_forced_deletion_waits_neither_for_it_nor_for_the_shoot(running, shoots):
    shoots.fail("everything-fails")
    running.delete()
    eventually(lambda: running.status().get("lastError"))
    running.force()
    eventually(running.is_gone)
    assert remedies(running) == {}
    assert len(running.events("FinalizerStripped")) == 2
    for part in (SHOOT, STORAGE_CLASSES):
        meta = running.managed(part.name)["metadata"]
        assert meta["deletionTimestamp"], "it is asked to go"
        assert meta["finalizers"] == [SHOOT_FINALIZER], "gardenlet takes that off"
    assert running.orphans() == []


def test_a_migration_strips_nothing_before_the_remedy_controller_is_gone(running):
    held = {"metadata": {"finalizers": [HELD]}}
    running.client.patch(DEPLOYMENTS, REMEDY, running.namespace, held)
    running.ask("migrate")
    eventually(lambda: REMEDY in running.status()["lastOperation"]["description"])
    assert remedies(running) == {"PublicIPAddress": False, "VirtualMachine": False}
    no_finalizers = {"metadata": {"finalizers": None}}
    running.client.patch(DEPLOYMENTS, REMEDY, running.namespace, no_finalizers)
    eventually(lambda: running.last_operation() == ("Migrate", "Succeeded"))
    assert remedies(running) == {}
    assert running.inside() == INSIDE, "the shoot keeps what it has"
    eventually(lambda: is_gone(running, SEED.name))  # the resource manager has to release it


def is_gone(running, name):
    try:
        return running.managed(name) is None
    except NotFound:
        return True


@pytest.mark.parametrize("operation", ["reconcile", "restore"])
def test_reconcile_and_restore_both_reach_the_override(cp, operation):
    make(cp, PublicIPAddress, ipAddress="203.0.113.7")
    make(cp, VirtualMachine, hostname="node-1")
    cp.deploy("wait-for-state", **BASIC, providerConfig=config(remedyController=False))
    cp.ask(operation)
    eventually(cp.is_ready)
    assert cp.last_operation()[0] == {"reconcile": "Create", "restore": "Restore"}[operation]
    assert remedies(cp) == {}
    eventually(lambda: deployments(cp) == {"cloud-controller-manager"})


def test_a_remedy_controller_can_be_switched_off_later(running):
    running.patch({"spec": {"providerConfig": config(remedyController=False)}})
    running.ask("reconcile")
    eventually(lambda: remedies(running) == {})
    eventually(running.is_ready)
    assert deployments(running) == {"cloud-controller-manager"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (config(remedy=True), ["spec.providerConfig", "remedy"]),
        (config(remedyController="no"), ["remedyController"]),
        (config() | {"kind": "Nonsense"}, ["kind ControlPlaneConfig"]),
    ],
)
def test_each_configuration_problem_is_named(cp, given, words):
    cp.deploy(**BASIC, providerConfig=given)
    error = eventually(lambda: cp.status().get("lastError"))
    assert error["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
    assert all(word in error["description"] for word in words), error
    cp.delete()
    eventually(cp.is_gone)


def test_force_deletions_are_rehearsed_and_every_rule_holds(command, tmp_path):
    rehearsal = "extensions.azurecontrolplane.rehearsal:AzureRehearsal"
    options = ["--shoots", "2", "--scenario", "deletion-denied", "--output", tmp_path]
    done = command("drill", *options, rehearsal)
    for cls in (PublicIPAddress, VirtualMachine):
        assert f"Stripped {cls.KIND.finalizer}: 3 times" in done.stdout
