"""etcd went back: this process forgets its memory of an object exactly then."""

from unittest.mock import Mock

import pytest

from actuator.cluster import Verdict
from actuator.interface import resource_of
from actuator.v1alpha1 import Infrastructure
from generic.kube.clock import SystemClock
from generic.kube.headers import Event, EventType, Request, header
from generic.kube.store import Store
from generic.reconciler.calls import AbandonedCalls
from generic.reconciler.deletion.watchdog import DeletionWatchdog
from generic.reconciler.lifecycle import (
    IDLE,
    CleanedUp,
    FinalizerRemoved,
    Finished,
    Release,
    Removed,
)
from generic.reconciler.operation import Operation
from generic.reconciler.track import Tracks
from generic.serving.metrics import Outcome
from tests.support.objects.builders import infrastructure

KIND = Infrastructure.KIND
REQUEST = Request("shoot", "infra")
SINCE = "2026-01-01T00:00:00Z"


def state(version, *, deleting=False, finalizers=(KIND.finalizer,)):
    obj = infrastructure("shoot", "t", finalizers=list(finalizers))
    obj["metadata"] |= {"uid": "uid", "resourceVersion": str(version)}
    if deleting:
        obj["metadata"]["deletionTimestamp"] = SINCE
    return header(obj)


def seen(old, new, *, relisted=True, own=False, late=False):
    kind = EventType.ADDED if old is None else EventType.MODIFIED
    return Event(EventType.DELETED if new is None else kind, REQUEST, old, new, own, late, relisted)


BACK = [
    pytest.param(seen(None, state(5)), id="it exists again"),
    pytest.param(seen(state(9), state(5)), id="its version is lower"),
    pytest.param(seen(state(9, deleting=True), state(12)), id="its deletion never was"),
]
ONWARD = [
    pytest.param(seen(state(5), state(9)), id="a later version"),
    pytest.param(seen(state(5), state(9, deleting=True)), id="a deletion"),
    pytest.param(seen(state(9), state(5), relisted=False, late=True), id="a late event of a watch"),
    pytest.param(seen(None, state(5), relisted=False), id="first seen by a watch"),
    pytest.param(seen(None, state(5), relisted=False, own=True), id="an answer to our write"),
    pytest.param(seen(state(5), None), id="it does not exist any more"),
]


@pytest.fixture
def watchdog():
    tracks = Tracks(AbandonedCalls(), SystemClock(), None)
    store = Store(resource_of(KIND), header)
    return DeletionWatchdog(KIND, store, tracks, lambda *_: Verdict(), SystemClock())


ENDS = {
    "cleaned up": Finished(CleanedUp(Outcome.DELETED, SINCE)),
    "removed": FinalizerRemoved(Removed(b"{}", Operation.DELETE)),
    "releasing": Release(),
}


@pytest.fixture(params=ENDS)
def track(request, watchdog):
    """An object whose end was handled, and whose track is not dropped yet."""
    tracks = watchdog.tracks
    call = Mock()
    track = tracks.of(REQUEST, "uid")
    tracks.begin(track, call, 9)
    tracks.abandon(track, call)  # so that the track stays
    tracks.send(track, ENDS[request.param])
    tracks.start_budget(track)
    tracks.delete(track)
    return track


@pytest.mark.parametrize("event", BACK)
def test_the_end_of_an_object_is_forgotten_when_etcd_went_back(watchdog, track, event):
    watchdog.observe(event)
    assert event.went_back
    assert (track.state, track.deleted, track.called_at, track.budget) == (IDLE, False, 0, None)


@pytest.mark.parametrize("event", ONWARD)
def test_nothing_is_forgotten_in_the_usual_course(watchdog, track, event):
    before = track.state
    watchdog.observe(event)
    assert not event.went_back
    assert track.deleted
    assert track.state is before


@pytest.mark.parametrize(
    ("deleting", "relisted", "operation"),
    [
        (False, True, None),
        (False, False, Operation.DELETE),
        (True, True, Operation.DELETE),
        (True, False, Operation.DELETE),
    ],
)
def test_an_object_that_a_list_lacks_is_cleaned_up_only_if_it_was_being_deleted(
    watchdog, deleting, relisted, operation
):
    """Its resources may be in use: the backup of etcd may be older than the object."""
    last = state(9, deleting=deleting)
    event = Event(EventType.DELETED, REQUEST, last, None, relisted=relisted, last=b"{}")
    assert watchdog.observe(event)
    [track] = watchdog.tracks.all()
    assert track.removed is not None
    assert track.removed.operation is operation
