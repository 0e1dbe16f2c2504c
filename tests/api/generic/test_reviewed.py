"""Defects that a review found, each as the sequence that brought it about."""

from contextlib import ExitStack
from datetime import datetime
from typing import Any

from actuator import RequeueAfter
from actuator.interface import resource_of
from actuator.v1alpha1 import ControlPlane
from generic.kube.clusters import CLUSTERS
from tests.support.cluster.harness import (
    OPERATION,
    PATIENCE,
    TIMESTAMP,
    Script,
    eventually,
    running,
)
from tests.support.objects.builders import cluster, infrastructure

CONTROL_PLANES = resource_of(ControlPlane.KIND)


def hold(gate, calls):
    def act(ctx, obj, cluster):
        calls.append(obj.metadata.name)
        gate.wait(3 * PATIENCE)

    return act


def create_control_plane(seed, name="infra"):
    obj = infrastructure(seed.namespace, seed.namespace, name)
    seed.client.create(CONTROL_PLANES, obj | {"kind": "ControlPlane"})


def test_two_kinds_of_one_name_do_not_end_each_others_calls(
    seed, environment, admin, start, script, gate, monkeypatch
):
    monkeypatch.setattr("generic.reconciler.calls.ABANDONED_AFTER_SECONDS", 0.5)
    hung: list[Any] = []
    script.on["delete"] = hold(gate, hung)
    control = Script(ControlPlane)
    manager = start(script, second=control)
    assert len(manager.registrations) == 2
    seed.create(infrastructure(seed.namespace, seed.namespace))
    create_control_plane(seed)
    eventually(lambda: seed.is_ready() and control.operations())
    seed.delete()
    eventually(lambda: hung)
    seed.client.patch(
        CONTROL_PLANES,
        "infra",
        seed.namespace,
        {"metadata": {"annotations": {OPERATION: "reconcile", TIMESTAMP: "2099-01-01T00:00:00Z"}}},
    )
    seed.update_cluster(cluster(seed.namespace, force="true"))
    eventually(seed.is_gone)
    eventually(lambda: len(control.operations()) > 1)
    assert set(control.operations()) == {"reconcile"}
    seed.garden.delete(ControlPlane.KIND, seed.namespace, "infra")
    eventually(lambda: control.operations()[-1] == "force_delete")


def test_a_migration_of_a_forced_object_is_called_once(seed, start, script):
    seed.update_cluster(cluster(seed.namespace, force="true"))
    start(script)
    hold_it = ["example.org/hold"]
    seed.create(infrastructure(seed.namespace, seed.namespace, finalizers=hold_it))
    eventually(seed.is_ready)
    script.on["migrate"] = lambda ctx, obj, cluster: ctx.check()
    seed.annotate(**{OPERATION: "migrate"})
    eventually(lambda: seed.last_operation() == ("Migrate", "Succeeded"))
    eventually(lambda: seed.get()["metadata"]["finalizers"] == hold_it)
    seed.delete()
    seed.create(infrastructure(seed.namespace, seed.namespace, name="later"))
    eventually(lambda: seed.is_ready("later"))
    assert script.operations() == ["reconcile", "migrate"]
    seed.patch([{"op": "remove", "path": "/metadata/finalizers"}])


def test_a_status_that_no_json_can_hold_is_an_error_like_any_other(seed, start, script):
    def reconcile(ctx, obj, cluster):
        obj.status.provider_status = {"at": datetime.now()}  # noqa: DTZ005

    script.on["reconcile"] = reconcile
    start(script)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(lambda: seed.last_operation() == ("Create", "Error"))
    assert "datetime" in seed.status()["lastError"]["description"]


def test_waiting_keeps_the_status_of_the_actuator(seed, start, script):
    def reconcile(ctx, obj, cluster):
        obj.status.provider_status = {"vpc": "vpc-1"}
        raise RequeueAfter(60, "not there yet")

    script.on["reconcile"] = reconcile
    start(script)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(lambda: seed.status()["lastOperation"]["description"] == "not there yet")
    assert seed.last_operation() == ("Create", "Processing")
    assert seed.status()["providerStatus"] == {"vpc": "vpc-1"}


def test_a_blocked_restore_stays_a_restore(seed, start, script):
    seed.client.delete(CLUSTERS, seed.namespace)
    start(script)
    asked = {OPERATION: "restore", TIMESTAMP: "2026-01-01T00:00:00Z"}
    seed.create(infrastructure(seed.namespace, seed.namespace, annotations=asked))
    eventually(lambda: seed.last_operation() == ("Restore", "Error"))
    seed.create(cluster(seed.namespace))
    eventually(seed.is_ready)
    assert script.operations() == ["restore"]


def test_a_standby_that_takes_over_leaves_quiet_objects_alone(seed, environment, admin, namespace):
    leader = Script()
    standby = Script()
    with ExitStack() as stack:
        first = running(environment, admin, namespace, leader, leader_election=True)
        managing = stack.enter_context(first)
        seed.create(infrastructure(seed.namespace, seed.namespace))
        eventually(seed.is_ready)
        second = running(environment, admin, namespace, standby, leader_election=True)
        stack.enter_context(second)
        seed.ask("reconcile")
        eventually(lambda: leader.operations() == ["reconcile"] * 2 and seed.is_ready())
        managing.stop()
        seed.create(infrastructure(seed.namespace, seed.namespace, name="other"))
        eventually(lambda: standby.operations("other") and seed.is_ready("other"))
        assert standby.operations() == []


def test_an_abandoned_call_does_not_delay_the_shutdown(seed, start, script, gate, monkeypatch):
    monkeypatch.setattr("generic.reconciler.calls.ABANDONED_AFTER_SECONDS", 0.2)
    hung: list[Any] = []
    script.on["delete"] = hold(gate, hung)
    manager = start(script, max_concurrent_reconciles=2, shutdown_timeout=PATIENCE)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    seed.delete()
    eventually(lambda: hung)
    seed.update_cluster(cluster(seed.namespace, force="true"))
    eventually(seed.is_gone)
    eventually(lambda: manager.check_ready()["workers"]() is None)
    assert manager.stop() is True
