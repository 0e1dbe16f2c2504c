"""The work queue: one key once, never two workers on one, nothing lost. Under a hand-set clock."""

from datetime import UTC, datetime

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from generic.controller.metrics import Metrics
from generic.controller.workqueue import Backoff, ShutDown, WorkQueue

KEYS = st.sampled_from("abcd")


class HandClock:
    """A clock that moves only when it is told to."""

    def __init__(self):
        self.seconds = 0.0

    def now(self):
        return datetime.fromtimestamp(self.seconds, UTC)

    def monotonic(self):
        return self.seconds


def queue_of(clock=None, **backoff):
    bound = Metrics().controller("test", "Test", 1)
    return WorkQueue(clock or HandClock(), bound.queue, Backoff(**backoff) if backoff else None)


class QueueLaws(RuleBasedStateMachine):
    """Whatever is done in whatever order, what was added is handed out, once at a time."""

    def __init__(self):
        super().__init__()
        self.clock = HandClock()
        self.queue = queue_of(self.clock)
        self.owed = set()  # added and not handed out since
        self.due = {}
        self.active = set()

    @rule(key=KEYS, urgent=st.booleans())
    def add(self, key, urgent):
        self.queue.add(key, urgent=urgent)
        self.owed.add(key)
        if key not in self.active:
            self.due.pop(key, None)

    @rule(key=KEYS, seconds=st.floats(0.1, 5))
    def add_after(self, key, seconds):
        self.queue.add_after(key, seconds)
        when = self.clock.seconds + seconds
        self.due[key] = min(when, self.due.get(key, when))

    @rule(seconds=st.floats(0.1, 5))
    def time_passes(self, seconds):
        self.clock.seconds += seconds

    def ready(self):
        now = self.clock.seconds
        late = {key for key, when in self.due.items() if when <= now}
        return (self.owed | late) - self.active

    @precondition(lambda self: self.ready())
    @rule()
    def take(self):
        ready = self.ready()
        key = self.queue.get()
        assert key in ready
        assert key not in self.active, "two workers on one key"
        self.active.add(key)
        self.owed.discard(key)
        self.due.pop(key, None)

    @precondition(lambda self: self.active)
    @rule(data=st.data())
    def finish(self, data):
        key = data.draw(st.sampled_from(sorted(self.active)))
        now = self.clock.seconds
        if self.due.get(key, now + 1) <= now:
            self.owed.add(key)
            self.due.pop(key)
        self.queue.done(key)
        self.active.discard(key)

    @invariant()
    def depth_counts_no_key_twice(self):
        assert self.queue.depth() <= 4

    def teardown(self):
        self.clock.seconds += 100
        for key in sorted(self.active):
            self.queue.done(key)
        left = self.owed | set(self.due)
        handed_out = set()
        while left - handed_out:
            key = self.queue.get()
            self.queue.done(key)
            handed_out.add(key)


TestQueueLaws = QueueLaws.TestCase
TestQueueLaws.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)


def test_a_key_added_while_a_worker_has_it_comes_again_after_done():
    queue = queue_of()
    queue.add("a")
    assert queue.get() == "a"
    queue.add("a")
    assert queue.depth() == 0
    queue.done("a")
    assert queue.get() == "a"


def test_urgent_keys_come_first_and_lose_their_backoff():
    clock = HandClock()
    queue = queue_of(clock)
    queue.add_rate_limited("late")
    for key in ("a", "b", "late"):
        queue.add(key)
    queue.add("late", urgent=True)
    assert queue.failures("late") == 0
    assert [queue.get() for _ in range(3)] == ["late", "a", "b"]


def test_an_urgent_add_while_a_worker_has_the_key_is_urgent_afterwards():
    queue = queue_of()
    queue.add("a")
    queue.get()
    queue.add("b")
    queue.add("a", urgent=True)
    queue.done("a")
    assert queue.get() == "a"


def test_of_two_delays_the_earlier_wins_and_an_add_beats_both():
    clock = HandClock()
    queue = queue_of(clock)
    queue.add_after("a", 10)
    queue.add_after("a", 1)
    queue.add_after("a", 5)
    clock.seconds = 1
    assert queue.get() == "a"
    queue.done("a")
    clock.seconds = 20
    queue.add("b")
    assert queue.get() == "b"
    assert queue.depth() == 0, "the other delays are gone"


@pytest.mark.parametrize("failures", [1, 2, 5, 18, 30, 5000])
def test_backoff_doubles_up_to_the_cap_and_is_never_negative(failures):
    backoff = Backoff(first=0.005, cap=1000, jitter=0.2)
    longest = min(0.005 * 2 ** min(failures - 1, 64), 1000)
    for _ in range(50):
        assert longest * 0.8 <= backoff.delay(failures) <= longest
        assert backoff.delay(failures, cap=60) <= 60


def test_a_shut_down_queue_hands_out_nothing():
    queue = queue_of()
    queue.add("a")
    queue.shut_down()
    with pytest.raises(ShutDown):
        queue.get()
