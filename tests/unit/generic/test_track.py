"""The track of one object: its calls, its budget, its Secrets, and the time at which it ends."""

import logging
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from actuator.errors import CallAbandoned
from generic.kube.headers import Request
from generic.reconciler.budget import Budget
from generic.reconciler.calls import AbandonedCalls, Call
from generic.reconciler.lifecycle import (
    IDLE,
    Calling,
    CleanedUp,
    FinalizerRemoved,
    Finished,
    Recorded,
    Release,
    Released,
    Releasing,
    Removed,
)
from generic.reconciler.operation import Operation
from generic.reconciler.origin import DeletionOrigin
from generic.reconciler.stripping import Stripped
from generic.reconciler.track import Track, Tracks
from generic.serving.metrics import Outcome
from tests.support.cluster.clocks import Hands

REQUEST = Request("shoot", "infra")
OTHER = Request("shoot", "other")
DONE = CleanedUp(Outcome.DELETED, "2026-01-01T00:00:00Z")
REMOVED = Removed(b"{}", Operation.DELETE)
AT = datetime(2026, 1, 1, tzinfo=UTC)


class World:
    """Tracks, with a clock that a test moves and room for `limit` abandoned calls."""

    def __init__(self, budget=90.0, limit=64):
        self.clock = Hands()
        self.abandoned = AbandonedCalls(limit)
        self.tracks = Tracks(self.abandoned, self.clock, budget)

    def track(self, request=REQUEST, uid="uid"):
        return self.tracks.of(request, uid)

    def call(self):
        return Call(Operation.DELETE, SimpleNamespace(), self.clock, lambda: None, 60)


@pytest.fixture
def world():
    return World()


def test_each_object_has_one_track(world):
    first = world.track()
    namesake = world.track(uid="new")
    other = world.track(OTHER)
    assert world.track() is first
    assert world.tracks.named(REQUEST) == (first, namesake)
    assert world.tracks.named(OTHER) == (other,)
    assert world.tracks.named(Request("shoot", "unknown")) == ()
    assert world.tracks.all() == [first, namesake, other]
    assert (namesake.request, namesake.uid, namesake.state) == (REQUEST, "new", IDLE)


def test_an_object_with_an_unfinished_late_cleanup_is_worked_on_first(world):
    track = world.track()
    assert world.tracks.current(REQUEST, "uid") is track
    assert world.tracks.current(REQUEST, None) is None
    assert world.tracks.current(REQUEST, "new") is world.track(uid="new")
    world.tracks.send(track, FinalizerRemoved(REMOVED))
    assert world.tracks.current(REQUEST, "new") is track
    assert world.tracks.current(REQUEST, None) is track


@pytest.mark.parametrize(
    ("intents", "pending"),
    [
        pytest.param([], False, id="idle"),
        pytest.param([Finished(DONE)], True, id="cleaned up"),
        pytest.param([Finished(DONE), Release()], True, id="being released"),
        pytest.param([Finished(DONE), Release(), Released()], False, id="released"),
        pytest.param([FinalizerRemoved(REMOVED)], True, id="removed externally"),
        pytest.param([FinalizerRemoved(REMOVED), Released()], False, id="cleaned up late"),
    ],
)
def test_the_track_of_a_deleted_object_lives_while_its_work_is_unfinished(world, intents, pending):
    track = world.track()
    other = world.track(uid="new")
    world.tracks.settle(track)
    assert track in world.tracks.named(REQUEST), "the object exists"
    world.tracks.delete(track)
    assert world.tracks.named(REQUEST) == (other,)
    for intent in intents:
        world.tracks.send(track, intent)
    world.tracks.settle(track)
    assert track.is_pending is pending
    assert world.tracks.named(REQUEST) == ((other, track) if pending else (other,))


def test_the_last_track_of_a_name_leaves_nothing(world):
    world.tracks.delete(world.track())
    assert world.tracks.all() == []
    assert world.tracks.named(REQUEST) == ()
    gone = Track(REQUEST, "unknown", deleted=True)
    world.tracks.settle(gone)
    assert world.tracks.all() == []


def test_intents_return_the_new_state(world):
    track = world.track()
    assert world.tracks.send(track, Finished(DONE)) == DONE == track.state
    assert track.finished == DONE
    assert track.removed is None
    assert world.tracks.send(track, Release()) == Releasing(DONE)


def test_a_release_ends_the_budget_and_forgets_the_secrets(world):
    track = world.track()
    world.tracks.start_budget(track)
    world.tracks.keep_secret(track, OTHER, "content")
    world.tracks.send(track, Finished(DONE))
    assert track.budget is not None
    assert track.secrets == {OTHER: "content"}
    world.tracks.send(track, Released())
    assert (track.budget, track.secrets) == (None, None)


def test_secrets_are_kept_by_their_name_as_last_read(world):
    track = world.track()
    for request, content in ((REQUEST, "a"), (OTHER, "b"), (REQUEST, "c")):
        world.tracks.keep_secret(track, request, content)
    assert track.secrets == {REQUEST: "c", OTHER: "b"}


def test_the_same_content_of_two_secrets_is_kept_once(world):
    secret = {"metadata": {"name": "s"}, "data": {"a": "YQ=="}}
    assert world.tracks.secrets.share(secret) is world.tracks.secrets.share(dict(secret))


def test_an_object_that_a_restored_etcd_brings_back_begins_anew(world):
    track = world.track()
    world.tracks.begin(track, call := world.call(), 17)
    world.tracks.start_budget(track)
    world.tracks.keep_secret(track, OTHER, "content")
    world.tracks.give_up(track, AT)
    track.deleted = True
    world.tracks.revive(REQUEST, "unknown")
    assert track.gave_up == AT
    world.tracks.revive(REQUEST, "uid")
    assert track.state == Calling(call, IDLE), "its call still runs"
    assert track.deleted is False
    assert (track.budget, track.secrets, track.gave_up, track.called_at) == (None, None, None, 0)


def test_a_call_is_registered_until_it_ends(world):
    track = world.track()
    call = world.call()
    world.tracks.begin(track, call, 17)
    assert (track.call, track.called_at, track.is_pending) == (call, 17, True)
    assert world.tracks.end(track, call)
    assert (track.call, track.called_at, track.is_pending) == (None, 17, False)
    world.tracks.begin(track, world.call())
    assert track.called_at == 17, "a call without a version leaves the last one"
    with pytest.raises(CallAbandoned):
        call.check()


def test_an_abandoned_call_is_kept_until_it_returns(world):
    track = world.track()
    calls = [world.call(), world.call()]
    for call in calls:
        world.tracks.begin(track, call)
        assert world.tracks.abandon(track, call)
        assert not world.tracks.abandon(track, call)
    assert track.abandoned == tuple(calls)
    assert (track.state, track.is_pending, len(world.abandoned)) == (IDLE, True, 2)
    assert not world.tracks.end(track, calls[0])
    assert (track.abandoned, len(world.abandoned)) == ((calls[1],), 1)
    world.tracks.delete(track)
    assert world.tracks.all() == [track]
    world.tracks.end(track, calls[1])
    assert world.tracks.all() == []


def test_a_call_that_returned_is_not_abandoned_and_frees_its_place():
    world = World(limit=1)
    track = world.track()
    call = world.call()
    world.tracks.begin(track, call)
    call.end()
    assert not world.tracks.abandon(track, call)
    assert track.call is call
    assert world.tracks.begin_reserved(world.track(OTHER), world.call()), "the place is free"


def test_only_the_running_call_can_be_abandoned(world):
    track = world.track()
    call = world.call()
    assert not world.tracks.abandon(track, call)
    world.tracks.begin(track, world.call())
    assert not world.tracks.abandon(track, call)
    assert len(world.abandoned) == 0


def test_a_call_with_a_reserved_place_is_the_running_one():
    world = World(limit=1)
    track = world.track()
    call = world.call()
    assert world.tracks.begin_reserved(track, call)
    assert track.call is call
    other = world.track(OTHER)
    assert not world.tracks.begin_reserved(other, world.call())
    assert other.call is None


def test_the_budget_of_a_force_deletion_starts_once(world):
    track = world.track()
    world.clock.seconds = 10
    assert world.tracks.start_budget(track) == (Budget(10, 100), True)
    world.clock.seconds = 20
    assert world.tracks.start_budget(track) == (Budget(10, 100), False)
    remaining = [track.budget.remaining(now) for now in (10, 99, 100, 200)]
    assert remaining == [90, 1, 0, 0]


def test_force_deletions_without_a_limit_have_an_infinite_budget():
    world = World(budget=None)
    budget, _ = world.tracks.start_budget(world.track())
    assert budget.until == float("inf")


def test_the_end_of_a_budget_is_noted_once(world):
    track = world.track()
    assert not world.tracks.end_budget(track)
    world.tracks.start_budget(track)
    assert world.tracks.end_budget(track)
    assert track.budget == Budget(0, 90, over=True)
    assert not world.tracks.end_budget(track)
    world.tracks.delete(track)
    assert track.budget is None


@pytest.mark.parametrize(
    ("texts", "expected", "last"),
    [
        ([], [], ""),
        (["no"], [("no", 1)], "no"),
        (["no", "no"], [("no", 2)], "no"),
        (["a", "b", "b", "a"], [("a", 1), ("b", 2), ("a", 1)], "a"),
        ([*"abcdefg"], [(text, 1) for text in "cdefg"], "g"),
    ],
)
def test_a_failed_force_deletion_is_noted_in_its_budget(world, texts, expected, last):
    track = world.track()
    without = world.track(OTHER)
    world.tracks.start_budget(track)
    for text in texts:
        for noted in (track, without):
            world.tracks.note_force_deletion(noted, lambda b, text=text: b.failed(text, "ERR_X"))
    assert [(error.text, error.count) for error in track.budget.errors] == expected
    assert {error.codes for error in track.budget.errors} <= {("ERR_X",)}
    assert (track.budget.failed_attempts, track.budget.last_error) == (len(texts), last)
    assert without.budget is None


def test_a_budget_keeps_the_first_stripped_finalizers_and_their_number():
    budget = Budget(0, 90)
    for number in range(1000):
        item = Stripped(resource="machines", namespace="n", name=f"m{number}", finalizer="f")
        budget = budget.with_stripped(item)
    assert budget.stripped_count == 1000
    assert [item.name for item in budget.stripped] == [f"m{number}" for number in range(100)]


def test_the_text_of_an_error_is_bounded():
    budget = Budget(0, 90).failed("ä" * 10_000)
    assert len(budget.last_error.encode()) <= 1000


def test_notes_are_kept_and_taken_back(world):
    track = world.track()
    assert (track.gave_up, track.loses_fields) == (None, False)
    world.tracks.give_up(track, AT)
    world.tracks.note_lost_fields(track, loses_fields=True)
    world.tracks.keep_origin(track, DeletionOrigin(shoot="web"))
    assert (track.gave_up, track.loses_fields) == (AT, True)
    assert track.origin == DeletionOrigin(shoot="web")
    world.tracks.give_up(track, None)
    world.tracks.note_lost_fields(track, loses_fields=False)
    assert (track.gave_up, track.loses_fields) == (None, False)


@pytest.mark.an_impossible_transition
def test_the_log_of_an_impossible_intent_names_object_and_state(world, caplog):
    track = world.track()
    world.tracks.send(track, Finished(DONE))
    world.tracks.send(track, Recorded(()))
    [record] = caplog.records
    assert (record.levelno, record.getMessage()) == (logging.ERROR, "impossible transition")
    assert record.fields == {
        "object": "shoot/infra",
        "uid": "uid",
        "error": "Recorded is impossible in CleanedUp",
    }
