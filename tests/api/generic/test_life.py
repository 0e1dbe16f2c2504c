"""The life of an object: calls, writes, and the number of requests."""

from functools import partial
from typing import Any

import pytest

from actuator import ActuatorError, Condition, ErrorCode, RequeueAfter, Result
from generic.kube.headers import Request, header
from tests.support.cluster.harness import (
    FINALIZER,
    INFRASTRUCTURES,
    OPERATION,
    PATIENCE,
    TIMESTAMP,
    Script,
    eventually,
    samples,
)
from tests.support.objects.builders import infrastructure

REST: dict[str, Any] = {
    "status": "True",
    "reason": "R",
    "message": "m",
    "last_transition_time": "2026-01-01T00:00:00Z",
    "last_update_time": "2026-01-01T00:00:00Z",
}
CONDITION = {
    "status": "True",
    "reason": "R",
    "message": "m",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
    "lastUpdateTime": "2026-01-01T00:00:00Z",
}


def patches(manager):
    """PATCH requests of the manager so far."""
    samples = next(
        family.samples
        for family in manager.metrics.registry.collect()
        if family.name == "rest_client_requests"
    )
    return sum(
        sample.value
        for sample in samples
        if sample.name.endswith("_total") and sample.labels["method"] == "PATCH"
    )


def patched(manager, count):
    """Whether it was that many; a request is counted after its answer, so it is waited for."""
    eventually(lambda: patches(manager) >= count)
    return patches(manager) == count


def never_slow(manager):
    """The same; however slow the machine is, no call takes so long that it says Processing."""
    manager._running.wiring.timers.stop()
    return manager


def requested(seed, **more):
    annotations = {OPERATION: "reconcile", TIMESTAMP: "2026-01-01T00:00:00Z"}
    return infrastructure(seed.namespace, seed.namespace, annotations=annotations, **more)


def test_a_life_costs_three_requests(seed, start, script):
    manager = never_slow(start(script))
    seed.create(requested(seed))
    eventually(seed.is_ready)
    assert patched(manager, 2)
    seed.delete()
    eventually(seed.is_gone)
    assert patched(manager, 3)
    assert script.operations() == ["reconcile", "delete"]


def test_a_later_reconcile_costs_two_requests(seed, start, script):
    manager = never_slow(start(script))
    seed.create(requested(seed))
    eventually(seed.is_ready)
    assert patched(manager, 2)
    seed.ask("reconcile")
    eventually(lambda: script.operations() == ["reconcile", "reconcile"])
    eventually(seed.is_ready)
    assert patched(manager, 4)
    assert seed.last_operation() == ("Reconcile", "Succeeded")


def test_without_a_timestamp_processing_is_published_and_the_request_removed_first(
    seed, start, script
):
    seen: list[Any] = []
    script.on["reconcile"] = lambda ctx, obj, cluster: seen.append(seed.get())
    start(script)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    seed.annotate(**{OPERATION: "reconcile"})
    eventually(lambda: len(seen) == 2 and seed.is_ready())
    during = seen[1]
    assert during["status"]["lastOperation"]["state"] == "Processing"
    assert OPERATION not in during["metadata"].get("annotations", {})


def test_the_finalizer_is_there_before_the_first_call(seed, start, script):
    seen: list[Any] = []
    script.on["reconcile"] = lambda ctx, obj, cluster: seen.append(
        (seed.get()["metadata"]["finalizers"], obj.metadata.finalizers)
    )
    start(script)
    seed.create(requested(seed, finalizers=["example.org/foreign"]))
    eventually(seed.is_ready)
    assert seen == [(["example.org/foreign", FINALIZER],) * 2]


def test_the_status_that_an_actuator_writes_is_stored(seed, start, script):
    def reconcile(ctx, obj, cluster):
        obj.status.provider_status = {"vpc": {"id": "vpc-1"}}
        ctx.save(obj)
        assert seed.status()["providerStatus"] == {"vpc": {"id": "vpc-1"}}
        obj.status.provider_status["vpc"]["cidr"] = "10.0.0.0/16"
        obj.status.nodes_cidr = "10.1.0.0/16"

    script.on["reconcile"] = reconcile
    start(script)
    seed.create(requested(seed))
    eventually(seed.is_ready)
    assert seed.status()["providerStatus"] == {"vpc": {"id": "vpc-1", "cidr": "10.0.0.0/16"}}
    assert seed.status()["nodesCIDR"] == "10.1.0.0/16"
    assert seed.last_operation() == ("Create", "Succeeded")


def test_an_error_is_in_the_status_with_its_codes_and_is_tried_again(seed, start, script):
    failures = [ActuatorError("no access", codes=[ErrorCode.ERR_INFRA_UNAUTHENTICATED])] * 2

    def reconcile(ctx, obj, cluster):
        if failures:
            raise failures.pop()
        seen.append(seed.status())

    seen: list[Any] = []
    script.on["reconcile"] = reconcile
    never_slow(start(script))
    seed.create(requested(seed))
    eventually(seed.is_ready)
    during = seen[0]
    assert during["lastError"]["codes"] == ["ERR_INFRA_UNAUTHENTICATED"]
    assert during["lastError"]["description"] == "Error reconciling Infrastructure: no access"
    assert during["lastOperation"]["description"] == during["lastError"]["description"]
    assert during["lastOperation"]["progress"] == 50
    assert during["observedGeneration"] == 1
    assert "lastError" not in seed.status()
    assert seed.events("ReconcileError")


def test_delete_keeps_the_finalizer_while_the_actuator_fails(seed, start, script):
    script.on["delete"] = lambda ctx, obj, cluster: 1 / 0
    manager = start(script)
    seed.create(requested(seed))
    eventually(seed.is_ready)
    seed.delete()
    eventually(lambda: seed.last_operation() == ("Delete", "Error"))
    assert seed.get()["metadata"]["finalizers"] == [FINALIZER]
    assert "ZeroDivisionError" in seed.status()["lastError"]["description"]
    del script.on["delete"]
    seed.delete()  # a newer timestamp, before the backoff ends; it may be gone by then
    eventually(seed.is_gone)
    counted = partial(manager.metrics.total, "actuator_deletions_total", "outcome")
    eventually(lambda: counted(controller="infrastructure")["deleted"] == 1)


@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), OSError()])
def test_an_actuator_that_raises_anything_stops_no_other_object(seed, start, script, raised):
    def reconcile(ctx, obj, cluster):
        if obj.metadata.name == "bad":
            raise raised

    script.on["reconcile"] = reconcile
    start(script, max_concurrent_reconciles=1)
    seed.create(requested(seed, name="bad"))
    seed.create(requested(seed, name="good"))
    eventually(lambda: seed.is_ready("good"))
    eventually(lambda: seed.last_operation("bad") == ("Create", "Error"))
    assert type(raised).__name__ in seed.status("bad")["lastError"]["description"]


def test_not_done_yet_without_a_cause_says_processing_and_comes_again(seed, start, script):
    waits = [RequeueAfter(0.2, "Waiting for the gateway")]

    def reconcile(ctx, obj, cluster):
        if waits:
            raise waits.pop()
        seen.append(seed.status())

    seen: list[Any] = []
    script.on["reconcile"] = reconcile
    never_slow(start(script))
    seed.create(requested(seed))
    eventually(seed.is_ready)
    assert seen[0]["lastOperation"]["state"] == "Processing"
    assert seen[0]["lastOperation"]["description"] == "Waiting for the gateway"
    assert "lastError" not in seen[0]


def test_not_done_yet_with_a_cause_reports_the_cause(seed, start, script):
    cause = ActuatorError("quota", codes=[ErrorCode.ERR_INFRA_QUOTA_EXCEEDED])

    def reconcile(ctx, obj, cluster):
        raise RequeueAfter(60, cause=cause)

    script.on["reconcile"] = reconcile
    start(script)
    seed.create(requested(seed))
    eventually(lambda: seed.last_operation() == ("Create", "Error"))
    assert seed.status()["lastError"]["codes"] == ["ERR_INFRA_QUOTA_EXCEEDED"]


def test_done_look_again_is_a_success_that_comes_again(seed, start, script):
    script.on["reconcile"] = lambda ctx, obj, cluster: Result(requeue_after=0.3)
    start(script)
    seed.create(requested(seed))
    eventually(seed.is_ready)
    eventually(lambda: len(script.operations()) >= 3)


def test_an_operation_that_takes_long_says_processing(seed, start, script, gate):
    script.on["reconcile"] = lambda ctx, obj, cluster: gate.wait(PATIENCE) and None
    start(script)
    seed.create(requested(seed))
    eventually(lambda: seed.last_operation() == ("Create", "Processing"))
    gate.set()
    eventually(seed.is_ready)


def test_processing_is_published_at_once_where_that_is_asked_for(seed, start, script):
    seen: list[Any] = []
    script.on["reconcile"] = lambda ctx, obj, cluster: seen.append(seed.last_operation())
    start(script, processing_status="always")
    seed.create(requested(seed))
    eventually(seed.is_ready)
    assert seen == [("Create", "Processing")]


def test_a_quiet_object_is_left_alone_when_a_manager_starts(seed, start, script):
    first = start(script)
    seed.create(requested(seed))
    eventually(seed.is_ready)
    first.stop()
    second = Script()
    start(second)
    seed.create(requested(seed, name="other"))
    eventually(lambda: second.operations("other"))
    assert second.operations() == []


def test_objects_of_another_type_or_class_are_not_ours(seed, start, script):
    start(script)
    other = requested(seed, name="other-type")
    other["spec"]["type"] = "somebody-else"
    seed.create(other)
    other = requested(seed, name="other-class")
    other["spec"]["class"] = "seed"
    seed.create(other)
    seed.create(requested(seed))
    eventually(seed.is_ready)
    assert script.operations("other-type") == []
    assert script.operations("other-class") == []


def test_an_object_that_cannot_be_read_has_an_error_in_its_status(seed, start, script):
    """No CRD lets this through; a cache that lies stands for one that did."""
    written = []

    class Recording:
        def __init__(self, client):
            self.client = client

        def __getattr__(self, name):
            return getattr(self.client, name)

        def patch(self, resource, name, namespace, patch, *, subresource=""):
            patch = [step for step in patch if step["path"] != "/metadata/resourceVersion"]  # a lie
            answer = self.client.patch(resource, name, namespace, patch, subresource=subresource)
            written.append(answer.get("status", {}).get("lastError"))
            return answer

    manager = start(script, intercept=Recording)
    seed.create(requested(seed))
    eventually(seed.is_ready)
    broken = seed.get()
    broken["spec"]["secretRef"] = "not an object"
    broken["metadata"]["resourceVersion"] = str(int(broken["metadata"]["resourceVersion"]) + 1)
    (watched,) = manager._running.wiring.routes.ours.values()
    watched.store.observe(broken)
    (controller, _) = watched.controllers[0]
    controller.queue.add(Request(seed.namespace, "infra"))
    error = eventually(lambda: [error for error in written if error])[0]
    assert error["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
    assert "secretRef" in error["description"]


def test_a_condition_that_another_sets_meanwhile_is_kept(seed, start, script):
    def reconcile(ctx, obj, cluster):
        others = {**CONDITION, "type": "EveryNodeReady"}
        patch = [{"op": "add", "path": "/status", "value": {"conditions": [others]}}]
        seed.patch(patch, subresource="status")
        obj.status.conditions = [*obj.status.conditions, Condition(type="Own", **REST)]

    script.on["reconcile"] = reconcile
    start(script)
    seed.create(requested(seed))
    eventually(seed.is_ready)
    assert {c["type"] for c in seed.status()["conditions"]} == {"EveryNodeReady", "Own"}


def test_objects_of_a_type_that_no_extension_serves_are_counted(seed, start, script):
    def unserved():
        """Without those of other tests, which come and go meanwhile."""
        counted = sum(samples(manager, "actuator_unserved_objects").values())
        there = seed.client.list(INFRASTRUCTURES)
        others = [header(obj) for obj in there if obj["metadata"]["namespace"] != seed.namespace]
        return counted - sum(other.is_untouched and other.type != "" for other in others)

    manager = start(script)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    eventually(lambda: unserved() == 0)
    seed.create(infrastructure(seed.namespace, f"{seed.namespace}e", name="misspelt"))
    eventually(lambda: unserved() == 1)
    assert seed.namespace not in samples(manager, "actuator_unserved_objects")
    seed.patch({"metadata": {"finalizers": ["example.org/served"]}}, "misspelt")
    eventually(lambda: unserved() == 0)
    seed.patch({"metadata": {"finalizers": None}}, "misspelt")
