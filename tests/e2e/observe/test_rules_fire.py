"""Every alert fires when it has to and is quiet otherwise, by the real promtool."""

import pytest

from generic.tools.monitoring import ALERTS, RECORDINGS, never_scraped
from hack.observe.programs import find_program
from tests.rules.causes import CIRCUMSTANCES, situations
from tests.rules.promtool import RULES, mutants, name_of, problems, situation_problems
from tests.rules.situations import ALERTED, RECORDED

SITUATIONS = list(situations())


@pytest.fixture(scope="session")
def promtool():
    return find_program("promtool", print)


@pytest.fixture(autouse=True)
def all_processors(monkeypatch):
    """The limit is for the servers of clusters."""
    monkeypatch.delenv("GOMAXPROCS", raising=False)


def test_each_rule_has_its_situations():
    assert ALERTED.keys() == set(map(name_of, ALERTS))
    assert RECORDED.keys() == set(map(name_of, RECORDINGS))
    assert all(quiet for _, quiet in ALERTED.values())


@pytest.mark.timeout(900)  # the first time promtool is built
def test_rules_hold_in_all_situations(promtool, tmp_path):
    assert problems(promtool, RULES, tmp_path) is None


@pytest.mark.timeout(900)
@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.text)
def test_one_cause_has_one_page_and_numbers_are_those_that_happened(promtool, tmp_path, situation):
    assert situation_problems(promtool, situation, tmp_path) is None


def test_each_pair_of_circumstances_is_a_situation():
    texts = {situation.text.partition(":")[0] for situation in SITUATIONS}
    for first in CIRCUMSTANCES:
        for second in CIRCUMSTANCES:
            paired = {f"{first} and {second}", f"{second} and {first}"}
            assert first == second or texts & paired


def test_alerts_read_recorded_series_only_which_other_servers_federate():
    for alert in (*ALERTS, never_scraped("extension-aws")):
        assert "seed:actuator_" in alert["expr"]
        assert "actuator_" not in alert["expr"].replace("seed:actuator_", "")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("expr", ["sum(", "vector(1) > 1"])
def test_a_broken_rule_is_noticed(promtool, tmp_path, expr):
    broken = [{**RULES[0], "expr": expr}, *RULES[1:]]
    assert problems(promtool, broken, tmp_path, about=broken[:1]) is not None


def test_each_rule_has_a_mutant_of_its_own():
    """`make mutate-alerts` finds out whether all are noticed."""
    assert {name_of(mutant.rule) for mutant in mutants()} == set(map(name_of, RULES))
