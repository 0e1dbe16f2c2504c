"""Shoots with all kinds, of two extensions at once, when no call outside the seed works."""

import json

import pytest

from actuator.v1alpha1 import KINDS

AWS = "extensions.aws.full_rehearsal:AwsFullRehearsal"
RELATIONS = "extensions.relations.rehearsal:RelationsRehearsal"
LOCAL = "extensions.local.rehearsal:LocalRehearsal"


@pytest.fixture
def drill(command, tmp_path):
    """Runs a drill in this process; returns its output, and its report if there is one."""

    def hold(*arguments, status=0):
        flags = ("--scenario", "everything-fails", "--output", tmp_path)
        done = command("drill", *flags, *arguments, status=status)
        report = tmp_path / "report.json"
        return done, json.loads(report.read_text()) if report.exists() else None

    return hold


def broken_rules(report):
    return {finding["rule"] for finding in report["findings"] if finding["problems"]}


@pytest.mark.long
def test_shoots_with_all_kinds_go_and_the_record_and_the_outside_agree(drill):
    _, report = drill(AWS, LOCAL, "--shoots", "1")
    assert broken_rules(report) == set()
    lives = report["evidence"]["lives"]
    assert {life["kind"] for life in lives} == {cls.KIND.name for cls in KINDS}
    assert all(life["gone"] is not None for life in lives)
    late = {life["kind"] for life in lives if life["forced"] is None}
    assert late == {"BackupBucket", "BackupEntry"}, "these are deleted when the outside works"
    assert report["evidence"]["resourcesAfter"]


def test_a_check_fails_also_with_the_kinds_of_two_extensions(drill):
    _, report = drill(RELATIONS, LOCAL, "--shoots", "1", "--break", "I1", status=1)
    assert "I1" in broken_rules(report)


def test_a_scenario_has_to_be_known_to_all(drill):
    done, _ = drill(AWS, LOCAL, "--scenario", "permission-denied", status=2)
    assert "has no scenario 'permission-denied'; set one of: everything-fails" in done.stderr
