"""Events that arrive while a worker has the object, or between a write of ours and its answer."""

import threading

import pytest

from actuator import ActuatorError
from actuator.errors import Unavailable
from tests.support.cluster.harness import FINALIZER, OPERATION, PATIENCE, TIMESTAMP, eventually
from tests.support.objects.builders import cluster, infrastructure


class Between:
    """A client that lets something happen right before, or right after, a patch takes effect."""

    def __init__(self):
        self.before = {}
        self.after = {}

    def __call__(self, client):
        self.client = client
        return self

    def __getattr__(self, name):
        return getattr(self.client, name)

    def patch(self, resource, name, namespace, patch, *, subresource=""):
        what = subresource or (
            "finalizers" if any("finalizers" in str(op.get("path")) for op in patch) else "request"
        )
        if act := self.before.pop(what, None):
            act()
        try:
            return self.client.patch(resource, name, namespace, patch, subresource=subresource)
        finally:
            if act := self.after.pop(what, None):
                act()


@pytest.fixture
def between():
    return Between()


def create(seed, **annotations):
    asked = {OPERATION: "reconcile", TIMESTAMP: "2026-01-01T00:00:00Z", **annotations}
    seed.create(infrastructure(seed.namespace, seed.namespace, annotations=asked))


def ask_again(seed):
    """A newer request, with a newer timestamp."""
    seed.annotate(**{OPERATION: "reconcile", TIMESTAMP: "2026-01-02T00:00:00Z"})


def test_a_request_that_arrives_during_the_call_runs_again(seed, start, script, gate):
    script.on["reconcile"] = lambda ctx, obj, cluster: gate.wait(PATIENCE) and None
    start(script)
    create(seed)
    eventually(script.operations)
    ask_again(seed)
    gate.set()
    eventually(lambda: len(script.operations()) >= 2)  # a watch that lags tells of it once more
    eventually(seed.is_ready)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("write", ["finalizers", "status"])
def test_a_request_around_a_write_of_the_first_sight_runs_again(
    seed, start, script, between, write, moment
):
    getattr(between, moment)[write] = lambda: ask_again(seed)
    start(script, intercept=between)
    create(seed)
    wanted = 1 if (write, moment) == ("finalizers", "before") else 2
    eventually(lambda: len(script.operations()) >= wanted)  # so it was asked again
    eventually(seed.is_ready)
    assert not between.before
    assert not between.after
    annotations = seed.get()["metadata"]["annotations"]
    assert annotations == {TIMESTAMP: "2026-01-02T00:00:00Z"}


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("write", ["request", "status"])
def test_a_request_around_a_write_of_a_later_reconcile_runs_again(
    seed, start, script, between, write, moment
):
    def reconcile(ctx, obj, cluster):
        if len(script.operations()) == 2:  # from here on the writes are those of the second
            getattr(between, moment)[write] = lambda: ask_again(seed)

    script.on["reconcile"] = reconcile
    start(script, intercept=between)
    create(seed)
    eventually(seed.is_ready)
    seed.annotate(**{OPERATION: "reconcile", TIMESTAMP: "2026-01-01T12:00:00Z"})
    eventually(lambda: len(script.operations()) >= 3)
    eventually(seed.is_ready)
    assert seed.get()["metadata"]["annotations"][TIMESTAMP] == "2026-01-02T00:00:00Z"


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("write", ["finalizers", "status"])
def test_a_deletion_around_a_write_is_acted_on(seed, start, script, between, write, moment):
    getattr(between, moment)[write] = seed.delete
    start(script, intercept=between)
    create(seed)
    eventually(seed.is_gone)
    never_seen = (write, moment) == ("finalizers", "before")
    assert (script.operations()[-1:] == ["delete"]) is not never_seen


def test_a_deletion_during_the_call_is_acted_on(seed, start, script, gate):
    script.on["reconcile"] = lambda ctx, obj, cluster: gate.wait(PATIENCE) and None
    start(script)
    create(seed)
    eventually(script.operations)
    seed.delete()
    gate.set()
    eventually(seed.is_gone)
    assert script.operations() == ["reconcile", "delete"]


def test_a_force_annotation_around_the_error_status_is_acted_on(seed, start, script, between):
    def fail(ctx, obj, cluster_):
        raise ActuatorError("no")

    for moment in ("before", "after"):
        script.on["delete"] = fail
        name = f"infra-{moment}"
        if moment == "before":
            start(script, intercept=between)
        seed.update_cluster(cluster(seed.namespace))
        seed.create(infrastructure(seed.namespace, seed.namespace, name=name))
        eventually(lambda name=name: seed.is_ready(name))
        force = threading.Event()

        def annotate(force=force):
            seed.update_cluster(cluster(seed.namespace, force="true"))
            force.set()

        getattr(between, moment)["status"] = annotate
        seed.delete(name)
        eventually(lambda name=name: seed.is_gone(name))
        assert script.operations(name)[-1] == "force_delete"


def test_a_crash_between_success_and_removal_of_the_request_runs_again(
    seed, start, script, between
):
    """The removal never arrives; the next manager sees the request and acts on it."""
    from actuator.errors import Unavailable

    def lose():
        raise Unavailable(0, "the process died here")

    manager = start(script, intercept=between)
    create(seed)
    eventually(seed.is_ready)
    between.before["request"] = lose
    manager._running.wiring.timers.stop()
    seed.annotate(**{OPERATION: "reconcile", TIMESTAMP: "2026-01-02T00:00:00Z"})
    eventually(lambda: len(script.operations()) >= 3)
    eventually(seed.is_ready)


def test_foreign_finalizers_that_come_and_go_are_kept_in_a_storm_of_writes(seed, start, script):
    stop = threading.Event()
    writes = []

    def storm():
        while not stop.is_set():
            try:
                present = seed.get()["metadata"].get("finalizers", [])
                foreign = [f for f in present if f != FINALIZER]
                flipped = ["example.org/a"] if foreign == ["example.org/b"] else ["example.org/b"]
                ours = [f for f in present if f == FINALIZER]
                seed.patch(
                    [
                        {"op": "test", "path": "/metadata/finalizers", "value": present},
                        {"op": "replace", "path": "/metadata/finalizers", "value": flipped + ours},
                    ]
                )
                writes.append(flipped)
            except Exception:
                pass

    start(script)
    create(seed)
    eventually(seed.is_ready)
    seed.patch([{"op": "add", "path": "/metadata/finalizers/-", "value": "example.org/b"}])
    thread = threading.Thread(target=storm, daemon=True)
    thread.start()
    eventually(lambda: len(writes) > 5)
    seed.delete()
    eventually(lambda: FINALIZER not in seed.get()["metadata"]["finalizers"])
    stop.set()
    thread.join()
    left = seed.get()["metadata"]["finalizers"]
    assert left in (["example.org/a"], ["example.org/b"])
    seed.patch([{"op": "remove", "path": "/metadata/finalizers"}])


@pytest.mark.parametrize("others", [[], ["example.org/a"]], ids=["gone", "held-by-others"])
def test_a_lost_answer_to_the_release_is_no_second_deletion(seed, start, script, between, others):
    def lose():
        raise Unavailable(0, "the answer got lost")

    manager = start(script, intercept=between)
    create(seed)
    eventually(seed.is_ready)
    if others:
        seed.patch([{"op": "add", "path": "/metadata/finalizers/-", "value": others[0]}])
    between.after["finalizers"] = lose
    seed.delete()
    eventually(lambda: seed.get()["metadata"]["finalizers"] == others if others else seed.is_gone())
    outcomes = manager.metrics.total
    eventually(lambda: outcomes("actuator_deletions_total", "outcome")["deleted"] == 1)
    assert script.operations() == ["reconcile", "delete"]
    if others:
        seed.patch([{"op": "remove", "path": "/metadata/finalizers"}])
        eventually(seed.is_gone)
    assert outcomes("actuator_deletions_total", "outcome")["deleted"] == 1
