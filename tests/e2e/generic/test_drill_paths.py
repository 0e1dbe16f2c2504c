"""`actuator drill --path`: shoots go through gardenlet's flows, and each rule can fail."""

import pytest

from generic.testing.drill.evidence import Bystander
from generic.testing.drill.judge import PATH_RULES, UNJUDGED, judge
from generic.testing.drill.page import page
from generic.testing.drill.paths import PATHS, STEPS
from generic.testing.garden import order
from tests.support.drills.evidence import VPC, evidence, life
from tests.support.drills.moving_rehearsal import OneNetwork
from tests.support.drills.reports import NETWORK, broken_rules


def judged(path="delete", **more):
    """The rules that are broken, where nothing else is wrong."""
    good = {
        "lives": [life(outcomes=["deleted"], forced=None, stuck=None)],
        "records": [],
        "resources_after": [],
        "counted": {"deleted": 1},
    }
    found = judge(evidence(path=f"{path}: {PATHS[path]}", **(good | more)))
    return {finding.rule for finding in found if not finding.holds}


@pytest.mark.parametrize(
    ("more", "rules"),
    [
        pytest.param({}, set(), id="nothing"),
        pytest.param({"unfinished": ["delete of s1: waits"]}, {"path"}, id="a step hangs"),
        pytest.param({"remaining_objects": ["x is still there"]}, {"seed"}, id="left in the seed"),
        pytest.param({"resources_after": [VPC]}, {"I1"}, id="left outside, not recorded"),
        pytest.param(
            {"bystanders": [Bystander(name="n", problem="it was deleted")]}, {"I2"}, id="neighbour"
        ),
        pytest.param({"counted": {"deleted": 2}}, {"I3"}, id="two outcomes"),
        pytest.param({"resources_before": [VPC, VPC]}, {"I4"}, id="made twice"),
    ],
)
def test_each_rule_of_a_path_can_fail(more, rules):
    assert judged(**more) == rules


def test_a_rule_that_a_path_cannot_promise_is_not_judged():
    assert judged("delete-migrating", resources_after=[VPC], counted={}) == set()
    assert set(UNJUDGED) <= set(PATHS)


def test_each_step_of_each_path_is_known():
    steps = {step.rstrip("!") for path in PATHS.values() for step in path.split()}
    assert steps == {*STEPS, "break", "repair", "fail"}


def test_the_page_names_the_path_and_the_unfinished_step():
    seen = evidence(path="retry: create", unfinished=["create of s1: <b>"])
    text = page(seen, judge(seen))
    assert "retry: create" in text
    assert "create of s1: &lt;b&gt;" in text


@pytest.mark.long
@pytest.mark.parametrize("path", ["migrate", "hibernate", "force-delete"])
def test_the_report_of_a_path_has_its_events(drill, path):
    """The fixture compares each field; this test, the fields that a reader needs first."""
    done, report = drill(NETWORK, "--path", path, "--shoots", "2")
    told = report["evidence"]
    is_forced = path == "force-delete"
    lives = [live for live in told["lives"] if not live["shoot"].endswith("neighbour")]
    assert len(lives) == (4 if path == "migrate" else 2)
    assert all(bool(live["forced"]) is is_forced for live in lives)
    assert {bool(live["migrated"]) for live in lives} == (
        {True, False} if path == "migrate" else {False}
    )
    assert told["scenario"] == (next(iter(OneNetwork().scenarios)) if is_forced else "")
    assert (told["scale"] == order.SCALE) is is_forced
    assert ("scaled by 1/30" in done.stdout) is is_forced
    assert [act["text"] for act in told["acts"]][1:3] == ["Creating neighbour", "Creating s1, s2"]


@pytest.mark.long
def test_shoots_are_retried_and_the_report_names_the_path(drill, tmp_path):
    flags = ("--path", "retry", "--scenario", "everything-fails", "--shoots", "1")
    _, report = drill(NETWORK, *flags)
    assert report["evidence"]["path"] == f"retry: {PATHS['retry']}"
    assert {finding["rule"] for finding in report["findings"]} == {*PATH_RULES, "report"}
    assert f"retry: {PATHS['retry']}" in (tmp_path / "report.html").read_text()


@pytest.mark.long
def test_a_step_that_does_not_get_stuck_is_reported(drill):
    """Only deletions are denied, so that no reconciliation fails."""
    flags = ("--path", "retry", "--scenario", "deletion-denied", "--shoots", "1")
    _, report = drill(NETWORK, *flags, status=1)
    assert broken_rules(report) == {"path"}
    assert report["evidence"]["unfinished"] == ["reconcile of s1: did not get stuck"]


@pytest.mark.long
def test_a_rule_that_is_broken_on_purpose_fails_on_a_path_too(drill):
    flags = ["--path", "delete", "--scenario", "everything-fails", "--shoots", "1"]
    _, report = drill(NETWORK, *flags, "--break", "I4", status=1)
    assert "I4" in broken_rules(report)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        pytest.param(["--path", "nowhere"], "'nowhere' is not one of 'delete'", id="name"),
        pytest.param(
            ["--path", "migrate", "--break", "I3"],
            "--break I3: path migrate has the invariants path, seed, I1, I2, I4, report",
            id="break",
        ),
        pytest.param(["--path", "delete", "--all"], "--all selects scenarios", id="all"),
        pytest.param(
            ["--path", "delete", "--kubeconfig", "x", "--context", "y"],
            "--path requires the embedded cluster",
            id="seed",
        ),
        pytest.param(
            ["--path", "migrate", "--scenario", "migration"], "no scenario 'migration'", id="twice"
        ),
    ],
)
def test_a_path_that_cannot_be_walked_gets_one_sentence(drill, flags, words):
    done, report = drill(*flags, status=2)
    assert words in done.stderr
    assert report is None
