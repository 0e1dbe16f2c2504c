"""The invariants of a drill in a landscape: each planted violation is found, and shown."""

from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from generic.testing.drill.evidence import Act, Record
from generic.testing.drill.landscape.page import page, verdict
from generic.testing.drill.landscape.rules import ForceAnswer, LandscapeEvidence, ShootStory, judge
from generic.testing.drill.landscape.run import LandscapeRun, shoot_of
from generic.testing.drill.report import as_json, check_report, read_json, write_text
from generic.testing.drill.settings import DrillSettings, Watcher
from tests.support.drills.evidence import VPC, life

REFUSED = "deletionTimestamp is nil"


def story(**changes):
    base = ShootStory(
        name="s1",
        technical_id="shoot--a",
        moments=[Act(at=2.0, text="Create Succeeded"), Act(at=9.0, text="<gone>")],
        answers=[
            ForceAnswer(at=3.0, while_="Create Succeeded, no code", refusal=REFUSED),
            ForceAnswer(at=5.0, while_="Delete Error, ERR_A"),
        ],
        codes=["ERR_A"],
        created=1.0,
        ready=2.0,
        deleted=4.0,
        forced=5.0,
        gone=9.0,
    )
    return attrs.evolve(base, **changes)


def seen(*stories, **changes):
    record = Record(shoot="shoot--a", owner="Infrastructure s1", resource=VPC)
    base = LandscapeEvidence(
        drill="x",
        title="AWS",
        scenario="credentials-revoked",
        scenario_text="Revoked.",
        gardener="v1",
        shoots=list(stories) or [story()],
        lives=[life(shoot="shoot--a", gone=9.0)],
        records=[record],
        resources_before=[VPC],
        resources_after=[VPC],
    )
    return attrs.evolve(base, **changes)


def broken(evidence):
    return {finding.rule: finding.why() for finding in judge(evidence) if not finding.holds}


def test_all_rules_hold_for_a_shoot_that_went():
    assert broken(seen()) == {}


@pytest.mark.parametrize(
    ("evidence", "rule", "why"),
    [
        (seen(story(ready=None)), "shoot", "s1 did not become ready: <gone>"),
        (seen(story(gone=None)), "shoot", "s1 still exists: <gone>"),
        (seen(story(codes=[])), "code", "s1 was blocked, and its status had no error code"),
        (seen(story(forced=None)), "force", f"s1 was not force-deleted: {REFUSED}"),
        (seen(remaining_objects=["namespace shoot--a"]), "seed", "namespace shoot--a"),
        (seen(processes=["shoot--a_x"]), "programs", "shoot--a_x still runs"),
        (seen(records=[]), "I1", f"{VPC} still exists, and is not recorded"),
        (seen(resources_before=[]), "I4", "nothing existed outside before the deletion"),
    ],
)
def test_each_violation_is_found(evidence, rule, why):
    assert broken(evidence) == {rule: why}


def test_after_a_repair_a_shoot_may_end_without_a_force():
    went = story(forced=None, codes=[])
    assert broken(seen(went, repairs=["repaired"])) == {}
    stays = story(forced=None, codes=[], gone=None)
    assert set(broken(seen(stays, repairs=["repaired"]))) == {"shoot", "force"}


def test_the_report_is_read_back_and_compared(tmp_path):
    evidence = seen()
    path = tmp_path / "report.json"
    findings = judge(evidence)
    write_text(path, as_json(evidence, findings))
    assert read_json(path, LandscapeEvidence) == (evidence, findings)
    assert check_report(path, evidence, findings) == []
    told = seen(story(gone=8.0))
    assert check_report(path, told, findings) == ["the report differs from the evidence: shoots"]


def test_the_page_shows_each_answer_and_escapes_texts_of_the_owner():
    evidence = seen(repairs=["The outside world was repaired"])
    text = page(evidence, judge(evidence))
    assert f"refused: {REFUSED}" in text
    assert "Delete Error, ERR_A" in text
    assert "&lt;gone&gt;" in text
    assert "<gone>" not in text
    assert "accepted the force deletion of 1 of 1 Shoots (codes: ERR_A)" in verdict(evidence)
    assert "ended 1 of them in at most 4 s" in verdict(evidence)
    assert "The outside world was repaired." in verdict(evidence)


def test_a_failure_that_was_not_caused_yet_is_not_reported():
    rehearsal: Any = SimpleNamespace(
        actuators=list,
        all_scenarios={"credentials-revoked": "Revoked."},
        break_where_known=str,
        repair_failure=None,
        shoots_only=False,
        title="x",
    )
    landscape = SimpleNamespace(seeds=[SimpleNamespace(client=None)])
    world: Any = SimpleNamespace(landscape=landscape, owner=str)
    drill = LandscapeRun(DrillSettings(), rehearsal, world, Watcher())
    assert drill.evidence.scenario_text == "The drill ended before it caused the failure."


@pytest.mark.parametrize(
    ("meta", "shoot"),
    [
        ({"namespace": "shoot--a", "name": "x"}, "shoot--a"),
        ({"name": "shoot--a--s1--uid"}, "shoot--a--s1"),
        ({"namespace": "garden", "name": "shoot--x"}, ""),
        ({"name": "bucket"}, ""),
    ],
)
def test_an_object_belongs_to_the_shoot_of_its_namespace(meta, shoot):
    assert shoot_of({"metadata": meta}) == shoot
