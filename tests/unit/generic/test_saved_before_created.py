"""`assert_saved_before_created`: it fails for each order in which a resource could be lost."""

import pytest

from actuator import Actuator, Cluster, ExternalResource, decode
from actuator.v1alpha1 import Infrastructure, Network
from extensions.local.config import NetworkConfig
from extensions.local.network import LocalNetwork
from extensions.local.outside import Outside
from extensions.relations.external import Entries
from extensions.relations.register import Register
from generic.testing import RecordingContext, assert_saved_before_created, minimal_object

SHOOT = {"spec": {"kubernetes": {"version": "1.33.0"}}}
CLUSTER = decode(Cluster, {"metadata": {"name": "a"}, "spec": {"shoot": SHOOT}})
DISK = ExternalResource(type="Disk", id="d-1", tags={"shoot": "a"})
BY_TAGS = ExternalResource(type="Disk", tags={"shoot": "a"})
OTHER = ExternalResource(type="Disk", id="d-2", tags={"shoot": "a"})


class Disks(Actuator[Infrastructure]):
    """Does the given steps: saves a resource in the status, or creates a disk."""

    def __init__(self, *steps):
        self.steps = steps
        self.existing: list[ExternalResource] = []

    def reconcile(self, ctx, obj, cluster):
        for step in self.steps:
            if isinstance(step, ExternalResource):
                obj.status.state = {"type": step.type, "id": step.id, "tags": step.tags}
                ctx.save(obj)
            elif step == "create":
                self.existing.append(DISK)

    def delete(self, ctx, obj, cluster):
        if "keep" not in self.steps:
            self.existing.clear()

    def external_resources(self, obj):
        if obj.status.state:
            yield ExternalResource(**obj.status.state)


def judge(*steps):
    actuator = Disks(*steps)
    ctx = RecordingContext()
    assert_saved_before_created(actuator, ctx, lambda: actuator.existing)
    return len(ctx.saved)


@pytest.mark.parametrize(
    "steps", [(DISK, "create"), (BY_TAGS, "create"), (BY_TAGS, "create", DISK)]
)
def test_a_resource_that_is_saved_by_id_or_tags_before_it_is_created_passes(steps):
    assert judge(*steps) == len(steps) - 1


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        (("create", DISK), "was created before a status that names it was saved"),
        (("create",), "was created before a status that names it was saved"),
        ((OTHER, "create"), "was created before a status that names it was saved"),
        ((OTHER, "create", DISK), "was created before a status that names it was saved"),
        ((DISK,), "reconcile created no external resource"),
        ((DISK, "create", "keep"), "they exist after the deletion"),
    ],
)
def test_a_resource_that_could_be_lost_fails(steps, problem):
    with pytest.raises(AssertionError, match=problem):
        judge(*steps)


def test_the_reservation_of_a_network_is_saved_before_it_is_created(tmp_path):
    outside = Outside(tmp_path)

    def existing():
        return [ExternalResource(type=r.type, id=r.id, tags=r.tags) for r in outside.find({})]

    network = minimal_object(Network, podCIDR="100.96.0.0/11", serviceCIDR="100.64.0.0/13")
    ctx = RecordingContext(config=NetworkConfig())
    assert_saved_before_created(LocalNetwork(outside), ctx, existing, network, CLUSTER)
    assert len(ctx.saved) == 1


def test_the_entries_of_the_sample_are_saved_before_they_are_created(tmp_path):
    register = Register(tmp_path / "register")
    register.open()
    ctx = RecordingContext()
    assert_saved_before_created(Entries(register), ctx, register.entries)
    assert len(ctx.saved) == 1
