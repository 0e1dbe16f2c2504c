"""Migrate and restore: requests, finalizers, and the end of an object that has moved."""

from typing import Any

import pytest

from actuator import ActuatorError
from tests.support.cluster.harness import FINALIZER, OPERATION, TIMESTAMP, eventually
from tests.support.objects.builders import infrastructure

FOREIGN = "example.org/foreign"


def migrated(seed, start, script, **more):
    manager = start(script)
    manager._running.wiring.timers.stop()  # on a slow machine a call would say Processing by itself
    seed.create(infrastructure(seed.namespace, seed.namespace, **more))
    eventually(seed.is_ready)
    seed.ask("migrate")
    eventually(lambda: FINALIZER not in (seed.get()["metadata"].get("finalizers") or []))
    return seed.get()


def test_migrate_removes_our_finalizer_and_the_request_and_no_other_finalizer(seed, start, script):
    obj = migrated(seed, start, script, finalizers=[FOREIGN])
    assert obj["metadata"]["finalizers"] == [FOREIGN]
    assert OPERATION not in obj["metadata"].get("annotations", {})
    assert obj["status"]["lastOperation"]["type"] == "Migrate"
    assert obj["status"]["lastOperation"]["state"] == "Succeeded"
    assert script.operations() == ["reconcile", "migrate"]
    seed.patch([{"op": "remove", "path": "/metadata/finalizers"}])


def test_a_migrated_object_is_called_for_nothing_any_more(seed, start, script):
    migrated(seed, start, script)
    seed.annotate(**{OPERATION: "reconcile", TIMESTAMP: "2026-01-02T00:00:00Z"})
    seed.delete()
    eventually(seed.is_gone)
    assert script.operations() == ["reconcile", "migrate"]


def test_a_finalizer_left_on_a_migrated_object_is_removed_when_it_is_deleted(seed, start, script):
    migrated(seed, start, script, finalizers=[FOREIGN])
    seed.patch({"metadata": {"finalizers": [FINALIZER, FOREIGN]}})
    seed.delete()
    eventually(lambda: seed.get()["metadata"]["finalizers"] == [FOREIGN])
    assert script.operations() == ["reconcile", "migrate"]
    seed.patch([{"op": "remove", "path": "/metadata/finalizers"}])


def test_a_failed_migration_keeps_request_and_finalizer_and_goes_on(seed, start, script):
    failures = [ActuatorError("not yet")] * 2

    def migrate(ctx, obj, cluster):
        if failures:
            seen.append(seed.get())
            raise failures.pop()

    seen: list[Any] = []
    script.on["migrate"] = migrate
    obj = migrated(seed, start, script)
    assert obj["status"]["lastOperation"]["state"] == "Succeeded"
    assert seen[1]["status"]["lastOperation"]["type"] == "Migrate"
    assert seen[1]["status"]["lastOperation"]["state"] == "Error"
    assert seen[1]["metadata"]["annotations"][OPERATION] == "migrate"
    assert FINALIZER in seen[1]["metadata"]["finalizers"]


def test_nothing_happens_while_gardenlet_fills_in_the_state(seed, start, script):
    start(script)
    asked = {OPERATION: "wait-for-state"}
    seed.create(infrastructure(seed.namespace, seed.namespace, annotations=asked))
    seed.patch(
        [{"op": "add", "path": "/status", "value": {"state": {"vpc": "1"}}}], "infra", "status"
    )
    seed.create(infrastructure(seed.namespace, seed.namespace, name="other"))
    eventually(lambda: seed.is_ready("other"))
    assert script.operations() == []
    states = []
    script.on["restore"] = lambda ctx, obj, cluster: states.append(obj.status.state)
    seed.ask("restore")
    eventually(seed.is_ready)
    assert states == [{"vpc": "1"}]
    assert seed.last_operation() == ("Restore", "Succeeded")
    assert script.operations() == ["restore"]


def test_the_restore_request_stays_until_the_status_says_restore(seed, start, script):
    failures = [ActuatorError("not yet")]

    def restore(ctx, obj, cluster):
        seen.append(seed.get()["metadata"]["annotations"][OPERATION])
        if failures:
            raise failures.pop()

    seen: list[Any] = []
    script.on["restore"] = restore
    start(script)
    asked = {OPERATION: "restore", TIMESTAMP: "2026-01-01T00:00:00Z"}
    seed.create(infrastructure(seed.namespace, seed.namespace, annotations=asked))
    eventually(seed.is_ready)
    assert seen == ["restore", "restore"]


@pytest.mark.parametrize("operation", ["migrate", "restore"])
def test_an_unfinished_operation_goes_on_without_its_request(seed, start, script, operation):
    asked = {OPERATION: "wait-for-state"}
    seed.create(infrastructure(seed.namespace, seed.namespace, annotations=asked))
    last = {
        "type": operation.title(),
        "state": "Error",
        "progress": 50,
        "description": "",
        "lastUpdateTime": "2026-01-01T00:00:00Z",
    }
    seed.patch(
        [{"op": "add", "path": "/status", "value": {"lastOperation": last}}], "infra", "status"
    )
    seed.annotate(**{OPERATION: None})
    start(script)
    eventually(lambda: seed.last_operation() == (operation.title(), "Succeeded"))
    assert script.operations() == [operation]
