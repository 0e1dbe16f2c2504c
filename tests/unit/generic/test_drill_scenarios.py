"""Each scenario of a drill: its requirements of a rehearsal, and the rules that it judges."""

import pytest

from actuator.errors import ConfigurationError
from generic.testing.drill.breaks import BREAKS, MIGRATION_BREAKS
from generic.testing.drill.paths import PATHS
from generic.testing.drill.scenarios import OWN, refusal, scenario_of, supported
from generic.testing.drill.settings import DrillSettings, Watcher
from generic.testing.landscape import memory
from generic.testing.shootapi import most_servers, require_servers
from tests.support.objects.stand_ins import StandIn


class Able(StandIn):
    title = "mine"
    scenarios = {"rain": "It rains."}
    takes_over = is_shared = True
    never_migrates = False


class Unable(Able):
    takes_over = is_shared = False


class Immobile(Able):
    never_migrates = True


def test_a_rehearsal_supports_the_scenarios_whose_needs_it_meets():
    assert supported(Able()) == [*OWN]
    assert supported(Unable()) == ["webhooks-down"]
    assert supported(Immobile()) == ["take-over", "webhooks-down"]


@pytest.mark.parametrize(
    ("rehearsal", "name", "path", "text"),
    [
        (Able, "rain", "", ""),
        (Able, "rain", "migrate", ""),
        (Able, "migration", "", ""),
        (Unable, "migration", "", "mine cannot run migration: other processes cannot use its"),
        (Unable, "take-over", "", "mine cannot run take-over: it has no ManagedResources"),
        (Unable, "rain", "migrate", ""),
        (Immobile, "migration", "", "mine cannot run migration: its kinds do not migrate"),
        (Immobile, "rain", "migrate", "mine cannot run path migrate: its kinds do not migrate"),
        (Immobile, "rain", "delete-migrating", "mine cannot run path delete-migrating: its kinds"),
        (Immobile, "rain", "delete", ""),
        (Immobile, "snow", "", "'snow'; set one of: rain, take-over, webhooks-down"),
        (Able, "webhooks-down", "delete", "'webhooks-down'; set one of: rain"),
    ],
)
def test_a_refusal_names_the_scenario_or_path_and_the_reason(rehearsal, name, path, text):
    found = refusal(rehearsal, scenario_of(name, path))
    assert text in found
    assert bool(found) == bool(text)


def test_each_break_belongs_to_a_scenario():
    of_failures = {rule for name in ("rain", *OWN) for rule in scenario_of(name).breakable}
    assert {*BREAKS, *MIGRATION_BREAKS} <= of_failures
    assert scenario_of("migration").breakable == [*MIGRATION_BREAKS]
    assert "I3" not in scenario_of("rain", "migrate").breakable


@pytest.mark.parametrize(
    "scenario", [scenario_of("rain"), *OWN.values()], ids=lambda item: item.name
)
def test_a_drill_with_a_violated_rule_waits_shorter(scenario):
    assert scenario.patience_if_broken < scenario.patience


@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_a_procedure_of_its_own(path):
    assert scenario_of("rain", path).course is not scenario_of("rain").course


class Served(Able):
    with_shoot_api = True


@pytest.mark.parametrize("name", ["rain", *OWN])
def test_a_drill_with_too_many_api_servers_of_shoots_is_refused_before_it_starts(name, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 2.0)
    settings = DrillSettings(scenario=name, shoots=9)
    text = (
        r"servers of 9 shoots need 3\.5 GiB of free memory, this machine has 2\.0; rehearse fewer"
    )
    with pytest.raises(ConfigurationError, match=text):
        scenario_of(name).run(settings, Served(), Watcher())


@pytest.mark.parametrize(("free", "most"), [(0.1, 1), (1.5, 4), (9.9, 6), (None, 6)])
def test_the_free_memory_limits_the_api_servers_of_crash_tests(free, most, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: free)
    assert most_servers(6) == most


@pytest.mark.parametrize(("free", "most"), [(0.8, 1), (1.5, 3)])
def test_a_drill_whose_api_servers_fit_into_the_free_memory_may_start(free, most, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: free)
    require_servers(most)
    with pytest.raises(ConfigurationError):
        require_servers(most + 1)
    monkeypatch.setattr(memory, "available", lambda: None)
    require_servers(most + 1)
