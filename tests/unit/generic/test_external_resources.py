"""ExternalResourceActuator: everything that may exist outside is in the record, on each path."""

from typing import Any, ClassVar

import attrs
import pytest

from actuator import (
    Actuator,
    ActuatorError,
    CallAbandoned,
    Cluster,
    ExternalResource,
    Object,
    ObjectMeta,
    own_kind,
)
from actuator.codec import decode, encode
from actuator.v1alpha1 import KINDS, Infrastructure, Worker
from generic.kube.crds import crd
from generic.library import ExternalResourceActuator, RecordedStatus
from generic.testing import RecordingContext

FIRST = ExternalResource(type="Disk", id="1", tags={"shoot": "a"}, region="eu-1")
SECOND = ExternalResource(type="Disk", tags={"shoot": "b"})
META = ObjectMeta(name="x", namespace="ns")


@attrs.define(kw_only=True)
class Peering(Object):
    KIND = own_kind("Peering", "acme.example.org")

    status: RecordedStatus = attrs.field(factory=RecordedStatus)


def author(cls: Any):
    class Author(ExternalResourceActuator[cls]):
        finalizer = "example.org/author"

        deleted: ClassVar[list[ExternalResource]] = []

        def reconcile(self, ctx, obj, cluster): ...

        def delete_resource(self, ctx, obj, resource):
            self.deleted.append(resource)

    Author.deleted = []
    return Author()


@pytest.mark.parametrize("cls", [*KINDS, Peering])
def test_resources_are_saved_and_read_back_from_the_stored_object(cls):
    actuator = author(cls)
    obj = cls(metadata=META)
    assert [*actuator.external_resources(obj)] == []
    ctx = RecordingContext()
    actuator.record(ctx, obj, FIRST, SECOND)
    assert ctx.steps == ["save"]
    assert [*actuator.external_resources(decode(cls, encode(obj)))] == [FIRST, SECOND]
    actuator.record(ctx, obj, SECOND)
    assert [*actuator.external_resources(obj)] == [SECOND]
    actuator.record(ctx, obj)
    assert [*actuator.external_resources(obj)] == []


def test_a_deletion_deletes_the_recorded_resources_the_last_one_first():
    actuator = author(Infrastructure)
    obj = Infrastructure(metadata=META)
    ctx = RecordingContext()
    actuator.delete(ctx, obj, Cluster())
    assert (actuator.deleted, ctx.steps) == ([], [])
    actuator.record(ctx, obj, FIRST, SECOND)
    actuator.delete(ctx, obj, Cluster())
    assert actuator.deleted == [SECOND, FIRST]
    assert ctx.steps == ["save", "check", "check"]


def test_a_cancelled_deletion_deletes_nothing_more():
    actuator = author(Infrastructure)
    obj = Infrastructure(metadata=META)
    ctx = RecordingContext()
    actuator.record(ctx, obj, FIRST)
    ctx.cancel("over")
    with pytest.raises(CallAbandoned):
        actuator.delete(ctx, obj, Cluster())
    assert actuator.deleted == []


def test_the_record_is_where_a_migration_transfers_it():
    """gardenlet writes the state of a Worker; other components read providerStatus."""
    for cls, field in ((Infrastructure, "state"), (Worker, "provider_status")):
        obj = cls(metadata=META)
        author(cls).record(RecordingContext(), obj, FIRST)
        other = {"state", "provider_status"} - {field}
        assert getattr(obj.status, field)["kind"] == "ExternalResources"
        assert getattr(obj.status, other.pop()) is None


@pytest.mark.parametrize(
    "stored", [{"vpc": "1"}, {"resources": []}, {"kind": "ExternalResources", "resources": "no"}]
)
def test_an_unreadable_record_is_an_unknown_resource(stored):
    obj = Infrastructure(metadata=META)
    obj.status.state = stored
    with pytest.raises(ActuatorError, match=r"status\.state: expected a record of external"):
        author(Infrastructure).recorded(obj)
    assert [*author(Infrastructure).external_resources(obj)] == [ExternalResource(type="unknown")]


def test_the_record_of_a_later_version_is_read():
    obj = Infrastructure(metadata=META)
    author(Infrastructure).record(RecordingContext(), obj, FIRST)
    assert obj.status.state is not None
    obj.status.state["later"] = {"size": 1}
    assert [*author(Infrastructure).external_resources(obj)] == [FIRST]


def test_networks_outside_are_opened_for_its_pods():
    """The chart decides by this method: see `packaging.chart`."""
    assert type(author(Infrastructure)).external_resources is not Actuator.external_resources


def test_the_definition_of_an_own_kind_stores_the_record():
    [version] = crd(Peering)["spec"]["versions"]
    state = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["state"]
    assert state["x-kubernetes-preserve-unknown-fields"]


def test_a_call_that_was_abandoned_records_nothing():
    ctx = RecordingContext()
    ctx.cancel("over")
    obj = Infrastructure(metadata=META)
    with pytest.raises(Exception, match="over"):
        author(Infrastructure).record(ctx, obj, FIRST)
    assert ctx.saved == []
