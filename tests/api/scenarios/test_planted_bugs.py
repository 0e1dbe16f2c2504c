"""A planted bug for each of the six invariants is found; without one, nothing is."""

import pytest

from generic.testing.drill.breaks import BREAKS
from generic.testing.drill.judge import RULES
from tests.support.drills.planted_bugs import BUGS, CHECKS, rehearse


def broken(seen):
    return {rule for rule, holds in CHECKS.items() if not holds(seen)}


def test_without_a_bug_every_invariant_holds(seed, start):
    assert broken(rehearse(seed, start, None)) == set()


@pytest.mark.parametrize("name", list(BUGS))
def test_a_planted_bug_is_found(seed, start, name):
    bug = BUGS[name]
    assert bug.rule in broken(rehearse(seed, start, bug))


def test_every_invariant_has_a_bug_here_and_in_the_drill():
    assert {bug.rule for bug in BUGS.values()} == set(CHECKS)
    assert set(CHECKS) == {rule for rule in RULES if rule.startswith("I")}
    assert set(CHECKS) <= set(BREAKS)
