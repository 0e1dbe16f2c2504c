"""NetworkFilter: everything it makes is in the shoot, so a force deletion waits for nothing."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest

from actuator.errors import NotFound
from actuator.interface import Resource
from actuator.v1alpha1 import Extension
from extensions.networkfilter import extension
from extensions.networkfilter.actuator import NetworkFilter
from extensions.networkfilter.config import API_VERSION
from extensions.networkfilter.rehearsal import NetworkFilterRehearsal
from generic.library.managedresources.kind import SHOOT_FINALIZER
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.testing.assertions import assert_rehearsal
from generic.testing.shoots import Shoots
from tests.support.cluster.harness import eventually
from tests.support.cluster.shoot_extension import Extended, shoot_managers

SECRETS = Resource("v1", "secrets")
FILTER = {("ConfigMap", "kube-system/network-filter"), ("DaemonSet", "kube-system/network-filter")}


def config(**fields) -> dict:
    return {"apiVersion": API_VERSION, "kind": "FilterConfig", **fields}


@pytest.fixture
def shoots(admin, namespace) -> Iterator[Shoots]:
    with shoot_managers(admin, namespace) as found:
        yield found


@pytest.fixture
def filtered(seed, shoots, start) -> Extended:
    start(NetworkFilter())
    return Extended(seed, shoots, Extension)


def deploy(filtered, operation="reconcile", **fields) -> None:
    filtered.deploy(operation, providerConfig=config(**fields))


def manifests(filtered) -> str:
    [reference] = filtered.managed(NetworkFilter.managed_name)["spec"]["secretRefs"]
    secret = filtered.client.get(SECRETS, reference["name"], filtered.namespace)
    return base64.b64decode(secret["data"]["objects.yaml"]).decode()


def test_the_sample_serves_one_type_of_extension():
    manager = Manager(Options())
    extension(manager)
    [one] = manager.registrations
    assert (one.kind.name, one.types) == ("Extension", ("networking-filter",))


def test_the_filter_gets_into_the_shoot_and_so_does_a_change(filtered):
    deploy(filtered, blocked=["203.0.113.0/24"])
    eventually(filtered.is_ready)
    eventually(lambda: filtered.inside() == FILTER)
    assert "203.0.113.0/24" in manifests(filtered)
    filtered.patch({"spec": {"providerConfig": config(blocked=["2001:db8::/32"])}})
    filtered.ask("reconcile")
    eventually(lambda: "2001:db8::/32" in manifests(filtered))
    assert "203.0.113.0/24" not in manifests(filtered)


def test_a_deletion_waits_for_the_shoot_and_reports_its_problem(filtered, shoots):
    deploy(filtered)
    eventually(lambda: filtered.inside() == FILTER)
    shoots.fail("deletion-denied")
    filtered.delete()
    error = eventually(lambda: filtered.status().get("lastError"))
    assert error["codes"] == ["ERR_CLEANUP_CLUSTER_RESOURCES"]
    assert "a webhook in the shoot denies to delete" in error["description"]
    shoots.fail("")
    eventually(filtered.is_gone)
    assert filtered.inside() == set()
    with pytest.raises(NotFound):
        filtered.managed(NetworkFilter.managed_name)


def test_a_forced_deletion_waits_for_no_shoot_and_leaves_it_to_gardenlet(filtered, shoots):
    deploy(filtered)
    eventually(lambda: filtered.inside() == FILTER)
    shoots.fail("everything-fails")
    filtered.delete()
    eventually(lambda: filtered.status().get("lastError"))
    filtered.force()
    eventually(filtered.is_gone)
    meta = filtered.managed(NetworkFilter.managed_name)["metadata"]
    assert meta["deletionTimestamp"], "it is asked to go"
    assert meta["finalizers"] == [SHOOT_FINALIZER], "gardenlet takes that off"
    assert filtered.orphans() == []


def test_a_shoot_that_moves_keeps_its_filter(filtered):
    deploy(filtered)
    eventually(lambda: filtered.inside() == FILTER)
    filtered.ask("migrate")
    eventually(lambda: filtered.last_operation() == ("Migrate", "Succeeded"))
    with pytest.raises(NotFound):
        filtered.managed(NetworkFilter.managed_name)
    assert filtered.inside() == FILTER
    filtered.delete()
    eventually(filtered.is_gone)
    deploy(filtered, "wait-for-state")
    filtered.ask("restore")
    eventually(lambda: filtered.last_operation() == ("Restore", "Succeeded"))
    assert filtered.managed(NetworkFilter.managed_name)["spec"]["keepObjects"] is False
    assert filtered.inside() == FILTER


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (config(blocked=["203.0.113.1/24"]), ["blocked[0]", "'203.0.113.1/24'", "prefix length"]),
        (config(allowed=[]), ["spec.providerConfig", "allowed"]),
        (config() | {"kind": "Filter"}, ["kind FilterConfig"]),
        (config(blocked="all"), ["spec.providerConfig", "blocked"]),
    ],
)
def test_each_configuration_problem_is_named(filtered, given, words):
    deploy(filtered, **given)
    error = eventually(lambda: filtered.status().get("lastError"))
    assert error["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
    assert all(word in error["description"] for word in words), error
    assert filtered.inside() == set()
    filtered.delete()
    eventually(filtered.is_gone)


@pytest.mark.usefixtures("borrowed")
def test_force_deletions_are_rehearsed_and_every_rule_holds(tmp_path):
    assert_rehearsal(NetworkFilterRehearsal, "deletion-denied", shoots=2, output=tmp_path)
    assert "ERR_CLEANUP_CLUSTER_RESOURCES" in (tmp_path / "report.json").read_text()
