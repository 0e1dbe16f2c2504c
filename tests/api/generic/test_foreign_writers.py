"""Other controllers that write to an object change neither its backoff nor its RequeueAfter."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import suppress
from typing import Any

import attrs
import pytest

from actuator import ActuatorError, Condition, RequeueAfter
from actuator.conditions import set_condition
from actuator.errors import ApiError
from actuator.interface import Resource
from actuator.v1alpha1 import Infrastructure
from generic.kube.clusters import NAMESPACES
from generic.kube.delegating import DelegatingClient
from generic.kube.headers import Request
from generic.kube.patches import replace
from generic.kube.patches import test as holds
from tests.support.cluster.harness import FINALIZER, OPERATION, TIMESTAMP, Script, Seed, eventually
from tests.support.objects.builders import cluster, infrastructure

OPERATIONS = ("reconcile", "restore", "migrate", "delete", "force_delete", "requeue")
SECONDS = 3.0
PAUSE = 0.1
WRITES = 30
"""To each object, at least: each started an attempt, where some ten follow the backoff."""
CONFIG_MAPS = Resource("v1", "configmaps")
OTHERS = [f"example.org/{number}" for number in range(6)]


class Failing(Script):
    """Fails for the objects in `broken`, and counts how often."""

    def __init__(self):
        super().__init__()
        self.broken = set()
        self.failed: Counter[Any] = Counter()

    def _run(self, operation, ctx, obj, cluster):
        super()._run(operation, ctx, obj, cluster)
        name = obj.metadata.name
        if name not in self.broken:
            return
        with self.lock:
            self.failed[name] += 1
        if name.startswith("requeue"):
            raise RequeueAfter(60, "waits")
        raise ActuatorError(f"cannot {operation}")


@attrs.define
class Writer:
    """Another controller, which writes everything that a controller may to one object."""

    seed: Seed
    over: threading.Event
    owner: dict[str, str]
    """An existing one: else the garbage collector deletes the object."""
    writes: int = 0

    def run(self):
        while not self.over.wait(PAUSE):
            for write in (self.metadata, self.status, self.finalizers):
                with suppress(ApiError):  # of the test of what was read
                    write()
                    self.writes += 1

    def metadata(self):
        text = str(self.writes)
        noted = {"example.org/a": text, "gardener.cloud/note": text}
        noted["confirmation.gardener.cloud/force-deletion"] = text  # of no effect on this kind
        owner = {**self.owner, "blockOwnerDeletion": self.writes % 2 == 0}
        meta = {"labels": {"a": text}, "annotations": noted, "ownerReferences": [owner]}
        self.seed.patch({"metadata": meta})

    def status(self):
        times = dict.fromkeys(("lastTransitionTime", "lastUpdateTime"), "2026-01-01T00:00:00Z")
        status = "True" if self.writes % 2 else "False"
        condition = {"type": "Other", "status": status, "reason": "a", "message": "", **times}
        kept = [
            condition
            for condition in self.seed.status().get("conditions", ())
            if condition["type"] != "Other"
        ]
        last = {"description": str(self.writes), "progress": self.writes % 100}
        self.seed.patch(
            {
                "status": {
                    "conditions": [*kept, condition],
                    "state": {"n": self.writes},
                    "lastOperation": last,
                }
            },
            subresource="status",
        )

    def finalizers(self):
        meta = self.seed.get()["metadata"]
        before = meta["finalizers"]
        others = [item for item in before if item != FINALIZER]
        after = [item for item in before if item != others[0]]
        if "deletionTimestamp" not in meta and others[0] == OTHERS[0]:
            after = [*after, "example.org/new"]
        elif "deletionTimestamp" not in meta:
            after = [OTHERS[0], *after]
        if len(after) > 1:
            path = "/metadata/finalizers"
            self.seed.patch([holds(path, before), replace(path, after)])


@pytest.fixture
def forced(admin, namespace, managers):
    """Another shoot, whose deletion is forced."""
    name = f"{namespace}-forced"
    admin.create(NAMESPACES, {"metadata": {"name": name}})
    seed = Seed(admin, name, managers=managers)
    seed.create(cluster(name, force="true"))
    yield seed
    seed.delete_cluster()


def break_operation(seed, script, operation):
    """Request the operation of an object that is ready, and lets it fail from then on."""
    eventually(seed.is_ready)
    script.broken.add(seed.name)
    if "delete" in operation:
        seed.delete()
    else:
        asked = "reconcile" if operation == "requeue" else operation
        seed.annotate(**{OPERATION: asked, TIMESTAMP: "2026-01-01T00:00:00Z"})


def owner_in(seed):
    meta = {"generateName": "owner-", "namespace": seed.namespace}
    made = seed.client.create(CONFIG_MAPS, {"metadata": meta})["metadata"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": made["name"], "uid": made["uid"]}


def test_other_writers_do_not_change_the_rate_of_attempts(seed, forced, start):
    script = Failing()
    start(script)
    pairs = {}
    for operation in OPERATIONS:
        place = forced if operation == "force_delete" else seed
        name = operation.replace("_", "-")
        pairs[operation] = [place.of(Infrastructure, item) for item in (name, f"{name}-alone")]
        for item in pairs[operation]:
            manifest = infrastructure(
                item.namespace, seed.namespace, item.name, finalizers=list(OTHERS)
            )
            item.create(manifest)
    for operation, pair in pairs.items():
        for element in pair:
            break_operation(element, script, operation)
    over = threading.Event()
    writers = [Writer(disturbed, over, owner_in(disturbed)) for disturbed, _ in pairs.values()]
    threads = [threading.Thread(target=writer.run, daemon=True) for writer in writers]
    for thread in threads:
        thread.start()
    over.wait(SECONDS)
    eventually(lambda: all(writer.writes > WRITES for writer in writers))
    over.set()
    for thread in threads:
        thread.join()
    for operation, (disturbed, alone) in pairs.items():
        counts = script.failed[disturbed.name], script.failed[alone.name]
        few = counts == (1, 1) if operation == "requeue" else counts[0] <= counts[1] + 2
        assert few, f"{operation}: {counts[0]} attempts beside another writer, {counts[1]} alone"
    waits = pairs["requeue"][0]
    waits.annotate(**{TIMESTAMP: "2026-01-02T00:00:00Z"})
    eventually(lambda: script.failed[waits.name] == 2)  # a newer request does not wait


class Interfering(DelegatingClient):
    """Another controller writes right before each patch of these paths: it always fails a test."""

    def __init__(self, paths):
        self.paths = paths
        self.seed = None
        self.writes = 0

    def __call__(self, client):
        super().__init__(client)
        return self

    def patch(self, resource, name, namespace, patch, *, subresource=""):
        if self.seed and any(str(op["path"]).startswith(self.paths) for op in patch):
            self.writes += 1
            added = [*self.seed.get()["metadata"].get("finalizers", ()), f"a/{self.writes}"]
            self.seed.patch([{"op": "add", "path": "/metadata/finalizers", "value": added}])
        return super().patch(resource, name, namespace, patch, subresource=subresource)


def failures(manager, seed):
    [(controller, _)] = manager._running.wiring.controllers
    return controller.queue.failures(Request(seed.where, seed.name))


def test_a_writer_that_makes_every_report_stale_does_not_reset_the_backoff(seed, start, script):
    def reconcile(ctx, obj, cluster):
        own = Condition(type="Own", status="True", reason="A", message=f"{script.calls}")
        obj.status.conditions = set_condition(obj.status.conditions, own, ctx.clock.now())

    interfering = Interfering(("/status/conditions",))  # a list, whose patch tests the version
    interfering.seed = seed
    script.on["reconcile"] = reconcile
    seed.create(infrastructure(seed.namespace, seed.namespace))
    seed.patch({"status": {"state": {}}}, subresource="status")
    manager = start(script, intercept=interfering)
    eventually(lambda: failures(manager, seed) >= 3)
    assert len(script.operations()) <= failures(manager, seed) + 1
    interfering.seed = None
    eventually(seed.is_ready)
    eventually(lambda: failures(manager, seed) == 0)


def test_a_writer_that_takes_our_finalizers_place_delays_the_first_call_only_while_it_writes(
    seed, start, script
):
    interfering = Interfering(("/metadata/finalizers",))
    interfering.seed = seed
    manager = start(script, intercept=interfering)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(lambda: failures(manager, seed) >= 6)
    assert script.operations() == []
    interfering.seed = None
    eventually(seed.is_ready, 5.0)
    assert script.operations() == ["reconcile"]
