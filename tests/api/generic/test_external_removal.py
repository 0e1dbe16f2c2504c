"""Our finalizer is removed externally during cleanup: noticed, recorded, cleaned up late."""

import threading
import time
from typing import ClassVar

import pytest

from actuator import ActuatorError, ExternalResource
from actuator.codec import decode
from actuator.errors import NotFound
from generic.kube.delegating import DelegatingClient
from generic.kube.documents import Document
from generic.kube.store import Store
from generic.reconciler.orphans import ORPHANS, SHOOT_LABEL, Orphan
from tests.support.cluster.harness import FINALIZER, Script, eventually
from tests.support.objects.builders import infrastructure

FOREIGN = "example.org/foreign"


class Bucket(Script):
    """One thing outside for each object; deleting it may fail."""

    def external_resources(self, obj):
        yield ExternalResource(type="Bucket", id=f"{obj.metadata.namespace}-{obj.metadata.name}")


def refuses(*_args):
    raise ActuatorError("the cloud says no")


def orphans(seed):
    found = seed.client.list(ORPHANS, label_selector=f"{SHOOT_LABEL}={seed.namespace}")
    return [decode(Orphan, raw) for raw in found]


def states(seed):
    return [str(orphan.state) for orphan in orphans(seed)]


def removed_externally(manager):
    return manager.metrics.total("actuator_finalizers_removed_externally_total", "kind")[
        "Infrastructure"
    ]


def final(manager):
    counted = manager.metrics.total("actuator_deletions_total", "outcome")
    return sum(counted[outcome] for outcome in ("deleted", "force_deleted", "orphaned"))


def succeeds_at_third_attempt(manager):
    """A deletion that is refused until the finalizer was removed externally, and twice more.

    The attempts at late cleanup are limited, so the test must not wait before it repairs it.
    """
    late = [True, True]

    def delete(*_args):
        if not removed_externally(manager) or (late and late.pop()):
            refuses()

    return delete


def strip(seed, *left):
    seed.patch({"metadata": {"finalizers": list(left) or None}})


@pytest.fixture
def stuck(seed, start):
    """An object that cannot be deleted; its actuator and manager."""
    actuator = Bucket(delete=refuses)
    manager = start(actuator)
    seed.create(infrastructure(seed.namespace, seed.namespace, finalizers=[FOREIGN]))
    eventually(seed.is_ready)
    seed.delete()
    eventually(lambda: seed.last_operation() == ("Delete", "Error"))
    return actuator, manager


def test_a_removal_is_counted_reported_and_recorded(seed, stuck):
    _, manager = stuck
    strip(seed)
    eventually(lambda: removed_externally(manager) == 1)
    (orphan,) = eventually(lambda: orphans(seed))
    assert (orphan.spec.id, orphan.spec.reason) == (
        f"{seed.namespace}-infra",
        "FinalizerRemovedExternally",
    )
    eventually(lambda: seed.events("FinalizerRemovedExternally"))
    assert final(manager) == 0
    assert orphan.is_open


def test_late_cleanup_is_retried_and_the_record_then_has_the_state_gone(seed, stuck):
    actuator, manager = stuck
    actuator.on["delete"] = succeeds_at_third_attempt(manager)
    strip(seed)
    eventually(lambda: removed_externally(manager) == 1)
    eventually(lambda: states(seed) == ["Gone"])
    assert actuator.operations()[-1] == "delete"
    assert removed_externally(manager) == 1


def test_it_is_noticed_also_where_others_still_hold_the_object(seed, stuck):
    actuator, manager = stuck
    actuator.on["delete"] = succeeds_at_third_attempt(manager)
    strip(seed, FOREIGN)
    eventually(lambda: removed_externally(manager) == 1)
    eventually(lambda: states(seed) == ["Gone"])
    assert seed.get()["metadata"]["finalizers"] == [FOREIGN]
    strip(seed)
    eventually(seed.is_gone)
    assert removed_externally(manager) == 1


def test_a_new_object_of_the_same_name_is_not_deleted(seed, stuck):
    actuator, manager = stuck
    strip(seed)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(lambda: removed_externally(manager) == 1)
    eventually(seed.is_ready)
    before = actuator.operations().count("delete")
    with pytest.raises(AssertionError):
        eventually(lambda: actuator.operations().count("delete") > before, seconds=2)
    assert states(seed) == ["Unverified"]


def test_it_is_noticed_by_the_answer_to_an_error_that_could_not_be_written(seed, start):
    """Stripped while the actuator fails: the watch tells of it after our own request did."""

    def strip_and_fail(*_args):
        if removed_externally(manager):
            return
        strip(seed)
        raise ActuatorError("and then it failed")

    actuator = Bucket(delete=strip_and_fail)
    manager = start(actuator)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    seed.delete()
    eventually(lambda: removed_externally(manager) == 1)
    eventually(lambda: states(seed) == ["Gone"])


class Denying(DelegatingClient):
    """Answers the patches of some objects as if they did not exist."""

    denied: ClassVar[set[str]] = set()

    def patch(self, resource, name, namespace, patch, **named):
        if resource.plural == "infrastructures" and name in self.denied:
            raise NotFound(404, "not found", about=f"{resource}/{name}")
        return super().patch(resource, name, namespace, patch, **named)


def test_an_answer_does_not_prove_the_deletion_of_an_object_without_deletion_timestamp(
    seed, start, monkeypatch
):
    """As after a restore of etcd: only the watch knows whether it was deleted."""
    monkeypatch.setattr(Denying, "denied", set())
    actuator = Bucket()
    manager = start(actuator, intercept=Denying)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    Denying.denied.add("infra")
    before = actuator.operations().count("reconcile")
    seed.patch({"spec": {"region": "eu-2"}})
    seed.ask("reconcile")
    eventually(lambda: actuator.operations().count("reconcile") > before)
    time.sleep(1)
    assert "delete" not in actuator.operations(), "its resources are in use"
    assert removed_externally(manager) == 0
    assert orphans(seed) == []
    Denying.denied.clear()
    seed.ask("reconcile")
    eventually(lambda: seed.status()["observedGeneration"] == 2)


def test_a_release_of_ours_does_not_count_as_external(seed, start):
    manager = start(Bucket())
    for number in range(5):
        seed.create(infrastructure(seed.namespace, seed.namespace, name=f"n{number}"))
    eventually(lambda: all(seed.is_ready(f"n{number}") for number in range(5)))
    for number in range(5):
        seed.delete(f"n{number}")
    eventually(lambda: all(seed.is_gone(f"n{number}") for number in range(5)))
    eventually(lambda: final(manager) == 5)
    assert removed_externally(manager) == 0
    assert orphans(seed) == []


@pytest.mark.parametrize("finalizers", [[], [FOREIGN]], ids=["deleted", "held by others"])
def test_a_release_of_ours_does_not_count_as_external_if_its_event_overtakes_the_answer(
    seed, start, monkeypatch, finalizers
):
    """The informer's thread has the event before the answer, and hands it on after the release."""
    manager = start(Bucket())
    observe = Store.observe
    observe_deleted = Store.observe_deleted
    written = Store.written
    watched = threading.Event()

    def released(obj, *, deleted=False):
        fields = Document.of(obj).fields
        meta = fields["metadata"]
        is_ours = fields["kind"] == "Infrastructure" and meta["namespace"] == seed.namespace
        is_held = "deletionTimestamp" not in meta or FINALIZER in (meta.get("finalizers") or [])
        return is_ours and (deleted or not is_held)

    def after_the_release(event):
        watched.set()
        eventually(lambda: final(manager) == 1)
        return event

    def from_watch(real):
        def take(store, obj, **more):
            event = real(store, obj, **more)
            last = released(obj, deleted=real is observe_deleted)  # other tests delete theirs
            return after_the_release(event) if last else event

        return take

    def late_answer(store, obj):
        if released(obj):
            assert watched.wait(20)
        return written(store, obj)

    seed.create(infrastructure(seed.namespace, seed.namespace, finalizers=finalizers))
    eventually(seed.is_ready)
    monkeypatch.setattr(Store, "observe", from_watch(observe))
    monkeypatch.setattr(Store, "observe_deleted", from_watch(observe_deleted))
    monkeypatch.setattr(Store, "written", late_answer)
    seed.delete()
    eventually(lambda: final(manager) == 1)
    strip(seed) if finalizers else None
    eventually(seed.is_gone)
    with pytest.raises(AssertionError):
        eventually(lambda: removed_externally(manager) or orphans(seed), seconds=2)


def test_a_cleanup_that_was_just_finishing_is_a_deletion(seed, start, gate):
    actuator = Bucket(delete=lambda *_args: gate.wait(200))
    manager = start(actuator)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    seed.delete()
    eventually(lambda: "delete" in actuator.operations())
    strip(seed)
    gate.set()
    eventually(lambda: final(manager) + removed_externally(manager) == 1)
    assert final(manager) == 1


def test_a_finalizer_removed_from_a_living_object_is_added_again(seed, start):
    manager = start(Bucket())
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    strip(seed)
    seed.ask("reconcile")
    eventually(lambda: FINALIZER in (seed.get()["metadata"].get("finalizers") or []))
    assert removed_externally(manager) == 0
