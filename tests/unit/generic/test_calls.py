"""Calls that end, are cancelled, or are abandoned; and the timers that do it."""

import threading
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from actuator import Resource
from actuator.errors import CallAbandoned, DeadlineExceeded, LeaseLost, Unavailable
from actuator.v1alpha1 import Infrastructure
from generic.kube.client import connect
from generic.kube.clock import SystemClock
from generic.kube.headers import Request
from generic.kube.timers import Timer, Timers
from generic.reconciler.calls import AbandonedCalls, Call, FencedClient, ShootClient
from generic.reconciler.invoker import ActuatorCall
from generic.reconciler.operation import Operation
from generic.reconciler.track import Tracks
from tests.support.cluster.clocks import Hands
from tests.support.cluster.fault_proxy import kubeconfig
from tests.support.objects.stand_ins import UNUSED

REQUEST = Request("n", "o")
CLOCK = SystemClock()
NAMESPACES = Resource("v1", "namespaces", namespaced=False)


def call(seconds=60.0, gate=lambda: None, save=lambda: None):
    """The Context of a call that reports nothing."""
    invoker: Any = SimpleNamespace(client=object(), clock=CLOCK, gate=gate, name="x")
    return ActuatorCall(invoker, Operation.DELETE, UNUSED, save, seconds, None)


def tracks_of(limit=64):
    abandoned = AbandonedCalls(limit)
    return Tracks(abandoned, CLOCK, None), abandoned


USES = [
    pytest.param(lambda c: c.check(), id="check"),
    pytest.param(lambda c: c.event("R", "m"), id="event"),
    pytest.param(lambda c: c.save(None), id="save"),
    pytest.param(lambda c: c.secret("s", "n"), id="secret"),
    pytest.param(lambda c: c.delete_seed_objects([]), id="delete_seed_objects"),
    pytest.param(lambda c: c.shoot, id="shoot"),
    pytest.param(lambda c: c.garden, id="garden"),
    pytest.param(lambda c: c.client.get(None, "n"), id="client.get"),
    pytest.param(lambda c: c.client.list(None), id="client.list"),
    pytest.param(lambda c: c.client.create(None, {}), id="client.create"),
    pytest.param(lambda c: c.client.apply(None, {}), id="client.apply"),
    pytest.param(lambda c: c.client.patch(None, "n", "", {}), id="client.patch"),
    pytest.param(lambda c: c.client.delete(None, "n"), id="client.delete"),
]


def test_a_call_that_is_cancelled_during_a_save_makes_no_next_step():
    """An author requests the resource whose id was saved without a check of their own."""
    saving: ActuatorCall = call(save=lambda: saving.cancel("enough"))
    with pytest.raises(CallAbandoned, match="enough"):
        saving.save(Infrastructure())


@pytest.mark.parametrize("use", USES)
def test_every_use_of_a_cancelled_call_raises(use):
    cancelled = call()
    cancelled.cancel("enough")
    with pytest.raises(CallAbandoned, match="enough"):
        use(cancelled)


@pytest.mark.parametrize("use", USES)
def test_every_use_after_the_deadline_raises(use):
    with pytest.raises(DeadlineExceeded):
        use(call(seconds=-1))


@pytest.mark.parametrize("use", USES)
def test_every_use_without_the_lease_raises(use):
    def gate():
        raise LeaseLost("another leads")

    with pytest.raises(LeaseLost):
        use(call(gate=gate))


@pytest.mark.parametrize("method", ["get", "delete"])
def test_clients_of_other_servers_raise_once_the_call_is_cancelled(tmp_path, method):
    client = connect(kubeconfig(tmp_path / "k", "http://127.0.0.1:1"))
    used = call()
    clients = [
        ShootClient(client, used, "shoot--a--b", threading.Semaphore()),
        FencedClient(used.limited(client), used.check),
        used.limited(client),
    ]
    for item in clients:
        with pytest.raises(Unavailable):
            getattr(item, method)(NAMESPACES, "a")
    used.cancel("enough")
    for element in clients:
        with pytest.raises(CallAbandoned, match="enough"):
            getattr(element, method)(NAMESPACES, "a")


def test_a_call_ends_once_by_its_worker_or_by_abandonment():
    for first, second in (("end", "abandon"), ("abandon", "end")):
        tracks = tracks_of()[0]
        made = call()
        track = tracks.of(REQUEST, "uid")
        tracks.begin(track, made)
        assert getattr(tracks, first)(track, made)
        assert not getattr(tracks, second)(track, made)
        assert track.call is None


def test_an_abandoned_call_does_not_end_the_one_after_it():
    tracks, abandoned = tracks_of()
    track = tracks.of(REQUEST, "uid")
    hung = call()
    fresh = call()
    tracks.begin(track, hung)
    assert tracks.abandon(track, hung)
    tracks.begin(track, fresh)
    assert len(abandoned) == 1
    assert not tracks.end(track, hung)
    assert track.call is fresh
    assert len(abandoned) == 0
    assert tracks.end(track, fresh)


def test_only_so_many_calls_may_be_abandoned():
    tracks, _ = tracks_of(limit=2)
    made = [(tracks.of(Request("n", str(number)), "uid"), call()) for number in range(3)]
    for track, item in made:
        tracks.begin(track, item)
    assert [tracks.abandon(*item) for item in made] == [True, True, False]
    assert not tracks.begin_reserved(tracks.of(REQUEST, "uid"), call())
    tracks.end(*made[0])
    assert tracks.abandon(*made[2])


def test_a_call_with_a_reserved_place_can_be_abandoned_whatever_else_hangs():
    tracks, _ = tracks_of(limit=1)
    sure = call()
    other = call()
    mine = tracks.of(REQUEST, "uid")
    its = tracks.of(Request("n", "other"), "uid")
    assert tracks.begin_reserved(mine, sure)
    tracks.begin(its, other)
    assert not tracks.abandon(its, other)
    assert tracks.abandon(mine, sure)


def test_a_call_is_overdue_ten_seconds_after_its_time_or_sooner_if_cancelled():
    late = call(seconds=0)
    cancelled = call()
    now = CLOCK.monotonic()
    assert now + 9 < late.limit < now + 11
    cancelled.cancel("enough", grace=0)
    assert cancelled.limit < now + 1


@pytest.mark.parametrize(
    ("graces", "seconds"),
    [
        pytest.param([None], 10, id="the default"),
        pytest.param([3], 3, id="a shorter time"),
        pytest.param([3, None], 3, id="a second request leaves the earlier limit"),
        pytest.param([None, 3], 3, id="and may bring it forward"),
        pytest.param([100], 70, id="the limit of the call is not put off"),
    ],
)
def test_cancelling_a_call_only_brings_its_limit_forward(graces, seconds):
    clock = Hands()
    made = Call(Operation.DELETE, UNUSED, clock, lambda: None, 60)
    assert made.limit == 70
    for number, grace in enumerate(graces):
        made.cancel(f"reason {number}", grace=grace)
    assert (made.limit, made.cancelled) == (seconds, True)
    with pytest.raises(CallAbandoned, match="reason 0"):
        made.check()


def test_a_track_lives_as_long_as_its_object_and_the_work_on_it():
    tracks = tracks_of()[0]
    hung = call()
    track = tracks.of(REQUEST, "uid")
    tracks.settle(track)
    assert tracks.of(REQUEST, "uid") is track
    tracks.begin(track, hung)
    assert tracks.abandon(track, hung)
    track.deleted = True
    tracks.settle(track)
    assert tracks.named(REQUEST) == (track,)
    assert tracks.of(REQUEST, "another of the same name") is not track
    tracks.end(track, hung)
    assert [item.uid for item in tracks.named(REQUEST)] == ["another of the same name"]


def test_a_call_for_a_deleted_object_keeps_its_track_until_it_returns():
    tracks = tracks_of()[0]
    made = call()
    track = tracks.of(REQUEST, "uid")
    track.deleted = True
    tracks.settle(track)
    assert tracks.all() == []
    tracks.begin(track, made)
    assert tracks.all() == [track]
    tracks.end(track, made)
    assert tracks.all() == []


def test_a_call_that_ended_raises_when_it_is_used():
    over = call()
    assert over.end()
    with pytest.raises(CallAbandoned, match="ended"):
        over.check()


def test_timers_run_in_order_and_cancelled_ones_do_not():
    timers = Timers("test", CLOCK)
    done = threading.Event()
    seen = []
    timers.call_later(1.0, done.set)
    timers.call_later(0.6, lambda: seen.append("second"))
    timers.call_later(0.3, lambda: seen.append("first"))
    timers.call_later(0.4, lambda: seen.append("never")).cancel()
    timers.call_later(0.35, lambda: 1 / 0)
    assert done.wait(10)
    assert seen == ["first", "second"]
    timers.stop()


def test_cancelling_waits_for_a_timer_that_runs():
    timers = Timers("test", CLOCK)
    started = threading.Event()
    finish = threading.Event()
    seen = []

    def action():
        started.set()
        finish.wait(10)
        seen.append("ran")

    timer = timers.call_later(0, action)
    assert started.wait(10)
    threading.Timer(0.1, finish.set).start()
    timer.cancel()
    assert seen == ["ran"]
    timers.stop()


@pytest.mark.parametrize("end", [Timer.cancel, Timer.run])
def test_a_timer_that_is_over_keeps_nothing_of_its_action_alive(end):
    """It stays in the queue until it is due, and each call of an actuator has one."""
    timers = Timers("test", CLOCK)
    used = {"object"}
    known = weakref.ref(used)
    timer = timers.call_later(60, used.clear)
    del used
    end(timer)
    assert known() is None
    timers.stop()
