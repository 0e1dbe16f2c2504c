"""Shoots with all kinds, of two extensions at once, when no call outside the seed works."""

import json
import subprocess
import sys

import pytest

from actuator.v1alpha1 import KINDS

ACTUATOR = [sys.executable, "-c", "from generic.cli.main import main; main()"]
AWS = "extensions.aws.full_rehearsal:AwsFullRehearsal"
LOCAL = "extensions.local.rehearsal:LocalRehearsal"


def drill(folder, *arguments):
    command = [*ACTUATOR, "drill", "--scenario", "everything-fails", "--output", str(folder)]
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=280, check=False
    )
    report = folder / "report.json"
    return done, json.loads(report.read_text()) if report.exists() else None


def broken_rules(report):
    return {finding["rule"] for finding in report["findings"] if finding["problems"]}


def test_shoots_with_all_kinds_go_and_the_record_and_the_outside_agree(tmp_path):
    done, report = drill(tmp_path, AWS, LOCAL, "--shoots", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert broken_rules(report) == set()
    lives = report["evidence"]["lives"]
    assert {life["kind"] for life in lives} == {cls.KIND.name for cls in KINDS}
    assert all(life["gone"] is not None for life in lives)
    late = {life["kind"] for life in lives if life["forced"] is None}
    assert late == {"BackupBucket", "BackupEntry"}, "these are deleted when the outside works"
    assert report["evidence"]["outside_after"]


@pytest.mark.parametrize("rule", ["I1", "I5"])
def test_each_check_fails_also_with_all_kinds(tmp_path, rule):
    done, report = drill(tmp_path, AWS, LOCAL, "--shoots", "1", "--break", rule)
    assert done.returncode == 1, done.stdout + done.stderr
    assert rule in broken_rules(report)


def test_two_rehearsals_that_bring_the_same_kind_are_refused(tmp_path):
    aws = "extensions.aws.rehearsal:AwsRehearsal"
    done, report = drill(tmp_path, aws, AWS, "--shoots", "1")
    assert done.returncode == 1
    assert "both have an actuator for ControlPlane, Infrastructure" in done.stderr
    assert "Traceback" not in done.stderr
    assert report is None


def test_a_scenario_has_to_be_known_to_all(tmp_path):
    done, _ = drill(tmp_path, AWS, LOCAL, "--scenario", "permission-denied")
    assert done.returncode == 2
    assert "has no scenario 'permission-denied'; it has: everything-fails" in done.stderr
