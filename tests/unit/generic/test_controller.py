"""Events while a worker has an object, in the orders that a watch and answers can take."""

import threading

import attrs
import pytest

from actuator import Resource
from generic.controller.controller import Again, Controller, Done, Failed
from generic.controller.predicates import OPERATION, operation_requested
from generic.kube.clock import SystemClock
from generic.kube.headers import Request, header
from generic.kube.store import Store
from generic.serving.metrics import Metrics

RESOURCE = Resource("extensions.gardener.cloud/v1alpha1", "infrastructures")
REQUEST = Request("n", "o")


def obj(version, **meta):
    base = {"name": "o", "namespace": "n", "uid": "u", "generation": 1, "finalizers": ["f"]}
    last = {"type": "Reconcile", "state": "Succeeded"}
    merged = {**base, "resourceVersion": str(version), **meta}
    return {"metadata": merged, "status": {"lastOperation": last}}


@attrs.define
class Held:
    """A controller whose worker is inside its first reconcile, until its release."""

    controller: Controller
    store: Store
    runs: list
    inside: threading.Event
    go: threading.Event

    def watch(self, seen, **how):
        event = self.store.observe(seen, **how)
        if event is not None:
            self.controller.on_event(event)

    def answer(self, written):
        _, event = self.store.written(written)
        self.controller.on_event(event)

    def runs_after_release(self, wanted):
        self.go.set()
        deadline = threading.Event()
        for _ in range(3000):
            if len(self.runs) >= wanted and not deadline.wait(0.05):
                break
            deadline.wait(0.02)
        deadline.wait(0.1)
        return len(self.runs)


@pytest.fixture
def held():
    store = Store(RESOURCE, header)
    runs = []
    inside = threading.Event()
    go = threading.Event()

    def reconcile(request, _failures):
        runs.append(request)
        inside.set()
        go.wait(10)
        return Done()

    bound = Metrics().controller("test", "Test", 1)
    controller = Controller("test", reconcile, operation_requested, store, SystemClock(), bound)
    store.observe(obj(1))
    controller.start(1)
    controller.queue.add(REQUEST)
    assert inside.wait(10)
    yield Held(controller, store, runs, inside, go)
    go.set()
    controller.stop()


ASKED = {"annotations": {OPERATION: "reconcile"}}
GONE = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def test_our_own_write_is_no_reason_to_run_again_whichever_news_comes_first(held):
    held.answer(obj(2))
    held.watch(obj(2))
    held.watch(obj(3, **ASKED))  # the request that this run will take off is somebody else's
    assert held.runs_after_release(2) == 2


def test_the_watch_may_be_faster_than_the_answer(held):
    held.watch(obj(2, finalizers=["f", "ours"]))
    held.answer(obj(2, finalizers=["f", "ours"]))
    assert held.runs_after_release(1) == 1


def test_the_watch_may_be_faster_by_two_versions(held):
    for version in (2, 3):
        held.watch(obj(version, **GONE) if version == 3 else obj(version))
    held.answer(obj(2))
    assert held.runs_after_release(2) == 2


@pytest.mark.parametrize("change", [ASKED, GONE, {"generation": 2}], ids=["asked", "gone", "spec"])
def test_a_change_in_an_answer_runs_again_also_when_a_list_showed_it_first(held, change):
    held.watch(obj(3, **change), relisted=True)
    held.answer(obj(3, **change))
    assert held.runs_after_release(2) == 2


@pytest.mark.parametrize("change", [ASKED, GONE], ids=["asked", "gone"])
def test_a_change_that_the_watch_delivers_late_still_runs_again(held, change):
    held.answer(obj(3, **change))
    held.watch(obj(2, **change))
    held.watch(obj(3, **change))
    assert held.runs_after_release(2) == 2


def test_a_late_echo_of_a_write_of_ours_is_no_reason_to_run_again(held):
    held.watch(obj(2, **ASKED))  # that is one
    assert held.runs_after_release(2) == 2
    held.answer(obj(3, **ASKED))  # the result, then the request taken off
    held.answer(obj(4))
    held.watch(obj(3, **ASKED))
    held.watch(obj(4))
    assert held.runs_after_release(2) == 2


@pytest.mark.parametrize(
    "outcome", [Done(), Again(0), Again(1e12), Failed(cap=0.001)], ids=lambda o: type(o).__name__
)
def test_a_worker_outlives_every_outcome(outcome):
    store = Store(RESOURCE, header)
    runs = []

    def reconcile(request, _failures):
        runs.append(request)
        if len(runs) == 1:
            return outcome
        raise SystemExit

    bound = Metrics().controller("test", "Test", 1)
    controller = Controller("test", reconcile, operation_requested, store, SystemClock(), bound)
    controller.start(2)
    controller.queue.add(REQUEST)
    for name in ("a", "b"):
        controller.queue.add(Request("n", name))
    deadline = threading.Event()
    while len(runs) < 3 and not deadline.wait(0.02):
        pass
    assert controller.working() == 2
    controller.stop()
    assert controller.join(10)
