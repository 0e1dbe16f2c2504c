"""CertificateService: Issuers held by another controller in the seed, and objects in the shoot."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from actuator.errors import NotFound
from actuator.interface import resource_of
from actuator.v1alpha1 import Extension
from extensions.certificate import extension
from extensions.certificate.actuator import CertificateService
from extensions.certificate.config import API_VERSION
from extensions.certificate.issuers import Issuer, IssuerController
from generic.kube.crds import crd
from generic.library.managedresources.kind import SHOOT_FINALIZER
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.testing.seed import install_crds
from generic.testing.shoots import Shoots
from tests.support.cluster.harness import connected, eventually
from tests.support.cluster.shoot_extension import Extended, shoot_managers

ISSUERS = resource_of(Issuer.KIND)
HOLD = Issuer.KIND.finalizer
SERVER = "https://acme.example.org/directory"
ROLE = "extensions.gardener.cloud:certificate-service"
INSIDE = {
    ("ConfigMap", "kube-system/certificate-issuers"),
    ("ClusterRole", ROLE),
    ("ClusterRoleBinding", ROLE),
}
FIRST, SECOND = ({"name": name, "server": SERVER} for name in ("first", "second"))


def config(*issuers, **fields) -> dict:
    given = {"apiVersion": API_VERSION, "kind": "CertificateConfig", "issuers": list(issuers)}
    return given | fields


@pytest.fixture
def shoots(admin, namespace) -> Iterator[Shoots]:
    install_crds(admin, [crd(Issuer)])
    with shoot_managers(admin, namespace) as found:
        yield found


@pytest.fixture
def certified(seed, shoots, start) -> Extended:
    start(CertificateService())
    return Extended(seed, shoots, Extension)


@pytest.fixture
def serve_issuers(environment, admin, namespace, shoots) -> Iterator[Callable[[], None]]:
    """Switches the third party's controller on, for the Issuers of this test alone."""
    options = Options(metrics_bind_address="0", health_bind_address="0", leader_election=False)
    manager = Manager(options)
    manager.add(IssuerController(), namespaces=[namespace])
    with connected(environment, admin, manager, namespace):
        yield manager.start


def deploy(certified, *issuers, operation="reconcile") -> None:
    certified.deploy(operation, providerConfig=config(*issuers))
    if operation == "reconcile":
        eventually(certified.is_ready)
        eventually(lambda: certified.inside() == INSIDE)


def issuers(certified) -> dict:
    found = certified.client.list(ISSUERS, certified.namespace)
    return {obj["metadata"]["name"]: obj for obj in found}


def test_the_sample_serves_its_extension_and_stands_in_for_the_third_party():
    manager = Manager(Options())
    extension(manager)
    served = {registration.kind.name: registration.types for registration in manager.registrations}
    assert served == {"Extension": ("certificate-service",), "Issuer": ()}


def test_issuers_are_created_held_by_their_controller_and_deployed_to_the_shoot(certified):
    deploy(certified, FIRST, {**SECOND, "email": "ops@example.org"})
    found = issuers(certified)
    assert found.keys() == {"first", "second"}
    assert all(obj["metadata"]["finalizers"] == [HOLD] for obj in found.values())
    assert found["second"]["spec"] == {"server": SERVER, "email": "ops@example.org"}
    assert certified.inside() == INSIDE


def test_an_issuer_that_is_no_longer_wanted_goes_and_a_changed_one_is_changed(
    certified, serve_issuers
):
    serve_issuers()
    deploy(certified, FIRST, SECOND)
    changed = {**SECOND, "server": f"{SERVER}/v2"}
    certified.patch({"spec": {"providerConfig": config(changed)}})
    certified.ask("reconcile")
    eventually(lambda: issuers(certified).keys() == {"second"})
    assert issuers(certified)["second"]["spec"]["server"] == f"{SERVER}/v2"


def test_an_issuer_of_another_owner_is_neither_taken_over_nor_removed(certified):
    theirs = {
        "apiVersion": ISSUERS.api_version,
        "kind": "Issuer",
        "metadata": {"name": "first", "namespace": certified.namespace},
        "spec": {"server": "https://theirs.example.org"},
    }
    certified.client.create(ISSUERS, theirs)
    certified.deploy(providerConfig=config(FIRST))
    error = eventually(lambda: certified.status().get("lastError"))
    assert error["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
    assert "rename or remove it" in error["description"]
    certified.delete()
    eventually(certified.is_gone)
    assert issuers(certified)["first"]["spec"] == theirs["spec"]


def test_a_deletion_waits_for_the_third_party_and_names_the_held_issuer(certified, serve_issuers):
    deploy(certified, FIRST)
    certified.delete()
    error = eventually(lambda: certified.status().get("lastError"))
    assert error["codes"] == ["ERR_CLEANUP_CLUSTER_RESOURCES"]
    assert f"{ISSUERS} first (held by {HOLD})" in error["description"]
    eventually(lambda: certified.inside() == set())
    assert issuers(certified)["first"]["metadata"]["finalizers"] == [HOLD], "it is not ours to take"
    serve_issuers()
    eventually(certified.is_gone)
    assert issuers(certified) == {}


def test_a_forced_deletion_strips_the_seed_and_ignores_the_shoot(certified, shoots):
    deploy(certified, FIRST)
    shoots.fail("everything-fails")
    certified.force()
    certified.delete()
    eventually(certified.is_gone)
    assert issuers(certified) == {}
    [told] = certified.events("FinalizerStripped")
    assert HOLD in told["message"]
    left = certified.managed(CertificateService.managed_name)["metadata"]
    assert left["deletionTimestamp"], "its deletion is requested"
    assert left["finalizers"] == [SHOOT_FINALIZER], "gardenlet removes it"
    assert certified.orphans() == []


def test_a_shoot_that_migrates_keeps_its_objects(certified, serve_issuers):
    serve_issuers()
    deploy(certified, FIRST)
    certified.ask("migrate")
    eventually(lambda: certified.last_operation() == ("Migrate", "Succeeded"))
    assert issuers(certified) == {}
    with pytest.raises(NotFound):
        certified.managed(CertificateService.managed_name)
    assert certified.inside() == INSIDE
    certified.delete()
    eventually(certified.is_gone)
    deploy(certified, FIRST, operation="wait-for-state")
    certified.ask("restore")
    eventually(lambda: certified.last_operation() == ("Restore", "Succeeded"))
    assert issuers(certified).keys() == {"first"}
    assert certified.inside() == INSIDE


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (config(FIRST, FIRST), ["spec.providerConfig.issuers[first]", "is a duplicate"]),
        (config({**FIRST, "name": "First"}), ["issuers[First].name", "'letsencrypt'", "'First'"]),
        (
            config({**FIRST, "server": "http://x"}),
            ["issuers[first].server", "https://.+", "'http://x'"],
        ),
        (config(accounts=[]), ["spec.providerConfig", "accounts"]),
        (config(kind="Certificates"), ["kind CertificateConfig"]),
    ],
)
def test_each_configuration_problem_is_named(certified, given, words):
    certified.deploy(providerConfig=given)
    error = eventually(lambda: certified.status().get("lastError"))
    assert error["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
    assert all(word in error["description"] for word in words), error
    assert issuers(certified) == {}
    certified.delete()
    eventually(certified.is_gone)


def test_force_deletions_are_rehearsed_and_every_rule_holds(command, tmp_path):
    rehearsal = "extensions.certificate.rehearsal:CertificateRehearsal"
    options = ["--shoots", "2", "--scenario", "everything-fails", "--output", tmp_path]
    done = command("drill", *options, rehearsal)
    assert f"Stripped {HOLD}: 2 times" in done.stdout
