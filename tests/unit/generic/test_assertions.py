"""assert_rehearsal: the failure of a test about a drill, without running one."""

import pytest

from actuator.errors import ActuatorError, ConfigurationError
from extensions.networkfilter.rehearsal import NetworkFilterRehearsal
from generic.testing import assertions
from generic.testing.assertions import assert_rehearsal
from generic.testing.drill.judge import Finding

HELD = Finding(rule="I2", title="Objects of others are unchanged")
BROKEN = Finding(
    rule="I1", title="Every remaining resource is recorded", problems=("vpc-1 is not", "vpc-2", "c")
)


@pytest.fixture
def found(monkeypatch):
    """The findings of the drill; the folders and settings that it was called with."""
    findings = [HELD]
    calls = []

    def run(settings, rehearsal, watcher, output):
        calls.append((settings, output))
        (output / "report.html").touch()
        return None, findings

    monkeypatch.setattr(assertions, "run", run)
    return findings, calls


def test_a_rehearsal_that_passes_says_nothing_and_leaves_nothing(found):
    assert_rehearsal(NetworkFilterRehearsal, "deletion-denied", shoots=2)
    [(settings, folder)] = found[1]
    assert (settings.scenario, settings.shoots) == ("deletion-denied", 2)
    assert not folder.exists()


def test_the_scenario_of_the_command_is_the_default_and_a_folder_is_kept(found, tmp_path):
    assert_rehearsal(NetworkFilterRehearsal, output=tmp_path)
    [(settings, folder)] = found[1]
    assert (settings.scenario, settings.shoots) == ("everything-fails", 3)
    assert folder == tmp_path
    assert folder.exists()


def test_violated_invariants_are_reported_as_the_table_shows_them(found):
    found[0].append(BROKEN)
    with pytest.raises(AssertionError) as failure:
        assert_rehearsal(NetworkFilterRehearsal)
    [(_, folder)] = found[1]
    head, rule, report = str(failure.value).splitlines()
    assert "scenario everything-fails: 1 of 2 invariants violated" in head
    assert rule == "  I1: Every remaining resource is recorded: vpc-1 is not (and 2 more)"
    assert report == f"  report: {folder / 'report.html'}"


@pytest.mark.parametrize("error", [ActuatorError("no port is free"), KeyboardInterrupt()])
def test_a_drill_that_cannot_run_leaves_nothing(monkeypatch, error):
    folders = []

    def run(settings, rehearsal, watcher, output):
        folders.append(output)
        (output / "report.html").touch()
        raise error

    monkeypatch.setattr(assertions, "run", run)
    with pytest.raises(type(error)):
        assert_rehearsal(NetworkFilterRehearsal)
    assert [folder.exists() for folder in folders] == [False]


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        ("no-such", "has no scenario 'no-such'; set one of: everything-fails, deletion-denied"),
        ("take-over", "cannot run take-over: it has no ManagedResources"),
    ],
)
def test_a_scenario_that_it_does_not_have_is_one_sentence(found, scenario, words):
    with pytest.raises(ConfigurationError, match=words) as refused:
        assert_rehearsal(NetworkFilterRehearsal, scenario)
    assert "\n" not in str(refused.value)
    assert found[1] == []
