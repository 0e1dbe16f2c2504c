"""Decisions that cannot be undone need a wall clock that was steady for a minute."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actuator import ActuatorError
from generic.kube import clock as clocks
from generic.kube.clock import SystemClock, WatchedClock, trusted_now
from generic.kube.errorinfo import read_error
from generic.reconciler.deletion.escalation import Escalation, Then
from generic.reconciler.failure import classify
from generic.reconciler.operation import Operation

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = 86400.0


class Hands:
    """Two clocks that a test moves."""

    def __init__(self):
        self.seconds = 0.0
        self.ahead = 0.0

    def now(self):
        return START + timedelta(seconds=self.seconds + self.ahead)

    def monotonic(self):
        return self.seconds


ticks = st.tuples(
    st.floats(0.5, 40.0),
    st.sampled_from([0.0, 0.0, 0.0, 0.73, -1.91, 4.0, 6.0, -30.0, 2 * DAY, -2 * DAY]),
)


def is_steady(samples, now):
    """The rule, from all samples: (monotonic seconds, seconds ahead)."""
    before = [one for one in samples if one[0] <= now - 60.0]
    seen = [*before[-1:], *(one for one in samples if one[0] > now - 60.0)]
    ahead = [one[1] for one in seen]
    return bool(before) and max(ahead) - min(ahead) <= 5.0


def lived(moves):
    """Each move, and whether the clock was trusted after it and should have been."""
    hands = Hands()
    watched = WatchedClock(hands)
    samples = []
    for seconds, step in [(0.0, 0.0), *moves]:
        hands.seconds += seconds
        hands.ahead += step
        samples.append((hands.seconds, hands.ahead))
        yield trusted_now(watched), hands.now(), is_steady(samples, hands.seconds)


@given(st.lists(ticks, max_size=30))
def test_the_wall_clock_is_trusted_exactly_after_a_steady_minute(moves):
    for trusted, now, is_steady in lived(moves):
        assert trusted == (now if is_steady else None)


def test_the_law_finds_a_clock_that_is_trusted_too_early(monkeypatch):
    monkeypatch.setattr(clocks, "WINDOW", 10.0)
    moves = [(15.0, 0.0), (15.0, 2 * DAY), (15.0, 0.0)]
    assert any(trusted and not is_steady for trusted, _, is_steady in lived(moves))


def test_slow_steps_count_together():
    *_, (trusted, _, _) = lived([(60.0, 0.0), *[(10.0, 2.0)] * 4])
    assert trusted is None


def test_another_clock_is_trusted():
    assert trusted_now(Hands()) == START
    assert trusted_now(WatchedClock(SystemClock())) is None


def test_a_step_is_one_line_of_the_log_with_its_seconds(caplog):
    list(lived([(61.0, 0.0), (1.0, 2 * DAY), (1.0, 0.0)]))
    [record] = [one for one in caplog.records if "stepped" in one.message]
    assert record.fields == {"seconds": 2 * DAY}


@pytest.mark.parametrize(("now", "gives_up"), [(START, True), (None, False)])
def test_without_a_trusted_clock_a_deletion_is_retried(now, gives_up):
    since = (START - timedelta(days=2)).isoformat().replace("+00:00", "Z")
    day = Escalation(after=DAY, then=Then.GIVE_UP)
    error = read_error(ActuatorError("no"))
    failure, _ = classify(error, Operation.DELETE, 3, since, now, [day])
    assert failure.gives_up is gives_up
