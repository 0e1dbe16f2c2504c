"""The work queue: one key once, never two workers on one, nothing lost. Under a hand-set clock."""

import threading
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from generic.controller.workqueue import Backoff, ShutDown, WorkQueue
from generic.kube.clock import SystemClock
from generic.serving.metrics import Metrics
from tests.support.objects.stand_ins import StandIn

KEYS = st.sampled_from("abcd")


class HandClock:
    """A clock that a test moves."""

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
    """In any order of actions, each added key is handed out, once at a time."""

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
        handed_out: set[str] = set()
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
def test_backoff_grows_up_to_the_cap_and_is_never_negative(failures):
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


class Counted(StandIn):
    """The metrics of a queue as lists."""

    def __init__(self):
        self.seen = []
        self.gauges: tuple[Any, ...] = ()

    def added(self):
        self.seen.append("added")

    def retried(self):
        self.seen.append("retried")

    def waited(self, seconds):
        self.seen.append(("waited", seconds))

    def worked(self, seconds):
        self.seen.append(("worked", seconds))

    def watch(self, *gauges):
        self.gauges = gauges


def handed_out(queue):
    """The keys that are ready now, in their order; each is done before the next."""
    queue.add("last")
    keys = []
    while "last" not in keys or queue.depth():
        keys.append(queue.get())
        queue.done(keys[-1])
    keys.remove("last")
    return keys


@pytest.mark.parametrize(
    ("adds", "order"),
    [
        pytest.param(["a", "b"], ["a", "b"], id="first in, first out"),
        pytest.param(["a", "b", "b"], ["a", "b"], id="a key that is ready keeps its place"),
        pytest.param(["a", "b", "b!"], ["b", "a"], id="an urgent add moves it"),
        pytest.param(["a", "b!", "a!"], ["b", "a"], id="behind the urgent ones before it"),
        pytest.param(["a", "b!", "b!"], ["b", "a"], id="once"),
        pytest.param(["a", "b!", "c!", "b"], ["b", "c", "a"], id="an add leaves it urgent"),
        pytest.param(["a", "b!", "c!"], ["b", "c", "a"], id="urgent keys are in order too"),
    ],
)
def test_ready_keys_are_handed_out_in_order_after_the_urgent_ones(adds, order):
    queue = queue_of()
    for key in adds:
        queue.add(key.rstrip("!"), urgent=key.endswith("!"))
    assert queue.depth() == len(order)
    assert handed_out(queue) == order


@pytest.mark.parametrize(
    ("adds", "first"),
    [
        pytest.param([False], "other", id="not urgent"),
        pytest.param([True], "a", id="urgent"),
        pytest.param([True, False], "a", id="urgent, and added again"),
        pytest.param([False, True], "a", id="added, and then urgent"),
        pytest.param([False, False], "other", id="added twice"),
    ],
)
def test_a_key_added_while_active_keeps_its_urgency_until_done(adds, first):
    queue = queue_of()
    queue.add("a")
    queue.get()
    queue.add("other")
    for urgent in adds:
        queue.add("a", urgent=urgent)
    queue.done("a")
    assert queue.get() == first
    queue.get()
    queue.done("a")
    assert queue.depth() == 0, "it was added for one more time only"


@pytest.mark.parametrize(
    ("delays", "at", "ready"),
    [
        pytest.param([0], 0, ["a"], id="none"),
        pytest.param([-1], 0, ["a"], id="a negative one"),
        pytest.param([1], 0.9, [], id="not yet due"),
        pytest.param([1], 1, ["a"], id="due"),
        pytest.param([5, 2], 2, ["a"], id="the earlier of two"),
        pytest.param([2, 5], 2, ["a"], id="in each order"),
        pytest.param([2, 2], 2, ["a"], id="twice the same"),
    ],
)
def test_a_delayed_key_is_ready_once_after_its_earliest_delay(delays, at, ready):
    clock = HandClock()
    queue = queue_of(clock)
    for seconds in delays:
        queue.add_after("a", seconds)
    assert queue.depth() == (1 if delays[0] <= 0 else 0)
    clock.seconds = at
    assert sorted(handed_out(queue)) == ready
    clock.seconds = 100
    assert handed_out(queue) == ([] if ready else ["a"])


def test_delayed_keys_that_are_due_follow_the_ready_ones():
    clock = HandClock()
    queue = queue_of(clock)
    queue.add_after("late", 1)
    queue.add("ready")
    clock.seconds = 2
    assert [queue.get(), queue.get()] == ["ready", "late"]


def test_a_key_that_is_ready_gets_no_delay():
    clock = HandClock()
    queue = queue_of(clock)
    queue.add("a")
    queue.add_after("a", 1)
    assert handed_out(queue) == ["a"]
    clock.seconds = 2
    assert handed_out(queue) == []


def test_an_overridden_delay_does_not_delay_the_next_key():
    clock = HandClock()
    queue = queue_of(clock)
    queue.add_after("a", 1)
    queue.add("a")
    queue.done(queue.get())
    queue.add_after("b", 2)
    clock.seconds = 2
    assert queue.get() == "b"
    assert queue.depth() == 0


def test_the_rest_of_two_delays_does_not_delay_the_next_key():
    clock = HandClock()
    queue = queue_of(clock)
    queue.add_after("a", 10)
    queue.add_after("a", 1)
    clock.seconds = 1
    assert queue.get() == "a"
    queue.add_after("b", 19)
    clock.seconds = 20
    assert queue.get() == "b"


def test_the_delay_of_a_key_taken_out_of_its_turn_does_not_delay_the_next_key():
    clock = HandClock()
    queue = queue_of(clock)
    queue.add_after("a", 1)
    queue.add_after("b", 2)
    queue.add("a", urgent=True)
    assert queue.take("a")
    clock.seconds = 2
    assert queue.get() == "b"


def test_a_delay_that_ends_while_a_worker_has_the_key_makes_it_ready_after_done():
    clock = HandClock()
    queue = queue_of(clock)
    queue.add("a")
    queue.get()
    queue.add_after("a", 1)
    clock.seconds = 1
    assert handed_out(queue) == []
    queue.done("a")
    assert handed_out(queue) == ["a"]
    queue.add_after("a", 5)
    clock.seconds = 6
    assert handed_out(queue) == ["a"], "the earlier delay is over"


def test_the_delay_grows_with_each_failure_in_a_row_until_it_is_forgotten():
    clock = HandClock()
    queue = queue_of(clock, first=1.0, cap=100.0, jitter=0.0)
    assert queue.failures("a") == 0
    for failures, seconds in ((1, 1), (2, 2), (3, 4)):
        queue.add_rate_limited("a")
        assert queue.failures("a") == failures
        clock.seconds += seconds - 0.1
        assert handed_out(queue) == []
        clock.seconds += 0.1
        assert handed_out(queue) == ["a"]
    queue.add_rate_limited("a", cap=3)
    clock.seconds += 3
    assert handed_out(queue) == ["a"]
    queue.forget("a")
    queue.forget("a key that never failed")
    assert queue.failures("a") == 0


@pytest.mark.parametrize(
    ("failures", "cap", "seconds"),
    [
        pytest.param(1, None, 1, id="the first"),
        pytest.param(2, None, 2, id="the second"),
        pytest.param(4, None, 8, id="the fourth"),
        pytest.param(5, None, 10, id="the cap of the queue"),
        pytest.param(5000, None, 10, id="more than a float can hold"),
        pytest.param(4, 3, 3, id="the cap of the call"),
        pytest.param(5000, 60, 10, id="the lower of both caps"),
    ],
)
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_delay_is_doubled_up_to_both_caps_and_shortened_by_its_jitter(
    failures, cap, seconds, share, monkeypatch
):
    monkeypatch.setattr("random.random", lambda: share)
    backoff = Backoff(first=1, cap=10, jitter=0.4)
    assert backoff.delay(failures, cap) == pytest.approx(seconds * (1 - 0.4 * share))


def test_a_worker_takes_an_urgent_key_out_of_its_turn():
    queue = queue_of()
    for key, urgent in (("a", True), ("b", True), ("c", False)):
        queue.add(key, urgent=urgent)
    assert not queue.take("c"), "not urgent"
    assert not queue.take("d"), "unknown"
    assert queue.take("b")
    assert not queue.take("b"), "a worker has it"
    assert queue.pressing() == 2, "one active, one urgent"
    queue.get()
    queue.get()
    assert queue.pressing() == 3
    queue.done("b")
    assert queue.depth() == 0
    queue.add("b", urgent=True)
    assert queue.pressing() == 3
    queue.shut_down()
    assert not queue.take("b"), "shut down"


def test_a_queue_counts_keys_and_measures_their_time():
    clock = HandClock()
    metrics = Counted()
    clock.seconds = 100
    queue: WorkQueue[str] = WorkQueue(clock, metrics)
    queue.add("a")
    queue.add("a")
    queue.add("b")
    clock.seconds = 102
    queue.get()
    clock.seconds = 103
    queue.get()
    clock.seconds = 107
    assert [gauge() for gauge in metrics.gauges] == [0, 9, 5]
    queue.done("a")
    queue.done("b")
    queue.add_rate_limited("a")
    assert metrics.seen == [
        *("added", "added", ("waited", 2), ("waited", 3)),
        *(("worked", 5), ("worked", 4), "retried"),
    ]
    assert [gauge() for gauge in metrics.gauges] == [0, 0, 0]
    queue.add("c")
    assert metrics.gauges[0]() == 1


def test_the_end_of_work_on_a_key_that_no_worker_has_changes_nothing():
    metrics = Counted()
    queue: WorkQueue[str] = WorkQueue(HandClock(), metrics)
    queue.add("a")
    queue.done("a")
    queue.done("unknown")
    assert metrics.seen == ["added"]
    assert handed_out(queue) == ["a"]


def test_a_shut_down_queue_takes_no_more_keys():
    queue = queue_of()
    queue.add("a")
    queue.shut_down()
    queue.add("b")
    queue.add_after("c", 1)
    assert queue.depth() == 1


@pytest.fixture
def waiting():
    """Start workers that wait for a key of a queue; their keys arrive in order."""
    threads = []

    def start(queue, workers=1):
        came: SimpleQueue[Any] = SimpleQueue()

        def work():
            try:
                came.put(queue.get())
            except ShutDown:
                came.put(ShutDown)

        for _ in range(workers):
            threads.append(threading.Thread(target=work, daemon=True))
            threads[-1].start()
        return came

    yield start
    for thread in threads:
        thread.join(5)


@pytest.mark.parametrize(
    "wake",
    [
        pytest.param(lambda queue: queue.add("a"), id="an add"),
        pytest.param(lambda queue: queue.add("a", urgent=True), id="an urgent add"),
        pytest.param(lambda queue: queue.add_after("a", 0.05), id="a shorter delay"),
    ],
)
def test_a_waiting_worker_wakes_for_a_key(wake, waiting):
    queue = queue_of(SystemClock())
    queue.add_after("later", 60)
    came = waiting(queue)
    with pytest.raises(Empty):
        came.get(timeout=0.1)
    wake(queue)
    assert came.get(timeout=5) == "a"


def test_a_waiting_worker_wakes_when_a_delay_ends(waiting):
    queue = queue_of(SystemClock())
    queue.add_after("a", 0.05)
    assert waiting(queue).get(timeout=5) == "a"


def test_shutdown_wakes_all_waiting_workers(waiting):
    queue = queue_of()
    came = waiting(queue, workers=2)
    with pytest.raises(Empty):
        came.get(timeout=0.1)
    queue.shut_down()
    assert [came.get(timeout=5) for _ in range(2)] == [ShutDown, ShutDown]
