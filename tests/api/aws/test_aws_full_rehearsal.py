"""Every kind that AWS has, in gardenlet's order, while nothing outside the seed answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from harness import eventually, running

from actuator.codec import decode
from actuator.interface import Actuator, ExternalResource, object_class
from extensions.aws.seed import BINDINGS
from generic.testing.garden import SHOOT, Flow, Garden, Shoot
from generic.testing.machinecontroller import MachineController
from generic.testing.polling import polling
from generic.testing.rehearsal import CombinedRehearsal, Rehearsal, RehearsedShoot
from generic.testing.seed import install_crds

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
def shoot(namespace, admin) -> Shoot:
    """Named like the test's namespace, which gives way to the shoot's own."""
    name = f"shoot--{namespace}"
    return Shoot(
        technical_id=name, name=namespace, project="tests", region="eu-west-1", labels={SHOOT: name}
    )


@pytest.fixture
def flow(rehearsal, environment, admin, namespace, garden, shoot) -> Iterator[Flow]:
    """A shoot with all kinds, under managers with their generated Roles."""
    install_crds(admin, rehearsal.crds())
    actuators = rehearsal.actuators()
    with ExitStack() as stack:
        for actuator in actuators:
            stack.enter_context(running(environment, admin, namespace, actuator))
        controller = MachineController(admin, shoot.technical_id)
        stack.enter_context(polling(controller.poll, "machine-controller"))
        made = Flow(garden, shoot, [kind_of(one) for one in actuators], patience=180)
        made.create(rehearsal.manifests(rehearsed(shoot, namespace)))
        yield made


def rehearsed(shoot: Shoot, type: str) -> RehearsedShoot:
    return RehearsedShoot(technical_id=shoot.technical_id, type=type, labels=shoot.labels)


def kind_of(actuator: Actuator):
    return object_class(actuator).KIND


def objects(rehearsal, garden, shoot) -> Iterator[tuple[Actuator, dict]]:
    for actuator in rehearsal.actuators():
        for obj in garden.objects(kind_of(actuator), shoot):
            yield actuator, obj


def recorded(rehearsal, garden, shoot, wanted: Callable[[str], bool]) -> list[ExternalResource]:
    """What the objects of these kinds say may exist outside."""
    return [
        one
        for actuator, obj in objects(rehearsal, garden, shoot)
        if wanted(obj["kind"])
        for one in actuator.external_resources(decode(object_class(actuator), obj))
    ]


def ids(resources: list[ExternalResource]) -> list[tuple[str, str]]:
    """Without what is only searched for by tags: machines, of which there are none here."""
    return sorted((one.type, one.id) for one in resources if one.id)


def test_it_is_what_the_drill_wants():
    from extensions.aws.full_rehearsal import AwsFullRehearsal

    rehearsal: Rehearsal = AwsFullRehearsal()
    assert CombinedRehearsal([rehearsal]).is_shared
    assert "everything-fails" in rehearsal.scenarios
    rehearsal.stop()


def test_all_is_recorded_that_exists_and_each_thing_is_told_apart(rehearsal, flow, garden, shoot):
    left = rehearsal.left_outside()
    assert {one.type for one in left} == {
        "AWS::EC2::EIP",
        "AWS::EC2::Instance",
        "AWS::EC2::SecurityGroup",
        "AWS::EC2::Subnet",
        "AWS::EC2::VPC",
        "AWS::Route53::RecordSet",
        "AWS::S3::Bucket",
    }
    found = recorded(rehearsal, garden, shoot, lambda kind: kind != "BackupEntry")
    assert ids(found) == ids(left)
    told = {(one.type, tuple(sorted(one.tags.items()))) for one in left}
    assert len(told) == len(left)
    for one in left:
        said = {word for pair in one.tags.items() for text in pair for word in text.split("/")}
        assert shoot.technical_id in said, f"{one} does not say whose it is"


def test_nothing_outside_answers_and_all_that_is_forced_goes_recorded(
    rehearsal, flow, garden, shoot, namespace
):
    rehearsal.break_outside("everything-fails")
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

    asking = {kind_of(one).name for one in rehearsal.actuators()} - {"Worker"}
    stuck = eventually(lambda: (found := codes()).keys() >= asking and found)
    assert {stuck[kind][0] for kind in asking} == {"ERR_RETRYABLE_INFRA_DEPENDENCIES"}

    noted = recorded(rehearsal, garden, shoot, lambda kind: kind not in NEVER_FORCED)
    flow.force_delete()
    rest = {obj["kind"] for _, obj in objects(rehearsal, garden, shoot)}
    assert rest == asking & NEVER_FORCED
    left = rehearsal.left_outside()
    backups = [one for one in left if one.type.startswith("AWS::S3")]
    assert {one.type for one in backups} == {"AWS::S3::Bucket", "AWS::S3::Object"}
    assert ids([one for one in left if one not in backups]) == ids(noted)

    rehearsal.mend_outside()
    flow.delete_afterwards()
    assert list(objects(rehearsal, garden, shoot)) == []
    assert ids(rehearsal.left_outside()) == ids(noted)


def test_a_shoot_whose_outside_works_leaves_nothing(rehearsal, flow, garden, shoot, admin):
    no_finalizers = {"metadata": {"finalizers": None}}
    admin.patch(BINDINGS, "kube-apiserver", shoot.technical_id, no_finalizers)
    flow.delete()
    assert rehearsal.left_outside() == []
