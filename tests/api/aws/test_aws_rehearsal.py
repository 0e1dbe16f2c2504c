"""The rehearsal: every scenario really blocks deletions, and a forced one ends them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from actuator.codec import decode
from actuator.errors import NotFound
from actuator.interface import Resource, resource_of
from actuator.v1alpha1 import ControlPlane, Infrastructure
from extensions.aws import tags
from extensions.aws.seed import BINDINGS
from generic.testing.garden import not_ready_because
from generic.testing.rehearsal import Rehearsal, RehearsedShoot
from generic.testing.seed import install_crds
from tests.support.cluster.harness import eventually
from tests.support.objects import builders

if TYPE_CHECKING:
    from extensions.aws.rehearsal import AwsRehearsal

KINDS = [Infrastructure.KIND, ControlPlane.KIND]
CODES = {
    "everything-fails": "ERR_RETRYABLE_INFRA_DEPENDENCIES",
    "credentials-revoked": "ERR_INFRA_UNAUTHENTICATED",
    "permission-denied": "ERR_INFRA_UNAUTHORIZED",
    "dependency-left": "ERR_INFRA_DEPENDENCIES",
}


@pytest.fixture
def rehearsal(tmp_path) -> Iterator[AwsRehearsal]:
    from extensions.aws.rehearsal import AwsRehearsal

    running = AwsRehearsal()
    running.start(tmp_path)
    yield running
    running.stop()


class Played:
    """A shoot of the rehearsal in the seed, under managers with their generated Roles."""

    def __init__(self, rehearsal, seed, start) -> None:
        self.seed = seed
        self.shoot = RehearsedShoot(
            technical_id=seed.namespace, type=seed.namespace, labels={"drill": "test"}
        )
        install_crds(seed.client, rehearsal.crds())
        self.actuators = rehearsal.actuators()
        for actuator in self.actuators:
            start(actuator)
        for manifest in rehearsal.manifests(self.shoot):
            seed.garden.deploy(manifest)
        eventually(lambda: all(not_ready_because(obj) is None for obj in self.objects()))

    def objects(self) -> list:
        namespace = self.seed.namespace
        found = []
        for kind in KINDS:
            try:
                found.append(self.seed.client.get(resource_of(kind), namespace, namespace))
            except NotFound:
                pass
        return found

    def codes(self) -> dict[str, list[str]]:
        """The error codes of each object that shows any."""
        errors = {obj["kind"]: obj["status"].get("lastError") or {} for obj in self.objects()}
        return {kind: error["codes"] for kind, error in errors.items() if error.get("codes")}

    def delete(self) -> None:
        for kind in KINDS:
            self.seed.garden.delete(kind, self.seed.namespace, self.seed.namespace)

    def force(self) -> None:
        self.seed.update_cluster(builders.cluster(self.seed.namespace, force="true"))


@pytest.fixture
def played(rehearsal, seed, start) -> Played:
    return Played(rehearsal, seed, start)


def test_it_satisfies_the_protocol_of_the_drill():
    from extensions.aws.rehearsal import AwsRehearsal

    rehearsal: Rehearsal = AwsRehearsal()
    assert "simulated" in rehearsal.title
    assert set(rehearsal.scenarios) == set(CODES)
    rehearsal.stop()


def test_existing_resources_are_listed_with_ids_and_tags(rehearsal, played, namespace):
    left = rehearsal.remaining_resources()
    assert sorted(item.type for item in left) == [
        "AWS::EC2::DHCPOptions",
        *["AWS::EC2::EIP"] * 2,
        "AWS::EC2::InternetGateway",
        "AWS::EC2::KeyPair",
        "AWS::EC2::NatGateway",
        *["AWS::EC2::RouteTable"] * 2,
        "AWS::EC2::SecurityGroup",
        *["AWS::EC2::Subnet"] * 3,
        "AWS::EC2::VPC",
        "AWS::IAM::InstanceProfile",
        "AWS::IAM::Role",
    ]
    assert all(item.id and item.region == rehearsal.region for item in left)
    assert all(tags.mark(namespace).items() <= resource.tags.items() for resource in left)


def test_an_unknown_scenario_is_a_key_error(rehearsal):
    with pytest.raises(KeyError):
        rehearsal.inject_failure("meteorite")


@pytest.mark.parametrize("scenario", CODES)
def test_a_scenario_blocks_the_deletion_until_it_is_forced(rehearsal, played, scenario):
    rehearsal.inject_failure(scenario)
    played.delete()
    stuck = eventually(lambda: len(played.codes()) == 2 and played.codes())
    assert stuck["Infrastructure"] == [CODES[scenario]]
    released = scenario == "dependency-left"
    assert stuck["ControlPlane"] == [
        "ERR_CLEANUP_CLUSTER_RESOURCES" if released else CODES[scenario]
    ]
    recorded = {
        (external_resource.type, external_resource.id)
        for actuator, obj in zip(played.actuators, played.objects(), strict=True)
        for external_resource in actuator.external_resources(
            decode(Infrastructure if obj["kind"] == "Infrastructure" else ControlPlane, obj)
        )
    }
    played.force()
    eventually(lambda: not played.objects())
    namespace = played.seed.namespace
    assert played.seed.client.list(BINDINGS, namespace) == []
    left = {(item.type, item.id) for item in rehearsal.remaining_resources()}
    assert left == {(type, id) for type, id in recorded if id}
    assert left, "something is left behind"


def test_a_shoot_whose_other_controller_works_leaves_nothing(rehearsal, played):
    played.delete()
    namespace = played.seed.namespace
    binding = eventually(
        lambda: [
            obj
            for obj in played.seed.client.list(BINDINGS, namespace)
            if obj["metadata"].get("deletionTimestamp")
        ]
    )
    assert len(binding) == 1
    eventually(lambda: rehearsal.remaining_resources() == [])
    no_finalizers = {"metadata": {"finalizers": None}}
    played.seed.client.patch(BINDINGS, "kube-apiserver", namespace, no_finalizers)
    eventually(lambda: not played.objects())


@pytest.mark.parametrize("scenario", CODES)
def test_each_broken_scenario_can_be_repaired(rehearsal, played, scenario):
    rehearsal.inject_failure(scenario)
    played.delete()
    eventually(lambda: len(played.codes()) == 2)
    rehearsal.repair_failure()
    namespace = played.seed.namespace
    no_finalizers = {"metadata": {"finalizers": None}}
    played.seed.client.patch(BINDINGS, "kube-apiserver", namespace, no_finalizers)
    eventually(lambda: not played.objects())
    assert rehearsal.remaining_resources() == []
    rehearsal.repair_failure()


def test_another_process_uses_the_same_outside(rehearsal):
    from extensions.aws.rehearsal import AwsRehearsal

    other = AwsRehearsal()
    other.attach(rehearsal.share())
    assert other.url == rehearsal.url
    assert len(other.actuators()) == 2


def test_credentials_get_into_no_status_and_no_event(rehearsal, played, namespace):
    rehearsal.inject_failure("credentials-revoked")
    played.delete()
    eventually(lambda: len(played.codes()) == 2)
    credentials = rehearsal.credentials
    events = played.seed.client.list(Resource("v1", "events"), namespace)
    written = f"{played.objects()} {events}"
    assert "AuthFailure" in written
    assert credentials.access_key_id not in written
    assert credentials.secret_access_key not in written
