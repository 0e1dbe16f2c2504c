"""Decisions that cannot be undone need a wall clock that was steady for a minute."""

from datetime import timedelta
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actuator import ActuatorError
from actuator.errors import ErrorCode
from generic.kube import clock as clocks
from generic.kube.clock import SystemClock, WatchedClock, eventual_now, trusted_now
from generic.kube.errorinfo import read_error
from generic.reconciler.failure import classify
from generic.reconciler.operation import Operation
from generic.reconciler.status import Failure
from tests.support.cluster.clocks import START, Hands
from tests.support.pages.documented import run_examples

DAY = 86400.0


ticks = st.tuples(
    st.floats(0.5, 40.0),
    st.sampled_from([0.0, 0.0, 0.0, 0.73, -1.91, 4.0, 6.0, -30.0, 2 * DAY, -2 * DAY]),
)


def is_steady(samples, now):
    """The rule, from all samples: (monotonic seconds, seconds ahead).

    None exactly at the tolerance, where the rounding of the clocks decides.
    """
    before = [sample for sample in samples if sample[0] <= now - 60.0]
    seen = [*before[-1:], *(sample for sample in samples if sample[0] > now - 60.0)]
    ahead = [item[1] for item in seen]
    spread = max(ahead) - min(ahead)
    if before and abs(spread - 5.0) < 1e-3:
        return None
    return bool(before) and spread <= 5.0


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
    life = [*lived(moves)]
    assert len(life) >= len(moves)
    for trusted, now, is_steady in life:
        if is_steady is not None:
            assert trusted == (now if is_steady else None)


def test_the_rounding_of_clocks_decides_only_exactly_at_the_tolerance():
    moves = [(1.524062, -1.91), (1.0, 0.73), (18.0, -1.91), (40.0, -1.91)]
    assert [is_steady for *_, is_steady in lived(moves)] == [False, False, False, False, None]


def test_the_law_finds_a_clock_that_is_trusted_too_early(monkeypatch):
    monkeypatch.setattr(clocks, "WINDOW", 10.0)
    moves = [(15.0, 0.0), (15.0, 2 * DAY), (15.0, 0.0)]
    assert any(trusted and not is_steady for trusted, _, is_steady in lived(moves))


def test_slow_steps_count_together():
    *_, (trusted, _, _) = lived([(60.0, 0.0), *[(10.0, 2.0)] * 4])
    assert trusted is None


def test_another_clock_is_trusted():
    assert trusted_now(Hands()) == eventual_now(Hands()) == START
    assert trusted_now(WatchedClock(SystemClock())) is None


@given(st.lists(ticks, max_size=30), st.floats(1.0, 4000.0))
def test_a_decision_waits_for_a_steady_minute_at_most_an_hour(moves, patience):
    """For any steps of the clocks, a decision waits exactly as long as it may."""
    hands = Hands()
    since: float | None = 0.0
    watched = WatchedClock(hands)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clocks, "MAX_UNKNOWN_SECONDS", patience)
        for seconds, step in [(0.0, 0.0), *moves]:
            hands.seconds += seconds
            hands.ahead += step
            is_late = since is not None and hands.seconds - since > patience
            trusted = trusted_now(watched)
            expected = trusted or (hands.now() if is_late else None)
            assert eventual_now(watched) == expected
            if trusted:
                since = None
            elif since is None:
                since = hands.seconds


def test_an_hour_begins_with_the_first_step_after_a_steady_time():
    hands = Hands()
    watched = WatchedClock(hands)
    for seconds, ahead, is_decided in [
        (61.0, 0.0, True),
        (2 * DAY, 2 * DAY, False),  # a machine that was suspended
        (3599.0, -2 * DAY, False),
        (2.0, 0.0, True),
    ]:
        trusted_now(watched)
        hands.seconds += seconds
        hands.ahead += ahead
        assert (eventual_now(watched) is not None) is is_decided


def test_a_step_is_one_line_of_the_log_with_its_seconds(caplog):
    list(lived([(61.0, 0.0), (1.0, 2 * DAY), (1.0, 0.0)]))
    [record] = [record for record in caplog.records if "stepped" in record.message]
    assert record.fields == {"seconds": 2 * DAY}


def test_a_clock_that_drifts_is_one_line_of_the_log(caplog):
    list(lived([(60.0, 0.0), *[(10.0, 2.0)] * 20]))
    assert [record.message for record in caplog.records if "drifted" in record.message] == [
        "wall clock stepped or drifted; final decisions wait until it was steady"
    ]


@pytest.mark.parametrize(("now", "gives_up"), [(START, True), (None, False)])
def test_without_a_trusted_clock_a_deletion_is_retried(now, gives_up):
    since = (START - timedelta(days=2)).isoformat().replace("+00:00", "Z")
    day: dict[ErrorCode | None, float | None] = {None: DAY}
    error = read_error(ActuatorError("no"))
    failure, _ = classify(error, Operation.DELETE, 3, since, now, day)
    assert isinstance(failure, Failure)
    assert failure.gives_up is gives_up


def test_the_example_of_the_documentation_waits_for_the_clock():
    is_over = run_examples("## Decisions by the time")["is_over"]
    hands = Hands()
    ctx = SimpleNamespace(clock=WatchedClock(hands))
    assert not is_over(ctx, START - timedelta(days=31))
    hands.seconds += 60.0
    assert is_over(ctx, START - timedelta(days=31))
    assert not is_over(ctx, START - timedelta(days=29))
