"""How long the record of a force deletion is written again and again."""

import math

import pytest

from generic.reconciler.budget import Budget

BOUND = Budget(0.0, 30.0)
UNBOUND = Budget(0.0, math.inf)


@pytest.mark.parametrize(
    ("budget", "failures", "now", "left"),
    [
        pytest.param(BOUND, [], 10.0, 20.0, id="the budget"),
        pytest.param(BOUND, [5.0], 10.0, 20.0, id="the budget, after a failure too"),
        pytest.param(BOUND, [5.0], 40.0, 0.0, id="after the budget"),
        pytest.param(UNBOUND, [], 1e6, math.inf, id="no budget, no failure"),
        pytest.param(UNBOUND, [1000.0], 1000.0, 90.0, id="no budget, the first failure"),
        pytest.param(UNBOUND, [1000.0, 1080.0], 1080.0, 10.0, id="later ones add no time"),
        pytest.param(UNBOUND, [0.0, 1080.0], 1080.0, 0.0, id="too late"),
    ],
)
def test_a_record_has_the_budget_or_else_90_seconds_after_its_first_failure(
    budget: Budget, failures: list[float], now: float, left: float
) -> None:
    for at in failures:
        budget = budget.with_failed_record(at)
    assert budget.remaining_for_record(now) == left
