"""The explorer's judge and its points: each rule can fail, and calls get numbers."""

from collections import Counter

import pytest

from actuator.interface import ExternalResource, resource_of
from actuator.v1alpha1 import Network
from generic.reconciler.operation import Operation
from generic.testing.drill.bystanders import WITNESS
from generic.testing.drill.kills.calls import Point, Reaper, describe, points_of, read_lines
from generic.testing.explorer.judge import (
    Case,
    ExplorerFailure,
    Sight,
    Tally,
    judge_death,
    judge_end,
    unfinished_because,
)

OURS = "extensions.gardener.cloud/infrastructure"
OTHER = ExternalResource(type="IP", id="ip-1", tags={"shoot": "a"})
VPC = ExternalResource(type="VPC", id="vpc-1", tags={"shoot": "a"})
TWIN = ExternalResource(type="VPC", id="vpc-2", tags={"shoot": "a"})


def obj(*finalizers, **status):
    return {"metadata": {"name": "infra", "finalizers": list(finalizers)}, "status": status}


def case(operation, *before, makes=()):
    return Case(
        operation=operation,
        finalizer=OURS,
        others=[OTHER],
        before=[OTHER, *before],
        makes=Counter(makes),
    )


def seen(*outside, finalizers=(OURS, WITNESS), records=(), reported=None):
    return Sight(
        objects=[obj(*finalizers)],
        outside=[OTHER, *outside],
        records=list(records),
        reported=reported,
    )


RECONCILE = case(Operation.RECONCILE, makes=["VPC"])
DELETE = case(Operation.DELETE, VPC)
FORCE = case(Operation.FORCE_DELETE, VPC)
MIGRATE = case(Operation.MIGRATE, VPC)
RESTORE = case(Operation.RESTORE, VPC)
RELEASED = (WITNESS,)


@pytest.mark.parametrize(
    ("tried", "sight"),
    [
        pytest.param(RECONCILE, seen(), id="nothing made yet"),
        pytest.param(RECONCILE, seen(finalizers=RELEASED), id="no finalizer and nothing made"),
        pytest.param(RECONCILE, seen(VPC), id="made under our finalizer"),
        pytest.param(DELETE, seen(VPC), id="not cleaned up yet"),
        pytest.param(DELETE, seen(finalizers=RELEASED), id="cleaned up and released"),
        pytest.param(FORCE, seen(VPC, finalizers=RELEASED), id="records are looked at in the end"),
        pytest.param(MIGRATE, seen(VPC, finalizers=RELEASED), id="let go of"),
        pytest.param(RESTORE, seen(VPC, finalizers=RELEASED), id="not restored yet"),
    ],
)
def test_a_death_that_harms_nothing_is_no_problem(tried, sight):
    assert list(judge_death(tried, sight)) == []


@pytest.mark.parametrize(
    ("tried", "sight", "words"),
    [
        pytest.param(RECONCILE, seen(VPC, finalizers=RELEASED), "before our", id="unguarded"),
        pytest.param(DELETE, seen(VPC, finalizers=RELEASED), "finalizer is removed", id="released"),
        pytest.param(
            DELETE, seen(VPC, finalizers=(OURS,)), "finalizer of another controller", id="wiped"
        ),
        pytest.param(MIGRATE, seen(), "VPC vpc-1 was deleted", id="migrate removes"),
        pytest.param(RESTORE, seen(VPC, TWIN), "VPC vpc-2 was created", id="restore makes"),
        pytest.param(
            DELETE,
            Sight(objects=[], outside=[OTHER, VPC]),
            "the object is deleted",
            id="the object vanished",
        ),
        pytest.param(
            DELETE,
            Sight(objects=[obj(WITNESS)], outside=[]),
            "IP ip-1 of another object was deleted",
            id="hits others",
        ),
    ],
)
def test_a_harmful_state_at_the_kill_is_reported(tried, sight, words):
    assert words in " ".join(judge_death(tried, sight))


@pytest.mark.parametrize(
    ("tried", "sight"),
    [
        pytest.param(RECONCILE, seen(VPC), id="reconcile"),
        pytest.param(DELETE, seen(finalizers=RELEASED), id="delete"),
        pytest.param(FORCE, seen(VPC, finalizers=RELEASED, records=[VPC]), id="force_delete"),
        pytest.param(FORCE, seen(finalizers=RELEASED), id="force_delete with nothing left"),
        pytest.param(MIGRATE, seen(VPC, finalizers=RELEASED), id="migrate"),
        pytest.param(RESTORE, seen(VPC), id="restore"),
    ],
)
def test_a_good_end_is_no_problem(tried, sight):
    assert list(judge_end(tried, sight)) == []


@pytest.mark.parametrize(
    ("tried", "sight", "words"),
    [
        pytest.param(RECONCILE, seen(VPC, TWIN), "2 of VPC with the same tags", id="twice"),
        pytest.param(RECONCILE, seen(VPC, TWIN), "1 of VPC too many", id="too many"),
        pytest.param(RECONCILE, seen(), "1 of VPC missing", id="missing"),
        pytest.param(DELETE, seen(VPC, finalizers=RELEASED), "is left outside", id="left"),
        pytest.param(FORCE, seen(VPC, finalizers=RELEASED), "is not recorded", id="unrecorded"),
        pytest.param(MIGRATE, seen(finalizers=RELEASED), "VPC vpc-1 was deleted", id="migrate"),
        pytest.param(RESTORE, seen(TWIN), "VPC vpc-2 was created", id="restore"),
        pytest.param(
            RECONCILE, seen(VPC, finalizers=(OURS,)), "finalizer of another controller", id="wiped"
        ),
        pytest.param(
            DELETE,
            Sight(objects=[obj(WITNESS)], outside=[]),
            "IP ip-1 of another object was deleted",
            id="hits others",
        ),
    ],
)
def test_a_wrong_end_is_reported(tried, sight, words):
    assert words in " ".join(judge_end(tried, sight))


BY_TAG = ExternalResource(type="VPC", tags={"shoot": "a"})
GONE = ExternalResource(type="VPC", id="vpc-3", tags={"shoot": "b"})


@pytest.mark.parametrize(
    ("outside", "reported", "at_death", "at_end"),
    [
        pytest.param([VPC], None, "", "", id="a kind that may report more"),
        pytest.param([VPC], [VPC], "", "", id="what exists"),
        pytest.param([VPC], [BY_TAG], "", "", id="by its tags, before the id is known"),
        pytest.param([VPC], [], "vpc-1 exists, and", "vpc-1 exists, and", id="nothing"),
        pytest.param([], [BY_TAG], "", "reports VPC", id="one that is being created"),
        pytest.param([VPC], [VPC, GONE], "", "vpc-3, but that", id="one that is being deleted"),
        pytest.param([], [BY_TAG, GONE], "vpc-3, but", "vpc-3, but", id="two that do not exist"),
    ],
)
def test_reported_resources_equal_the_existing_but_for_the_one_in_flight(
    outside, reported, at_death, at_end
):
    sight = seen(*outside, finalizers=(OURS, WITNESS), reported=reported)
    found = case(Operation.RECONCILE, makes=[item.type for item in outside])
    for judge, words in ((judge_death, at_death), (judge_end, at_end)):
        problems = " ".join(judge(found, sight))
        assert words in problems if words else problems == ""


@pytest.mark.parametrize("operation", [Operation.DELETE, Operation.FORCE_DELETE, Operation.MIGRATE])
def test_an_operation_that_releases_is_finished_without_our_finalizer(operation):
    held = obj(OURS, WITNESS, lastError={"description": "no answer"})
    assert "no answer" in (unfinished_because(operation, OURS, held) or "")
    done = obj(WITNESS, lastOperation={"type": "Migrate", "state": "Succeeded"})
    assert unfinished_because(operation, OURS, done) is None


def test_the_same_call_gets_a_number_each_time():
    assert points_of(["get", "create", "get"]) == [
        Point("get", 1),
        Point("create", 1),
        Point("get", 2),
    ]
    assert str(Point("get", 2)) == "get (no. 2)"


def test_a_tally_without_attempts_does_not_hold():
    assert not Tally(kind="Worker", operation=Operation.DELETE).holds
    assert Tally(kind="Worker", operation=Operation.DELETE, tried=2).holds
    failed = ExplorerFailure(at="before get", problems=["it is gone"])
    tally = Tally(kind="Worker", operation=Operation.DELETE, tried=2, failures=[failed])
    assert not tally.holds
    assert tally.survived == 1


def test_calls_are_noted_before_they_are_made_also_where_they_fail(tmp_path):
    reaper = Reaper(tmp_path / "calls", None)
    assert read_lines(tmp_path / "calls") == []
    with reaper.around("get"):
        assert read_lines(tmp_path / "calls") == ["get"]
    with pytest.raises(ValueError, match="no"), reaper.around("create"):
        raise ValueError("no")
    assert read_lines(tmp_path / "calls") == ["get", "create"]


@pytest.mark.parametrize(
    ("patch", "point"),
    [
        ([{"op": "add", "path": "/status/state", "value": "x"}], "patch networks/status"),
        (
            [{"op": "add", "path": "/status/lastOperation", "value": {"state": "Processing"}}],
            "patch networks/status Processing",
        ),
        (
            [
                {"op": "test", "path": "/status", "value": None},
                {"op": "add", "path": "/status", "value": {"lastOperation": {"state": "Error"}}},
            ],
            "patch networks/status Error",
        ),
        ([{"op": "add", "path": "/status", "value": "an author's"}], "patch networks/status"),
        ({"status": {}}, "patch networks/status"),
    ],
)
def test_a_status_is_named_by_its_state_since_processing_depends_on_the_speed(patch, point):
    arguments = ["net", "shoot--a", patch]
    found = describe("patch", resource_of(Network.KIND), arguments, {"subresource": "status"})
    assert found == f"API: {point}"
