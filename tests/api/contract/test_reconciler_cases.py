"""The Gardener contract: the method that each state of an object calls.

`choose_operation` decides that from the same facts for every kind, and test_operation.py asks it
for every combination. Here each decision is seen on a real cluster for one kind, another one each
time, and each kind goes through a whole life.
"""

import time
from itertools import cycle, groupby

import pytest

from actuator import ActuatorError, FieldProblem, Result
from actuator.cluster import FORCE_DELETION
from actuator.v1alpha1 import KINDS, Bastion, ControlPlane, DNSRecord, Infrastructure, Worker
from generic.kube.clusters import CLUSTERS
from tests.support.cluster.harness import OPERATION, TIMESTAMP, Script, eventually
from tests.support.objects.builders import cluster
from tests.support.objects.contract import manifest

FULL = [cls for cls in KINDS if cls.KIND.migratable and cls.KIND.skips_failed_shoot]
FORCED_BY_SHOOT = [cls for cls in KINDS if cls.KIND.force_from == "shoot"]
_KINDS = cycle(FULL)


def of_one_kind(test):
    """The test gets the next kind."""
    cls = next(_KINDS)
    return pytest.mark.parametrize("cls", [cls], ids=[cls.KIND.name])(test)


def once(error):
    """Fails the first time."""
    errors = [error]

    def operate(ctx, obj, cluster):
        if errors:
            raise errors.pop()

    return operate


def stuck(ctx, obj, cluster):
    """Fail, as a deletion that only force can end; it may be tried before force is seen."""
    raise ActuatorError("stuck")


def last(type, state):
    return {
        "type": type,
        "state": state,
        "progress": 50,
        "description": "",
        "lastUpdateTime": "2026-01-01T00:00:00Z",
    }


def left_at(seed, cls, type, state, finalizers=()):
    """An object as a crashed extension left it: with that last operation, and asked nothing."""
    obj = manifest(cls, seed.namespace, annotations={OPERATION: "wait-for-state"})
    obj["metadata"]["finalizers"] = list(finalizers)
    seed.create(obj)
    status = {"lastOperation": last(type, state)}
    seed.patch([{"op": "add", "path": "/status", "value": status}], subresource="status")
    seed.annotate(**{OPERATION: None})


@pytest.mark.parametrize("cls", FULL, ids=lambda cls: cls.KIND.name)
def test_every_kind_goes_through_all_operations(of, start, cls):
    seed = of(cls)
    script = Script(cls, migrate=once(ActuatorError("no")), restore=once(ActuatorError("no")))
    start(script)
    asked = {OPERATION: "reconcile", TIMESTAMP: "2026-01-01T00:00:00Z"}
    seed.create(manifest(cls, seed.namespace, annotations=asked))
    eventually(seed.is_ready)
    assert cls.KIND.finalizer in seed.get()["metadata"]["finalizers"]
    for operation in ("migrate", "restore"):
        seed.ask(operation)
        done = (operation.title(), "Succeeded")
        eventually(lambda done=done: seed.last_operation() == done)
        eventually(lambda: OPERATION not in seed.get()["metadata"]["annotations"])
    script.on["delete"] = stuck
    seed.delete()
    eventually(lambda: seed.last_operation() == ("Delete", "Error"))
    assert cls.KIND.finalizer in seed.get()["metadata"]["finalizers"]
    seed.update_cluster(cluster(seed.namespace, force="true"))
    eventually(seed.is_gone)
    called = [operation for operation, _ in groupby(script.operations())]
    assert called == ["reconcile", "migrate", "restore", "delete", "force_delete"]
    assert script.operations().count("migrate") == script.operations().count("restore") == 2


@of_one_kind
def test_asked_to_reconcile_it_reconciles_and_takes_the_request_off(of, start, cls):
    seed = of(cls)
    script = Script(cls)
    start(script)
    asked = {OPERATION: "reconcile", TIMESTAMP: "2026-01-01T00:00:00Z"}
    seed.create(manifest(cls, seed.namespace, annotations=asked))
    eventually(seed.is_ready)
    assert OPERATION not in seed.get()["metadata"]["annotations"]
    assert script.operations() == ["reconcile"]


@of_one_kind
def test_deleting_and_migrated_nothing_is_called(of, start, cls):
    """Difference: Go never removes the finalizer; ours is removed."""
    seed = of(cls)
    script = Script(cls)
    left_at(seed, cls, "Migrate", "Succeeded", [cls.KIND.finalizer])
    seed.delete()
    start(script)
    eventually(seed.is_gone)
    assert script.operations() == []


@of_one_kind
def test_a_failed_migration_keeps_its_request(of, start, cls):
    seed = of(cls)
    seen = []

    def migrate(ctx, obj, cluster):
        seen.append(obj.metadata.annotations.get(OPERATION))
        if len(seen) == 1:
            raise ActuatorError("no")

    script = Script(cls, migrate=migrate)
    start(script)
    seed.create(manifest(cls, seed.namespace))
    eventually(seed.is_ready)
    seed.ask("migrate")
    eventually(lambda: seed.last_operation() == ("Migrate", "Succeeded"))
    eventually(lambda: OPERATION not in seed.get()["metadata"]["annotations"])
    assert seen == ["migrate", "migrate"]


@of_one_kind
def test_an_unfinished_migration_goes_on(of, start, cls):
    seed = of(cls)
    script = Script(cls)
    left_at(seed, cls, "Migrate", "Failed", [cls.KIND.finalizer])
    start(script)
    eventually(lambda: seed.last_operation() == ("Migrate", "Succeeded"))
    assert script.operations() == ["migrate"]


@of_one_kind
def test_a_failed_deletion_keeps_the_finalizer(of, start, cls):
    seed = of(cls)
    held = []

    def delete(ctx, obj, cluster):
        held.append(cls.KIND.finalizer in seed.get()["metadata"]["finalizers"])
        if len(held) == 1:
            raise ActuatorError("no")

    start(Script(cls, delete=delete))
    seed.create(manifest(cls, seed.namespace))
    eventually(seed.is_ready)
    seed.delete()
    eventually(seed.is_gone)
    assert held == [True, True]


@of_one_kind
def test_asked_to_restore_it_restores_until_that_works(of, start, cls):
    seed = of(cls)
    script = Script(cls, restore=once(ActuatorError("no")))
    start(script)
    asked = {OPERATION: "restore", TIMESTAMP: "2026-01-01T00:00:00Z"}
    seed.create(manifest(cls, seed.namespace, annotations=asked))
    eventually(seed.is_ready)
    assert seed.last_operation() == ("Restore", "Succeeded")
    assert script.operations() == ["restore", "restore"]


@pytest.mark.parametrize("state", ["Failed", "Processing"])
@of_one_kind
def test_an_unfinished_reconcile_goes_on(of, start, cls, state):
    seed = of(cls)
    left_at(seed, cls, "Reconcile", state)
    script = Script(cls, reconcile=once(ActuatorError("no")))
    start(script)
    eventually(lambda: seed.last_operation() == ("Reconcile", "Succeeded"))
    assert script.operations() == ["reconcile", "reconcile"]


@of_one_kind
def test_deleting_without_our_finalizer_is_none_of_our_business(of, start, cls):
    seed = of(cls)
    script = Script(cls)
    obj = manifest(cls, seed.namespace)
    obj["metadata"]["finalizers"] = ["example.org/foreign"]
    seed.create(obj)
    seed.delete()
    start(script)
    seed.create(manifest(cls, seed.namespace, "other"))
    eventually(lambda: seed.is_ready("other"))
    assert script.operations() == []
    assert seed.status() == {}
    seed.patch({"metadata": {"finalizers": None}})


@of_one_kind
def test_a_failed_shoot_is_left_alone(of, start, cls):
    seed = of(cls)
    script = Script(cls)
    seed.update_cluster(cluster(seed.namespace, failed=True))
    start(script)
    seed.create(manifest(cls, seed.namespace))
    time.sleep(0.5)
    assert script.operations() == []
    assert seed.status() == {}
    seed.update_cluster(cluster(seed.namespace))
    eventually(seed.is_ready)


@pytest.mark.parametrize("value", ["1", "false", None, "garbage"])
@pytest.mark.parametrize("cls", FORCED_BY_SHOOT[-2:], ids=lambda cls: cls.KIND.name)
def test_a_true_annotation_of_the_shoot_forces_a_deletion(of, start, cls, value):
    seed = of(cls)
    forced = value == "1"
    script = Script(cls, **({"delete": stuck} if forced else {}))
    start(script)
    seed.create(manifest(cls, seed.namespace))
    eventually(seed.is_ready)
    seed.update_cluster(cluster(seed.namespace, force=value))
    seed.delete()
    eventually(seed.is_gone)
    assert script.operations()[-1] == ("force_delete" if forced else "delete")
    assert forced or "force_delete" not in script.operations()


@pytest.mark.parametrize(("value", "called"), [("true", "force_delete"), ("1", "delete")])
def test_a_bastion_is_forced_by_its_own_annotation_written_out(of, start, value, called):
    seed = of(Bastion)
    script = Script(Bastion)
    start(script)
    seed.create(manifest(Bastion, seed.namespace))
    eventually(seed.is_ready)
    seed.annotate(**{FORCE_DELETION: value})
    seed.delete()
    eventually(seed.is_gone)
    assert script.operations()[-1] == called


def test_a_forced_shoot_forces_no_bastion(of, start):
    seed = of(Bastion)
    script = Script(Bastion)
    start(script)
    seed.create(manifest(Bastion, seed.namespace))
    eventually(seed.is_ready)
    seed.update_cluster(cluster(seed.namespace, force="true"))
    seed.delete()
    eventually(seed.is_gone)
    assert script.operations()[-1] == "delete"


def test_outside_shoot_namespaces_a_record_has_no_cluster_and_is_never_forced(of, start):
    """A Cluster of the namespace's name is not looked for where no shoot lives."""
    seed = of(DNSRecord)
    seed.client.delete(CLUSTERS, seed.namespace)
    exists = []
    script = Script(DNSRecord, reconcile=lambda ctx, obj, cluster: exists.append(cluster.exists))
    start(script, extension_classes=("garden",))
    seed.create(manifest(DNSRecord, seed.namespace, **{"class": "garden"}))
    eventually(seed.is_ready)
    seed.create(cluster(seed.namespace, force="true"))
    seed.delete()
    eventually(seed.is_gone)
    assert exists == [False]
    assert script.operations() == ["reconcile", "delete"]


@of_one_kind
def test_while_gardenlet_fills_in_the_state_nothing_happens(of, start, cls):
    seed = of(cls)
    script = Script(cls)
    start(script)
    seed.create(manifest(cls, seed.namespace, annotations={OPERATION: "wait-for-state"}))
    seed.create(manifest(cls, seed.namespace, "other"))
    eventually(lambda: seed.is_ready("other"))
    assert script.operations() == []
    assert seed.status() == {}
    assert "finalizers" not in seed.get()["metadata"]


@of_one_kind
def test_a_failed_force_deletion_is_reported_and_retried(of, start, cls):
    seed = of(cls)
    seen = []

    def force_delete(ctx, obj, cluster):
        seen.append(seed.get())
        if len(seen) == 1:
            raise ActuatorError("no")

    start(Script(cls, delete=stuck, force_delete=force_delete))
    seed.create(manifest(cls, seed.namespace))
    eventually(seed.is_ready)
    seed.update_cluster(cluster(seed.namespace, force="true"))
    seed.delete()
    eventually(seed.is_gone)
    assert cls.KIND.finalizer in seen[1]["metadata"]["finalizers"]
    operation = seen[1]["status"]["lastOperation"]
    assert (operation["type"], operation["state"]) == ("Delete", "Error")


def test_a_control_plane_that_asks_for_it_is_looked_at_again(of, start):
    seed = of(ControlPlane)
    ready = []

    def reconcile(ctx, obj, cluster):
        ready.append(seed.is_ready())
        return Result(requeue_after=0.5) if len(ready) == 1 else None

    start(Script(ControlPlane, reconcile=reconcile))
    seed.create(manifest(ControlPlane, seed.namespace))
    eventually(lambda: len(ready) == 2)
    assert ready == [False, True], "the first time was a success already"
    eventually(seed.is_ready)


@pytest.mark.parametrize(
    ("internal", "codes"), [(False, ["ERR_CONFIGURATION_PROBLEM"]), (True, None)]
)
@pytest.mark.parametrize("cls", [Infrastructure, Bastion, Worker], ids=lambda cls: cls.KIND.name)
def test_an_invalid_object_is_not_reconciled(of, start, cls, internal, codes):
    seed = of(cls)
    problems = [
        FieldProblem(field="spec.a", detail="is missing"),
        FieldProblem(field="spec.b", detail="is odd", internal=internal),
    ]
    script = Script(cls, validate=lambda ctx, obj, cluster: problems)
    start(script)
    seed.create(manifest(cls, seed.namespace))
    eventually(lambda: seed.last_operation() == ("Create", "Error"))
    error = seed.status()["lastError"]
    assert "spec.a: is missing; spec.b: is odd" in error["description"]
    assert error.get("codes") == codes
    assert script.operations() == []
    problems.clear()
    eventually(seed.is_ready)
