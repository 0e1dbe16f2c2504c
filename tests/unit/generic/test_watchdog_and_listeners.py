"""Outcomes and the end of a track do not depend on listeners and predicates."""

from types import SimpleNamespace
from typing import Any

import pytest

from actuator.meta import Kind
from actuator.v1alpha1 import Infrastructure
from generic.kube.clock import SystemClock
from generic.kube.headers import Event, EventType, Request
from generic.manager.routing import Served
from generic.reconciler.calls import AbandonedCalls
from generic.reconciler.deletion.watchdog import DeletionWatchdog
from generic.reconciler.lifecycle import CleanedUp, Finished
from generic.reconciler.origin import DeletionOrigin
from generic.reconciler.reporter import Reporter, Sinks
from generic.reconciler.track import Tracks
from generic.serving.metrics import Outcome
from tests.support.objects.stand_ins import UNUSED

KIND: Kind = Infrastructure.KIND
REQUEST = Request("shoot", "infra")


@pytest.fixture
def tracks():
    return Tracks(AbandonedCalls(), SystemClock(), None)


def test_a_listener_that_raises_changes_nothing_and_hides_nothing(tracks, caplog):
    counted: list[Outcome] = []
    received: list[Any] = []

    def broken(ended):
        raise ValueError("of a listener")

    metrics: Any = SimpleNamespace(deletion=counted.append)
    sinks = Sinks(events=UNUSED, metrics=metrics, listeners=[broken, received.append])
    origin = DeletionOrigin(shoot="web")
    track = tracks.of(REQUEST, "uid")
    Reporter(KIND, track, sinks, find_origin=lambda: origin).deletion(Outcome.FAILED)
    assert counted == [Outcome.FAILED]
    assert received[0].origin == origin
    assert [(item.uid, item.outcome) for item in received] == [("uid", Outcome.FAILED)]
    assert "outcome listener failed" in caplog.text


@pytest.mark.parametrize("is_pending", [False, True])
def test_a_track_ends_with_its_object_also_where_predicates_no_longer_match(tracks, is_pending):
    track = tracks.of(REQUEST, "uid")
    if is_pending:
        tracks.send(track, Finished(CleanedUp(Outcome.DELETED, None)))
    tracks.keep_secret(track, REQUEST, None)
    watchdog = DeletionWatchdog(KIND, UNUSED, tracks, UNUSED, SystemClock())
    controller: Any = SimpleNamespace(
        started=True, on_event=lambda _: None, serves=lambda _request, _header: False
    )
    last: Any = SimpleNamespace(uid="uid")
    Served(controller, watchdog).on_event(Event(EventType.DELETED, REQUEST, last, None))
    assert tracks.all() == ([track] if is_pending else [])
