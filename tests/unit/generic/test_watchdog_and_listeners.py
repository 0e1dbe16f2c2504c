"""What must not depend on listeners and predicates: outcomes, and the end of a track."""

from types import SimpleNamespace

import pytest

from actuator.meta import Kind
from actuator.v1alpha1 import Infrastructure
from generic.controller.metrics import Outcome
from generic.kube.clock import SystemClock
from generic.kube.headers import Event, EventType, Request
from generic.manager.wiring import Served
from generic.reconciler.calls import AbandonedCalls
from generic.reconciler.deletion.watchdog import DeletionWatchdog
from generic.reconciler.reporter import Reporter, Sinks
from generic.reconciler.track import CleanedUp, Tracks

KIND: Kind = Infrastructure.KIND
REQUEST = Request("shoot", "infra")


@pytest.fixture
def tracks():
    return Tracks(AbandonedCalls(), SystemClock(), None)


def test_a_listener_that_raises_changes_nothing_and_hides_nothing(tracks, caplog):
    counted, received = [], []

    def broken(ended):
        raise ValueError("of a listener")

    metrics = SimpleNamespace(deletion=counted.append)
    sinks = Sinks(events=None, metrics=metrics, listeners=[broken, received.append])
    Reporter(KIND, tracks.of(REQUEST, "uid"), sinks).deletion(Outcome.FAILED)
    assert counted == [Outcome.FAILED]
    assert [(one.uid, one.outcome) for one in received] == [("uid", Outcome.FAILED)]
    assert "outcome listener failed" in caplog.text


@pytest.mark.parametrize("is_pending", [False, True])
def test_a_track_ends_with_its_object_also_where_predicates_no_longer_match(tracks, is_pending):
    track = tracks.of(REQUEST, "uid")
    track.cleaned_up = CleanedUp(Outcome.DELETED, None) if is_pending else None
    track.secrets = {REQUEST: None}
    watchdog = DeletionWatchdog(KIND, None, tracks, None, SystemClock())
    controller = SimpleNamespace(
        started=True, on_event=lambda _: None, serves=lambda _request, _header: False
    )
    last = SimpleNamespace(uid="uid")
    Served(controller, watchdog).on_event(Event(EventType.DELETED, REQUEST, last, None))
    assert tracks.all() == ([track] if is_pending else [])
