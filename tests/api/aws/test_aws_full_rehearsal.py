"""Every kind that AWS has, in gardenlet's order, while nothing outside the seed answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from actuator.codec import decode
from actuator.interface import Actuator, ExternalResource, object_class
from extensions.aws.seed import BINDINGS
from generic.testing.garden import SHOOT, Garden, GardenletFlows, SeedShoot
from generic.testing.machinecontroller import MachineController
from generic.testing.polling import polling
from generic.testing.rehearsal import CombinedRehearsal, Rehearsal, RehearsedShoot
from generic.testing.seed import install_crds
from tests.support.cluster.harness import eventually, running

if TYPE_CHECKING:
    from extensions.aws.full_rehearsal import AwsFullRehearsal

NEVER_FORCED = {"BackupBucket", "BackupEntry"}


@pytest.fixture
def rehearsal(tmp_path) -> Iterator[AwsFullRehearsal]:
    from extensions.aws.full_rehearsal import AwsFullRehearsal

    world = AwsFullRehearsal()
    world.start(tmp_path)
    yield world
    world.stop()


@pytest.fixture
def garden(admin) -> Garden:
    return Garden(admin)


@pytest.fixture
def shoot(namespace, admin) -> SeedShoot:
    """Named like the test's namespace, which gives way to the shoot's own."""
    name = f"shoot--{namespace}"
    return SeedShoot(
        technical_id=name, name=namespace, project="tests", region="eu-west-1", labels={SHOOT: name}
    )


@pytest.fixture
def flow(rehearsal, environment, admin, namespace, garden, shoot) -> Iterator[GardenletFlows]:
    """A shoot with all kinds, under managers with their generated Roles."""
    install_crds(admin, rehearsal.crds())
    actuators = rehearsal.actuators()
    with ExitStack() as stack:
        for actuator in actuators:
            stack.enter_context(running(environment, admin, namespace, actuator))
        controller = MachineController(admin, shoot.technical_id)
        stack.enter_context(polling(controller.poll, "machine-controller"))
        made = GardenletFlows(
            garden, shoot, [kind_of(actuator) for actuator in actuators], patience=180
        )
        made.create(rehearsal.manifests(rehearsed(shoot, namespace)))
        yield made


def rehearsed(shoot: SeedShoot, type: str) -> RehearsedShoot:
    return RehearsedShoot(technical_id=shoot.technical_id, type=type, labels=shoot.labels)


def kind_of(actuator: Actuator):
    return object_class(actuator).KIND


def objects(rehearsal, garden, shoot) -> Iterator[tuple[Actuator, dict]]:
    for actuator in rehearsal.actuators():
        for obj in garden.objects(kind_of(actuator), shoot):
            yield actuator, obj


def recorded(rehearsal, garden, shoot, wanted: Callable[[str], bool]) -> list[ExternalResource]:
    """The external resources that the objects of these kinds report."""
    return [
        external_resource
        for actuator, obj in objects(rehearsal, garden, shoot)
        if wanted(obj["kind"])
        for external_resource in actuator.external_resources(decode(object_class(actuator), obj))
    ]


def ids(resources: list[ExternalResource]) -> list[tuple[str, str]]:
    """Types and ids, without resources found by tags only: there are no machines here."""
    return sorted((resource.type, resource.id) for resource in resources if resource.id)


def test_it_satisfies_the_protocol_of_the_drill():
    from extensions.aws.full_rehearsal import AwsFullRehearsal

    rehearsal: Rehearsal = AwsFullRehearsal()
    assert CombinedRehearsal([rehearsal]).is_shared
    assert "everything-fails" in rehearsal.scenarios
    rehearsal.stop()


def test_each_existing_resource_is_recorded_and_has_tags_of_its_own(rehearsal, flow, garden, shoot):
    left = rehearsal.remaining_resources()
    assert {item.type for item in left} == {
        "AWS::EC2::DHCPOptions",
        "AWS::EC2::EIP",
        "AWS::EC2::Instance",
        "AWS::EC2::InternetGateway",
        "AWS::EC2::KeyPair",
        "AWS::EC2::NatGateway",
        "AWS::EC2::RouteTable",
        "AWS::EC2::SecurityGroup",
        "AWS::EC2::Subnet",
        "AWS::EC2::VPC",
        "AWS::IAM::InstanceProfile",
        "AWS::IAM::Role",
        "AWS::Route53::RecordSet",
        "AWS::S3::Bucket",
    }
    found = recorded(rehearsal, garden, shoot, lambda kind: kind != "BackupEntry")
    assert ids(found) == ids(left)
    told = {(resource.type, tuple(sorted(resource.tags.items()))) for resource in left}
    assert len(told) == len(left)
    for resource in left:
        said = {word for pair in resource.tags.items() for text in pair for word in text.split("/")}
        assert shoot.technical_id in said, f"{resource} does not say whose it is"


def test_nothing_outside_answers_and_all_that_is_forced_goes_recorded(
    rehearsal, flow, garden, shoot, namespace
):
    rehearsal.inject_failure("everything-fails")
    garden.mark_deleted(shoot)
    for actuator, obj in objects(rehearsal, garden, shoot):
        meta = obj["metadata"]
        garden.delete(kind_of(actuator), meta.get("namespace", ""), meta["name"])

    def codes() -> dict[str, list[str]]:
        errors = {
            obj["kind"]: (obj.get("status") or {}).get("lastError") or {}
            for _, obj in objects(rehearsal, garden, shoot)
        }
        return {kind: error.get("codes", []) for kind, error in errors.items() if error}

    asking = {kind_of(actuator).name for actuator in rehearsal.actuators()} - {"Worker"}
    stuck = eventually(lambda: (found := codes()).keys() >= asking and found)
    assert {stuck[kind][0] for kind in asking} == {"ERR_RETRYABLE_INFRA_DEPENDENCIES"}

    noted = recorded(rehearsal, garden, shoot, lambda kind: kind not in NEVER_FORCED)
    flow.force_delete()
    rest = {obj["kind"] for _, obj in objects(rehearsal, garden, shoot)}
    assert rest == asking & NEVER_FORCED
    left = rehearsal.remaining_resources()
    backups = [item for item in left if item.type.startswith("AWS::S3")]
    assert {backup.type for backup in backups} == {"AWS::S3::Bucket", "AWS::S3::Object"}
    assert ids([item for item in left if item not in backups]) == ids(noted)

    rehearsal.repair_failure()
    flow.delete_afterwards()
    assert list(objects(rehearsal, garden, shoot)) == []
    assert ids(rehearsal.remaining_resources()) == ids(noted)


def test_a_shoot_whose_outside_works_leaves_nothing(rehearsal, flow, garden, shoot, admin):
    no_finalizers = {"metadata": {"finalizers": None}}
    admin.patch(BINDINGS, "kube-apiserver", shoot.technical_id, no_finalizers)
    flow.delete()
    assert rehearsal.remaining_resources() == []
