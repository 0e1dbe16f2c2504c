"""Force deletion: its conditions, the calls that it interrupts, and its records."""

from typing import Any

import pytest

from actuator import ActuatorError, ExternalResource, RequeueAfter
from actuator.codec import decode
from actuator.interface import Resource
from generic.reconciler.orphans import ORPHANS, Orphan
from tests.support.cluster.harness import FINALIZER, Script, eventually
from tests.support.objects.builders import cluster, infrastructure


def stuck(ctx, obj, cluster):
    raise ActuatorError("the cloud says no")


@pytest.fixture
def deleting(seed, start, script):
    """An object whose deletion fails and fails."""
    script.on["delete"] = stuck
    start(script)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    seed.delete()
    eventually(lambda: seed.last_operation() == ("Delete", "Error"))
    return seed


@pytest.mark.parametrize("value", ["1", "t", "T", "TRUE", "true", "True"])
def test_a_value_that_go_parses_as_true_forces(deleting, script, value):
    deleting.update_cluster(cluster(deleting.namespace, force=value))
    eventually(deleting.is_gone)
    assert script.operations()[-1] == "force_delete"


@pytest.mark.parametrize("value", ["0", "false", "F"])
def test_a_value_that_go_parses_as_false_does_not_force(deleting, script, value):
    deleting.update_cluster(cluster(deleting.namespace, force=value))
    before = len(script.operations())
    eventually(lambda: len(script.operations()) > before)
    assert "force_delete" not in script.operations()
    assert not deleting.events("ForceDeletionNotUnderstood")


@pytest.mark.parametrize("value", ["yes", "", "TrUe", " true"])
def test_a_value_that_go_does_not_parse_is_reported_in_an_event_and_does_not_force(
    deleting, script, value
):
    deleting.update_cluster(cluster(deleting.namespace, force=value))
    (event,) = eventually(lambda: deleting.events("ForceDeletionNotUnderstood"))
    assert repr(value) in event["message"]
    assert event["type"] == "Warning"
    assert "force_delete" not in script.operations()
    deleting.update_cluster(cluster(deleting.namespace, force="true"))
    eventually(deleting.is_gone)


def test_once_seen_it_stays(deleting, script):
    script.on["force_delete"] = stuck
    deleting.update_cluster(cluster(deleting.namespace, force="true"))
    eventually(lambda: "force_delete" in script.operations())
    deleting.update_cluster(cluster(deleting.namespace))
    before = len(script.operations())
    eventually(lambda: len(script.operations()) > before + 1)
    assert set(script.operations()[before:]) == {"force_delete"}


def test_it_does_not_wait_for_the_next_try(seed, start, script):
    def later(ctx, obj, cluster):
        raise RequeueAfter(100, cause=ActuatorError("come back later"))

    script.on["delete"] = later
    start(script)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    seed.delete()
    eventually(lambda: seed.last_operation() == ("Delete", "Error"))
    seed.update_cluster(cluster(seed.namespace, force="true"))
    eventually(seed.is_gone)
    assert script.operations() == ["reconcile", "delete", "force_delete"]


def test_an_object_that_is_not_deleting_is_not_forced(seed, start, script):
    seed.update_cluster(cluster(seed.namespace, force="true"))
    start(script)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    assert script.operations() == ["reconcile"]


def test_a_failing_force_deletion_keeps_the_finalizer_and_reports_the_error(deleting, script):
    script.on["force_delete"] = stuck
    deleting.update_cluster(cluster(deleting.namespace, force="true"))
    eventually(lambda: "force_delete" in script.operations())
    eventually(lambda: "force-deleting" in deleting.status()["lastError"]["description"])
    assert deleting.get()["metadata"]["finalizers"] == [FINALIZER]
    assert deleting.last_operation() == ("Delete", "Error")


def test_a_failed_shoot_is_skipped_unless_deletion_is_forced(seed, start, script):
    start(script)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    seed.update_cluster(cluster(seed.namespace, failed=True))
    seed.delete()
    seed.create(infrastructure(seed.namespace, seed.namespace, name="later"))
    with pytest.raises(AssertionError):
        eventually(lambda: script.operations() != ["reconcile"], seconds=1)
    seed.update_cluster(cluster(seed.namespace, failed=True, force="true"))
    eventually(seed.is_gone)
    assert script.operations() == ["reconcile", "force_delete"]
    assert script.operations("later") == []
    seed.update_cluster(cluster(seed.namespace))
    eventually(lambda: seed.is_ready("later"))


def test_a_delete_that_hangs_is_abandoned_and_its_object_force_deleted(
    seed, start, script, gate, monkeypatch
):
    monkeypatch.setattr("generic.reconciler.calls.ABANDONED_AFTER_SECONDS", 0.5)
    contexts = []

    def hang(ctx, obj, cluster):
        contexts.append(ctx)
        gate.wait(200)
        contexts.append("came back")

    script.on["delete"] = hang
    start(script, max_concurrent_reconciles=1)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    seed.create(infrastructure(seed.namespace, seed.namespace, name="other"))
    eventually(lambda: seed.is_ready() and seed.is_ready("other"))
    seed.delete()
    eventually(lambda: contexts)
    seed.update_cluster(cluster(seed.namespace, force="true"))
    eventually(seed.is_gone)
    assert script.operations() == ["reconcile", "delete", "force_delete"]
    with pytest.raises(Exception, match="force deletion requested"):
        contexts[0].check()
    with pytest.raises(Exception, match="force deletion requested"):
        contexts[0].client.list(Resource("v1", "secrets"), seed.namespace)
    seed.delete("other")
    eventually(lambda: seed.is_gone("other"))  # the only worker was replaced
    gate.set()
    eventually(lambda: contexts[-1] == "came back")


def test_a_delete_that_listens_is_not_abandoned(seed, start, script):
    def patient(ctx, obj, cluster):
        while True:
            ctx.check()

    script.on["delete"] = patient
    manager = start(script)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    seed.delete()
    eventually(lambda: "delete" in script.operations())
    seed.update_cluster(cluster(seed.namespace, force="true"))
    eventually(seed.is_gone)
    assert len(manager._running.wiring.abandoned) == 0


def test_forcing_in_the_moment_between_decision_and_call_still_ends_the_call(
    seed, start, script, gate, monkeypatch
):
    monkeypatch.setattr("generic.reconciler.calls.ABANDONED_AFTER_SECONDS", 0.3)

    def force_then_hang(ctx, obj, cluster_):
        seed.update_cluster(cluster(seed.namespace, force="true"))
        gate.wait(200)

    script.on["delete"] = force_then_hang
    start(script)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    seed.delete()
    eventually(seed.is_gone)


def orphans(seed):
    """The recorded orphans of the namespace."""
    shoot = f"actuator.extensions.gardener.cloud/shoot={seed.namespace}"
    return [decode(Orphan, raw).spec for raw in seed.client.list(ORPHANS, label_selector=shoot)]


class Leaving(Script):
    """Leaves two things outside, one of them known by its tags only."""

    def external_resources(self, obj):
        yield ExternalResource(type="VPC", id="vpc-1", region="eu-1")
        yield ExternalResource(type="Subnet", tags={"shoot": obj.metadata.namespace})


def ended(manager):
    counted = manager.metrics.total("actuator_deletions_total", "outcome")
    return {o: n for o, n in counted.items() if n and o not in ("failed", "skipped")}


def test_remaining_external_resources_are_recorded_once_before_the_release(seed, start):
    failures = [1, 1]

    def force_delete(ctx, obj, cluster):
        if failures:
            failures.pop()
            raise ActuatorError("not yet")

    manager = start(Leaving(delete=stuck, force_delete=force_delete))
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    seed.delete()
    seed.update_cluster(cluster(seed.namespace, force="true"))
    eventually(seed.is_gone)
    recorded = orphans(seed)
    assert {(r.resource_type, r.id) for r in recorded} == {("VPC", "vpc-1"), ("Subnet", "")}
    assert len(recorded) == 2
    assert {r.reason for r in recorded} == {"ForceDeleted"}
    (event,) = seed.events("OrphansRecorded")
    assert "2 external resources" in event["message"]
    counted = eventually(lambda: ended(manager))  # once the answer to the release is there
    assert counted == {"orphaned": 1}


def test_nothing_is_released_while_it_cannot_be_recorded(seed, start):
    """The finalizer stays for as long as the API server does not take the record."""
    refused: list[Any] = []

    class Refusing:
        def __init__(self, client):
            self.client = client

        def __getattr__(self, name):
            return getattr(self.client, name)

        def create(self, resource, obj):
            if resource == ORPHANS and len(refused) < 3:
                refused.append(seed.get()["metadata"]["finalizers"])
                from actuator.errors import Unavailable

                raise Unavailable(0, "no answer")
            return self.client.create(resource, obj)

    start(Leaving(delete=stuck), intercept=Refusing)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    seed.delete()
    seed.update_cluster(cluster(seed.namespace, force="true"))
    eventually(seed.is_gone)
    assert refused == [[FINALIZER]] * 3


def test_an_actuator_that_cannot_list_external_resources_leaves_an_unknown_one(seed, start):
    class Clueless(Script):
        def external_resources(self, obj):
            raise ValueError("no idea")

    start(Clueless(delete=stuck))
    assert_leaves_something_unknown(seed)


def test_a_change_of_the_object_in_memory_hides_no_external_resource(seed, start):
    """Only the saved status counts: force_delete may fail later, and be repeated."""

    def remember(ctx, obj, cluster):
        obj.status.provider_status = {"vpc": "vpc-1"}

    def forget(ctx, obj, cluster):
        obj.status.provider_status = None

    start(Script(reconcile=remember, delete=stuck, force_delete=forget))
    assert_leaves_something_unknown(seed)


def assert_leaves_something_unknown(seed):
    """After the forced deletion of an object whose deletion is stuck."""
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    seed.delete()
    seed.update_cluster(cluster(seed.namespace, force="true"))
    eventually(seed.is_gone)
    (orphan,) = orphans(seed)
    assert orphan.resource_type == "unknown"


def test_a_missing_cluster_blocks_a_deletion_unless_force_was_seen_before(seed, start, script):

    script.on["delete"] = stuck
    script.on["force_delete"] = stuck
    start(script)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    seed.delete_cluster()
    seed.delete()
    eventually(lambda: "not found" in seed.status().get("lastError", {}).get("description", ""))
    assert "delete" not in script.operations()
    seed.create(cluster(seed.namespace, force="true"))
    eventually(lambda: "force_delete" in script.operations())
    seed.delete_cluster()
    del script.on["force_delete"]
    eventually(seed.is_gone)
