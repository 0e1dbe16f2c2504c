"""`actuator drill --scenario migration`: it passes, and each of its rules can fail."""

import json
import re
import sys
from copy import deepcopy

import pytest
from migration_record import recording

from generic.testing.drill.breaks import MIGRATION_BREAKS
from generic.testing.drill.course import run
from generic.testing.drill.migration.rules import RULES
from generic.testing.drill.settings import Settings, Watcher
from generic.testing.rehearsal import CombinedRehearsal

pytestmark = pytest.mark.long
BROKEN_PATIENCE = 12.0
"""Seconds for each phase: what is broken never gets through, the others need a few."""


LIES = [
    lambda told: told["moves"][0].update(restored=None),
    lambda told: told["moves"][0].update(handedOver=0.0),
    lambda told: told["kills"].pop(),
    lambda told: told["outsideMoved"].pop(),
    lambda told: told["outsideAfter"].append(told["outsideBefore"][0]),
    lambda told: told["arrivals"][0].update(came="another"),
    lambda told: told["arrivals"].pop(0),
]
"""False reports, which the record has to contradict."""


@pytest.fixture
def drill(command, tmp_path, monkeypatch):
    """Holds a drill in this process; what it said, and its report, compared with a record."""

    def hold(*flags, status=0):
        line = ("drill", "--scenario", "migration", "--output", tmp_path, *flags)
        with monkeypatch.context() as patched, recording(patched) as record:
            done = command(*line, status=status)
        report = json.loads((tmp_path / "report.json").read_text())
        assert record.differences(report) == []
        for lie in LIES:
            told = deepcopy(report)
            lie(told["evidence"])
            assert record.differences(told) != []
        return done, report

    return hold


def problems(report):
    return {finding["rule"]: finding["problems"] for finding in report["findings"]}


def test_shoots_move_while_managers_are_killed(drill, tmp_path):
    done, report = drill("--shoots", "2")
    assert problems(report) == {rule: [] for rule in [*RULES, "report"]}
    evidence = report["evidence"]
    assert {kill["phase"] for kill in evidence["kills"]} == {"migrate", "restore"}
    assert {kill["seed"] for kill in evidence["kills"]} == {"source", "destination"}
    assert len(evidence["outsideBefore"]) == len(evidence["outsideMoved"]) > 0
    assert evidence["outsideAfter"] == []
    assert str(evidence["dice"]) in done.stdout
    assert "2 of 2 shoots moved" in (tmp_path / "report.html").read_text()


@pytest.fixture
def each_bug():
    """All bugs at once, as one more; only for this test."""
    import each_bug

    yield each_bug
    MIGRATION_BREAKS.pop(each_bug.EACH)
    sys.modules.pop(each_bug.__name__)


def test_each_rule_fails_where_it_is_broken(each_bug, tmp_path):
    """Each in a shoot of its own, and for that shoot."""
    settings = Settings(
        scenario="migration",
        shoots=len(RULES),
        break_rule=each_bug.EACH,
        patience=BROKEN_PATIENCE,
    )
    run(settings, CombinedRehearsal([each_bug.EachItsOwnBug()]), Watcher(), tmp_path)
    found = problems(json.loads((tmp_path / "report.json").read_text()))
    for number, rule in enumerate(RULES, 1):
        assert re.search(rf"\bs{number}\b", " ".join(found[rule])), (rule, found)
    assert found["report"] == []


def test_each_rule_has_a_break():
    assert [*MIGRATION_BREAKS] == [*RULES]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        pytest.param(
            ["--break", "I1"],
            "--break I1: scenario migration has the invariants M1, M2",
            id="a break of another drill",
        ),
        pytest.param(
            ["--kubeconfig", "x", "--context", "y"], "requires the embedded cluster", id="not ours"
        ),
    ],
)
def test_bad_input_gets_one_sentence(command, tmp_path, flags, words):
    done = command("drill", "--scenario", "migration", "--output", tmp_path, *flags, status=2)
    assert words in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_kinds_that_do_not_migrate_are_refused_before_a_cluster_starts(command, tmp_path):
    flags = ["--scenario", "migration", "--output", tmp_path]
    done = command("drill", "all_of_it:Unmarked", *flags, status=3)
    assert "none of its kinds migrates; set never_migrates = True" in done.stderr
    assert "embedded cluster" not in done.stdout
