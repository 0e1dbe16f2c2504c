"""`make soak` for half a minute: judged by the same rules, and each of them can fail."""

import re
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from actuator.interface import ExternalResource
from generic.reconciler.orphans import Orphan, OrphanedFrom, OrphanReason
from generic.reconciler.orphans.kind import OrphanSpec
from generic.reconciler.reporter import DeletionEnded
from generic.serving.metrics import Outcome
from tests.soak.figures import Sample
from tests.soak.judge import FINALIZER_REMOVED_EXTERNALLY, Seen, judge, outcomes_by_uid
from tests.soak.lives import Ending, Life
from tests.soak.script import from_json
from tests.soak.subject import TYPE, Outcomes

ROOT = Path(__file__).parents[3]
SOAK = [sys.executable, "-m", "tests.soak"]


def soak(*arguments):
    command = [*SOAK, *map(str, arguments)]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False
    )


@pytest.mark.long
def test_objects_come_and_go_while_things_go_wrong_and_nothing_is_lost(tmp_path):
    done = soak("--minutes", 0.25, "--seed", 3, "--output", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "seed 3" in done.stdout
    assert from_json((tmp_path / "script.json").read_text())
    objects = re.search(r"objects\s+│ (\d+)", done.stdout)
    assert objects
    assert int(objects[1]) >= 10
    assert "BROKEN" not in done.stdout


def test_a_soak_that_is_too_short_is_refused():
    done = soak("--minutes", 0.1)
    assert done.returncode == 2
    assert "at least 0.25" in done.stderr


def thing(uid):
    return ExternalResource(type=TYPE, id=f"{uid}.1", tags={"uid": uid})


def samples(count, *, grows=0.0, threads=10):
    return [Sample(at=n, memory=50 + grows * n / 60, threads=threads) for n in range(count)]


GOOD = Seen(
    lives=[
        Life(shoot="a", ending=Ending.DELETED, uid="a", over=True),
        Life(shoot="b", ending=Ending.FORCED, uid="b", over=True),
        Life(shoot="c", ending=Ending.STRIPPED, uid="c", over=True),
        Life(shoot="d", ending=Ending.STAYS, uid="d", over=True),
    ],
    outcomes={"a": ["deleted"], "b": ["orphaned"], "c": [FINALIZER_REMOVED_EXTERNALLY]},
    outside=[thing("b"), thing("d")],
    orphans=[thing("b")],
    made={"a": 1, "b": 1, "c": 1, "d": 1},
    samples=samples(600),
    settled=samples(30),
    crashes=[],
)


def broken(seen):
    return {finding.rule for finding in judge(seen) if not finding.holds}


def test_nothing_is_wrong_where_all_is_well():
    assert broken(GOOD) == set()


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        pytest.param(
            {"lives": [*GOOD.lives, Life(shoot="e", ending=Ending.DELETED, problem="stuck")]},
            "lost",
            id="an object that does not go",
        ),
        pytest.param({"outcomes": {**GOOD.outcomes, "a": []}}, "outcome", id="no outcome"),
        pytest.param(
            {"outcomes": {**GOOD.outcomes, "b": ["deleted", "orphaned"]}}, "outcome", id="two"
        ),
        pytest.param(
            {"outcomes": {**GOOD.outcomes, "a": [FINALIZER_REMOVED_EXTERNALLY]}},
            "outcome",
            id="a bypass that nobody made",
        ),
        pytest.param({"outcomes": {**GOOD.outcomes, "x": ["deleted"]}}, "outcome", id="a stranger"),
        pytest.param({"outcomes": {**GOOD.outcomes, "d": ["deleted"]}}, "outcome", id="it stays"),
        pytest.param({"orphans": []}, "outside", id="left and not on record"),
        pytest.param({"outside": [thing("b")]}, "outside", id="ready with nothing outside"),
        pytest.param(
            {"outside": [*GOOD.outside, thing("a")], "orphans": [thing("a"), thing("b")]},
            "outside",
            id="deleted, and still outside",
        ),
        pytest.param({"made": {"a": 2}}, "once", id="made twice"),
        pytest.param({"samples": samples(600, grows=1.5)}, "memory", id="memory that grows"),
        pytest.param({"settled": samples(30, threads=12)}, "threads", id="threads that stay"),
        pytest.param({"settled": []}, "threads", id="nothing measured"),
        pytest.param({"crashes": ["Exception in thread x"]}, "alive", id="a thread that died"),
    ],
)
def test_each_rule_can_fail(change, rule):
    assert rule in broken(attrs.evolve(GOOD, **change))


def test_memory_is_not_judged_by_a_trend_of_seconds():
    assert broken(attrs.evolve(GOOD, samples=samples(60, grows=30))) == set()


def noted(folder, *ended):
    outcomes = Outcomes(folder)
    for uid, outcome in ended:
        of = {"kind": "Infrastructure", "namespace": uid, "name": "infra", "uid": uid}
        outcomes.note(DeletionEnded(**of, outcome=outcome))
    return outcomes.all()


def orphan(uid, reason):
    source = OrphanedFrom(name="infra", uid=uid)
    return Orphan(spec=OrphanSpec(object=source, reason=reason.value))


ORPHANS = [
    orphan("b", OrphanReason.FORCED),
    *[orphan("c", OrphanReason.FINALIZER_REMOVED_EXTERNALLY)] * 2,
]


def test_outcomes_are_those_of_the_listener_and_of_the_orphans(tmp_path):
    assert outcomes_by_uid(Outcomes(tmp_path).all(), []) == {}
    lines = noted(tmp_path, ("a", Outcome.FAILED), ("a", Outcome.DELETED), ("b", Outcome.ORPHANED))
    found = outcomes_by_uid(lines, ORPHANS)
    assert found == GOOD.outcomes
    assert broken(attrs.evolve(GOOD, outcomes=found)) == set()


@pytest.mark.parametrize("uid", ["a", "b", "c", "d"])
def test_an_outcome_that_is_reported_twice_or_without_a_deletion_is_found(tmp_path, uid):
    lines = noted(tmp_path, ("a", Outcome.DELETED), ("b", Outcome.ORPHANED), (uid, Outcome.DELETED))
    found = outcomes_by_uid(lines, ORPHANS)
    assert broken(attrs.evolve(GOOD, outcomes=found)) == {"outcome"}
