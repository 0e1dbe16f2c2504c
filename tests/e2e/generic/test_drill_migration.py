"""`actuator drill --scenario migration`: it passes, and each of its rules can fail."""

import json
import re
import sys
from contextlib import contextmanager
from copy import deepcopy

import pytest

from generic.testing.drill.breaks import MIGRATION_BREAKS
from generic.testing.drill.course import run
from generic.testing.drill.migration.rules import RULES
from generic.testing.drill.settings import DrillSettings, Watcher
from generic.testing.rehearsal import CombinedRehearsal
from tests.support.drills.migration_record import FIELDS, recording
from tests.support.drills.record import another

pytestmark = pytest.mark.long
BROKEN_PATIENCE = 12.0
"""Seconds for each phase: a broken one never ends, the others need a few."""


@pytest.fixture
def compared(tmp_path, monkeypatch):
    """Records a drill, and compares its report with the events; each lie has to differ."""

    @contextmanager
    def record():
        with monkeypatch.context() as patched, recording(patched, tmp_path / "calls") as record:
            yield
        report = json.loads((tmp_path / "report.json").read_text())
        assert record.differences(report) == []
        for name in FIELDS:
            lie = deepcopy(report)
            lie["evidence"][name] = another(lie["evidence"][name])
            assert record.contradicts(lie), f"a lie about {name}"

    return record


def problems(report):
    return {finding["rule"]: finding["problems"] for finding in report["findings"]}


def test_shoots_move_while_managers_are_killed(command, compared, tmp_path):
    flags = ["--scenario", "migration", "--output", tmp_path, "--shoots", "2"]
    with compared():
        done = command("drill", "tests.support.drills.noted_calls:AwsNoted", *flags)
    report = json.loads((tmp_path / "report.json").read_text())
    assert problems(report) == {rule: [] for rule in [*RULES, "report"]}
    evidence = report["evidence"]
    assert {kill["phase"] for kill in evidence["kills"]} == {"migrate", "restore"}
    assert {kill["seed"] for kill in evidence["kills"]} == {"source", "destination"}
    assert len(evidence["resourcesBefore"]) == len(evidence["resourcesMoved"]) > 0
    assert evidence["resourcesAfter"] == []
    assert str(evidence["randomSeed"]) in done.stdout
    assert "2 of 2 shoots moved" in (tmp_path / "report.html").read_text()


@pytest.fixture
def each_bug():
    """All bugs at once, as one more; only for this test."""
    from tests.support.drills import migration_bugs as each_bug

    yield each_bug
    MIGRATION_BREAKS.pop(each_bug.EACH)
    sys.modules.pop(each_bug.__name__)


def test_each_rule_fails_where_it_is_broken(each_bug, compared, tmp_path):
    """Each in a shoot of its own, and for that shoot."""
    settings = DrillSettings(
        scenario="migration",
        shoots=len(RULES),
        break_rule=each_bug.EACH,
        patience=BROKEN_PATIENCE,
    )
    with compared():
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
    done = command("drill", "tests.support.drills.affordable:Unmarked", *flags, status=3)
    assert "none of its kinds migrates; set never_migrates = True" in done.stderr
    assert "embedded cluster" not in done.stdout
