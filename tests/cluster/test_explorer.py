"""`actuator explore`: what is sound survives every kill, and each planted bug is found."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-c", "from generic.cli.explore import explore; explore()"]
pytestmark = pytest.mark.timeout(290)
HERE = str(Path(__file__).parent)


def explore(rehearsal, *flags):
    done = subprocess.run(
        [*COMMAND, rehearsal, *flags],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env={**os.environ, "PYTHONPATH": HERE},
    )
    return done, json.loads(done.stdout) if "json" in flags else None


def network(rehearsal, operation):
    flags = ("--kind", "Network", "--operation", operation, "-o", "json", "--patience", "8")
    done, [tally] = explore(f"careless:{rehearsal}", *flags)
    return done.returncode, tally


def problems(tally, at):
    return " ".join(
        text for failure in tally["failures"] if at in failure["at"] for text in failure["problems"]
    )


def test_the_local_network_survives_every_kill_in_all_operations():
    flags = ("--kind", "Network", "-o", "json")
    done, tallies = explore("extensions.local.rehearsal:LocalRehearsal", *flags)
    assert done.returncode == 0, done.stdout + done.stderr
    operations = ["reconcile", "delete", "force_delete", "migrate", "restore"]
    assert [tally["operation"] for tally in tallies] == operations
    for tally in tallies:
        assert tally["failures"] == []
        assert tally["tried"] == tally["survived"]
        assert tally["tried"] + tally["missed"] == 2 * len(tally["points"])
        assert f"actuator: {tally['operation']}" in tally["points"]
    reconcile = tallies[0]["points"]
    guard = next(n for n, point in enumerate(reconcile) if "/metadata/finalizers" in point)
    assert guard < reconcile.index("outside: ensure")


def test_every_request_to_the_cloud_is_a_point():
    flags = ("--kind", "Infrastructure", "--operation", "restore", "-o", "json")
    done, [tally] = explore("extensions.aws.rehearsal:AwsRehearsal", *flags)
    assert done.returncode == 0, done.stdout + done.stderr
    assert tally["tried"] == tally["survived"] > 0
    assert {"ec2: DescribeVpcs", "ec2: DescribeSubnets"} <= set(tally["points"])


def test_what_creates_before_it_looks_for_its_mark_is_found():
    code, tally = network("ForgetfulRehearsal", "reconcile")
    assert code == 1
    assert "too many" in problems(tally, "after outside: ensure")
    assert problems(tally, "before outside: ensure") == ""


def test_what_releases_before_it_cleans_up_is_found():
    code, tally = network("HastyRehearsal", "delete")
    assert code == 1
    found = problems(tally, "before outside: delete")
    assert "our finalizer is off, but Local::Network" in found
    assert "is left outside" in found
    assert problems(tally, "before actuator: delete") == ""


@pytest.mark.parametrize(
    ("rehearsal", "operation", "words"),
    [
        ("WipingRehearsal", "migrate", "somebody else's finalizer"),
        ("SilentRehearsal", "force_delete", "nothing on record says so"),
    ],
)
def test_what_is_broken_without_a_kill_is_not_killed(rehearsal, operation, words):
    code, tally = network(rehearsal, operation)
    assert code == 1
    assert tally["tried"] == 0
    assert [failure["at"] for failure in tally["failures"]] == [""]
    assert words in problems(tally, "")


def test_what_does_not_get_through_after_a_restart_is_told_and_not_waited_for_for_ever():
    code, tally = network("StubbornRehearsal", "reconcile")
    assert code == 1
    assert "somebody was here before" in problems(tally, "after outside: ensure")
    assert "not through 8 s after the restart" in problems(tally, "after outside: ensure")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["careless:Nothing"], "has no 'Nothing'"),
        (["careless:ForgetfulRehearsal", "--kind", "Worker"], "this rehearsal has Network"),
    ],
)
def test_bad_input_gets_one_sentence(arguments, words):
    program = "from generic.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "explore", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": HERE},
    )
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr
