"""`actuator drill --scenario migration`: it passes, and each of its rules can fail."""

import json
import subprocess
import sys

import pytest

from generic.drill.migration.breaks import MIGRATION_BREAKS
from generic.drill.migration.rules import RULES

ACTUATOR = [sys.executable, "-c", "from generic.cli.main import main; main()"]


def drill(folder, *flags):
    command = [*ACTUATOR, "drill", "--scenario", "migration", "--output", str(folder), *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    report = folder / "report.json"
    return done, json.loads(report.read_text()) if report.exists() else None


def broken_rules(report):
    return {finding["rule"] for finding in report["findings"] if finding["problems"]}


def test_shoots_move_while_managers_are_killed(tmp_path):
    done, report = drill(tmp_path, "--shoots", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert broken_rules(report) == set()
    assert {finding["rule"] for finding in report["findings"]} == {*RULES, "report"}
    evidence = report["evidence"]
    assert {kill["phase"] for kill in evidence["kills"]} == {"migrate", "restore"}
    assert {kill["seed"] for kill in evidence["kills"]} == {"source", "destination"}
    assert len(evidence["outside_before"]) == len(evidence["outside_moved"]) > 0
    assert evidence["outside_after"] == []
    assert str(evidence["dice"]) in done.stdout
    assert "3 of 3 shoots moved" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("rule", list(MIGRATION_BREAKS))
def test_each_rule_fails_where_it_is_broken(tmp_path, rule):
    done, report = drill(tmp_path, "--shoots", "1", "--break", rule)
    assert done.returncode == 1, done.stdout + done.stderr
    assert rule in broken_rules(report)


def test_each_rule_has_a_break():
    assert set(MIGRATION_BREAKS) == set(RULES)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        pytest.param(["--break", "I1"], "knows --break M1, M2", id="a break of another drill"),
        pytest.param(
            ["--kubeconfig", "x", "--context", "y"], "embedded cluster only", id="not ours"
        ),
    ],
)
def test_bad_input_gets_one_sentence(tmp_path, flags, words):
    done, report = drill(tmp_path, *flags)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert report is None
