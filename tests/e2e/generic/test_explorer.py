"""`actuator explore`: correct actuators survive every kill, and each planted bug is found."""

import json
from math import ceil

import pytest

pytestmark = pytest.mark.long


@pytest.fixture
def explore(command):
    """Explores a rehearsal in this process; returns the findings."""

    def run(rehearsal, *flags, status=0):
        return json.loads(command("explore", rehearsal, *flags, "-o", "json", status=status).stdout)

    return run


def problems(tally, at):
    return " ".join(
        text for failure in tally["failures"] if at in failure["at"] for text in failure["problems"]
    )


@pytest.mark.parametrize(
    ("rehearsal", "operations"),
    [
        pytest.param(
            "tests.support.drills.moving_rehearsal:OneNetwork",
            ["reconcile", "force_delete", "migrate"],
            id="a Network alone",
        ),
        pytest.param(
            "extensions.local.rehearsal:LocalRehearsal", ["delete"], id="after all other kinds"
        ),
    ],
)
def test_the_local_network_survives_every_kill(explore, rehearsal, operations):
    """In all operations but restore, which the next test samples."""
    flags = [flag for operation in operations for flag in ("--operation", operation)]
    tallies = explore(rehearsal, "--kind", "Network", *flags)
    assert [tally["operation"] for tally in tallies] == operations
    for tally in tallies:
        assert tally["failures"] == []
        assert tally["tried"] == tally["survived"]
        assert tally["tried"] + tally["missed"] == 2 * len(tally["points"])
        assert f"actuator: {tally['operation']}" in tally["points"]
        if tally["operation"] == "reconcile":
            assert_guarded_first(tally["points"])


def assert_guarded_first(points):
    guard = next(n for n, point in enumerate(points) if "/metadata/finalizers" in point)
    assert guard < points.index("outside: create")


def test_a_network_on_aws_survives_sampled_kills_and_each_request_is_a_point(explore):
    """One of ten; all of them take too long here, and are in `docs/force-deletion.md`."""
    flags = ("--kind", "Infrastructure", "--every", "10", "--random-seed", "36")
    tallies = explore("extensions.aws.rehearsal:AwsRehearsal", *flags)
    points = {tally["operation"]: set(tally["points"]) for tally in tallies}
    assert points.keys() == {"reconcile", "delete", "force_delete", "migrate", "restore"}
    assert {"ec2: CreateNatGateway", "iam: CreateRole", "ec2: AllocateAddress"} <= points[
        "reconcile"
    ]
    assert {"ec2: DescribeVpcs", "iam: GetRole"} <= points["restore"]
    assert {"ec2: ReleaseAddress", "iam: DeleteRolePolicy"} <= points["delete"]
    for tally in tallies:
        assert tally["failures"] == []
        assert tally["tried"] == tally["survived"]
        assert tally["tried"] + tally["missed"] == ceil(2 * len(tally["points"]) / 10)


def test_a_kind_that_uses_the_api_server_of_its_shoot_survives_kills(explore):
    flags = ("--operation", "reconcile", "--call", "actuator", "--call", "status")
    [tally] = explore("tests.support.drills.shoot_api_rehearsal:InsideRehearsal", *flags)
    assert tally["failures"] == []
    assert tally["tried"] == tally["survived"] > 0


def test_a_resource_that_is_not_reported_after_a_kill_is_found(explore):
    """Between its creation and the next status. The other calls: test_aws_flow.py."""
    flags = ("--kind", "Infrastructure", "--operation", "reconcile", "--call", "ec2: CreateS")
    [tally] = explore(
        "tests.support.aws.unreported_resource:UnreportingRehearsal", *flags, status=1
    )
    subnets = ["Subnet", "Subnet (no. 2)", "Subnet (no. 3)"]
    created = [*subnets, "SecurityGroup"]
    after = {f"after ec2: Create{name}" for name in created}
    failures = {failure["at"]: failure["problems"] for failure in tally["failures"]}
    assert failures.keys() == after
    for [problem] in failures.values():
        assert "exists, and external_resources does not report it" in problem
    assert tally["survived"] == tally["tried"] - len(failures)
    assert all("ec2: CreateS" in point for point in tally["points"])


def test_each_planted_bug_is_found(explore):
    flags = ("--kind", "Network", "--patience", "15")
    tallies = explore("tests.support.drills.faulty_rehearsal:CarelessRehearsal", *flags, status=1)
    operations = ["reconcile", "delete", "force_delete", "migrate", "restore"]
    assert [tally["operation"] for tally in tallies] == operations
    reconcile, delete, force_delete, migrate, restore = tallies

    assert "too many" in problems(reconcile, "after outside: create")
    assert problems(reconcile, "before outside: create") == ""

    found = problems(delete, "before outside: delete")
    assert "our finalizer is removed, but Local::Network" in found
    assert "is left outside" in found
    assert problems(delete, "before actuator: delete") == ""

    assert_broken_without_a_kill(force_delete, "is not recorded")
    assert_broken_without_a_kill(migrate, "finalizer of another controller")

    found = problems(restore, "after API: patch networks/status")
    assert "somebody was here before" in found
    assert "not through 15 s after the restart" in found, "it is not waited for for ever"
    assert problems(restore, "before actuator: restore") == ""


def test_each_type_of_a_kind_is_explored_with_its_own_actuator(explore):
    """One of the two has a bug."""
    flags = ("--operation", "delete", "--call", "actuator: delete")
    first, second = explore("tests.support.drills.affordable:OneKeeps", *flags, status=1)
    assert (first["kind"], second["kind"]) == ("Extension", "Extension-second")
    assert_broken_without_a_kill(second, "ConfigMap shoot--drill-")
    assert first["failures"] == []
    assert first["survived"] == first["tried"] == 2 * len(first["points"]) > 0


def assert_broken_without_a_kill(tally, words):
    """It is not killed, then."""
    assert tally["tried"] == 0
    assert [failure["at"] for failure in tally["failures"]] == [""]
    assert words in problems(tally, "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tests.support.drills.faulty_rehearsal:Nothing"], "has no 'Nothing'"),
        (
            ["tests.support.drills.faulty_rehearsal:CarelessRehearsal", "--kind", "Worker"],
            "this rehearsal has Network",
        ),
        (
            ["tests.support.drills.affordable:AnotherType"],
            "spec.type is 'filter', which no actuator of the drill serves",
        ),
    ],
)
def test_bad_input_gets_one_sentence(command, arguments, words):
    done = command("explore", *arguments, status=3)
    assert words in done.stderr
