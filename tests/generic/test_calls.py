"""Calls that end, are cancelled, or are set aside; and the timers that do it."""

import logging
import threading

import pytest

from actuator.errors import DeadlineExceeded, LeaseLost, SetAside
from generic.kube.clock import SystemClock
from generic.kube.store import Request
from generic.kube.timers import Timers
from generic.reconciler.calls import Aside, Call, Calls, Services
from generic.reconciler.operation import Operation

REQUEST = Request("n", "o")
CLOCK = SystemClock()


def call(seconds=60.0, gate=lambda: None):
    log = logging.LoggerAdapter(logging.getLogger("test"))
    made = Call(Operation.DELETE, "uid", object(), log, CLOCK, seconds, gate)
    made.serve(Services(lambda *_: None, lambda _: None, lambda *_: {}, lambda _: None))
    return made


USES = [
    pytest.param(lambda c: c.check(), id="check"),
    pytest.param(lambda c: c.event("R", "m"), id="event"),
    pytest.param(lambda c: c.save(None), id="save"),
    pytest.param(lambda c: c.secret("s", "n"), id="secret"),
    pytest.param(lambda c: c.delete_seed_objects([]), id="delete_seed_objects"),
    pytest.param(lambda c: c.client.get(None, "n"), id="client.get"),
    pytest.param(lambda c: c.client.list(None), id="client.list"),
    pytest.param(lambda c: c.client.create(None, {}), id="client.create"),
    pytest.param(lambda c: c.client.apply(None, {}), id="client.apply"),
    pytest.param(lambda c: c.client.patch(None, "n", "", {}), id="client.patch"),
    pytest.param(lambda c: c.client.delete(None, "n"), id="client.delete"),
]


@pytest.mark.parametrize("use", USES)
def test_every_use_of_a_cancelled_call_raises(use):
    cancelled = call()
    cancelled.cancel("enough")
    with pytest.raises(SetAside, match="enough"):
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


def test_a_call_ends_once_for_its_worker_or_for_everybody_else():
    for first, second in (("finish", "set_aside"), ("set_aside", "finish")):
        calls, made = Calls(Aside()), call()
        calls.start(REQUEST, made)
        assert getattr(calls, first)(REQUEST, made)
        assert not getattr(calls, second)(REQUEST, made)
        assert calls.running(REQUEST) is None


def test_a_call_that_was_set_aside_does_not_end_the_one_after_it():
    aside = Aside()
    calls, hung, fresh = Calls(aside), call(), call()
    calls.start(REQUEST, hung)
    assert calls.set_aside(REQUEST, hung)
    calls.start(REQUEST, fresh)
    assert len(aside) == 1
    assert not calls.finish(REQUEST, hung)
    assert calls.running(REQUEST) is fresh
    assert len(aside) == 0
    assert calls.finish(REQUEST, fresh)


def test_a_call_that_hangs_is_known_by_the_object_it_was_for():
    calls, hung = Calls(Aside()), call()
    calls.start(REQUEST, hung)
    assert not calls.hangs(REQUEST, "uid")
    calls.set_aside(REQUEST, hung)
    assert calls.hangs(REQUEST, "uid")
    assert not calls.hangs(REQUEST, "another of the same name")
    calls.finish(REQUEST, hung)
    assert not calls.hangs(REQUEST, "uid")


def test_only_so_many_calls_may_hang():
    aside = Aside(limit=2)
    calls = Calls(aside)
    made = [call(), call(), call()]
    for number, one in enumerate(made):
        calls.start(Request("n", str(number)), one)
    done = [calls.set_aside(Request("n", str(number)), one) for number, one in enumerate(made)]
    assert done == [True, True, False]
    assert not calls.start_reserved(REQUEST, call())
    calls.finish(Request("n", "0"), made[0])
    assert calls.set_aside(Request("n", "2"), made[2])


def test_who_reserved_a_place_can_be_set_aside_whatever_else_hangs():
    calls, sure, other = Calls(Aside(limit=1)), call(), call()
    assert calls.start_reserved(REQUEST, sure)
    calls.start(Request("n", "other"), other)
    assert not calls.set_aside(Request("n", "other"), other)
    assert calls.set_aside(REQUEST, sure)


def test_a_call_is_overdue_ten_seconds_after_its_time_or_sooner_if_cancelled():
    calls, late, cancelled = Calls(Aside()), call(seconds=0), call()
    calls.start(REQUEST, late)
    calls.start(Request("n", "cancelled"), cancelled)
    now = CLOCK.monotonic()
    assert calls.overdue(now) == []
    assert calls.overdue(now + 11) == [(REQUEST, late)]
    cancelled.cancel("enough", grace=0)
    assert calls.overdue(now + 1) == [(Request("n", "cancelled"), cancelled)]


def test_who_uses_a_call_that_is_over_is_told_so():
    over = call()
    assert over.end()
    with pytest.raises(SetAside, match="over"):
        over.check()


def test_timers_run_in_order_and_cancelled_ones_do_not():
    timers, done, seen = Timers("test", CLOCK), threading.Event(), []
    timers.call_later(1.0, done.set)
    timers.call_later(0.6, lambda: seen.append("second"))
    timers.call_later(0.3, lambda: seen.append("first"))
    timers.call_later(0.4, lambda: seen.append("never")).cancel()
    timers.call_later(0.35, lambda: 1 / 0)
    assert done.wait(10)
    assert seen == ["first", "second"]
    timers.stop()


def test_cancelling_waits_for_a_timer_that_runs():
    timers, started, finish, seen = Timers("test", CLOCK), threading.Event(), threading.Event(), []

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
