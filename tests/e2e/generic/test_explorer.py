"""`actuator explore`: what is sound survives every kill, and each planted bug is found."""

import json

import pytest

pytestmark = pytest.mark.long


@pytest.fixture
def explore(command):
    """Explores a rehearsal in this process; what it found."""

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
            "moving:OneNetwork", ["reconcile", "force_delete", "migrate"], id="a Network alone"
        ),
        pytest.param(
            "extensions.local.rehearsal:LocalRehearsal", ["delete"], id="after all other kinds"
        ),
    ],
)
def test_the_local_network_survives_every_kill(explore, rehearsal, operations):
    """In all operations but restore, which the next test explores."""
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


def test_a_restore_survives_every_kill_and_each_request_to_the_cloud_is_a_point(explore):
    flags = ("--kind", "Infrastructure", "--operation", "restore")
    [tally] = explore("extensions.aws.rehearsal:AwsRehearsal", *flags)
    assert tally["failures"] == []
    assert tally["tried"] == tally["survived"] > 0
    assert tally["tried"] + tally["missed"] == 2 * len(tally["points"])
    assert "actuator: restore" in tally["points"]
    assert {"ec2: DescribeVpcs", "ec2: DescribeSubnets"} <= set(tally["points"])


def test_a_resource_that_is_not_reported_after_a_kill_is_found(explore):
    """Between its creation and the next status. The other calls: test_aws_flow.py."""
    flags = ("--kind", "Infrastructure", "--operation", "reconcile", "--call", "ec2: Create")
    [tally] = explore("forgetful:ForgetfulRehearsal", *flags, status=1)
    created = ["Vpc", "Subnet", "Subnet (no. 2)", "Subnet (no. 3)", "SecurityGroup"]
    after = {f"after ec2: Create{name}" for name in created}
    failures = {failure["at"]: failure["problems"] for failure in tally["failures"]}
    assert failures.keys() == after
    for [problem] in failures.values():
        assert "exists, and external_resources does not report it" in problem
    assert tally["survived"] == tally["tried"] - len(failures)
    assert all("ec2: Create" in point for point in tally["points"])


def test_each_planted_bug_is_found(explore):
    flags = ("--kind", "Network", "--patience", "15")
    tallies = explore("careless:CarelessRehearsal", *flags, status=1)
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


def assert_broken_without_a_kill(tally, words):
    """It is not killed, then."""
    assert tally["tried"] == 0
    assert [failure["at"] for failure in tally["failures"]] == [""]
    assert words in problems(tally, "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["careless:Nothing"], "has no 'Nothing'"),
        (["careless:CarelessRehearsal", "--kind", "Worker"], "this rehearsal has Network"),
        (["all_of_it:TwoTypes"], "Two types has several actuators of one kind; explore a rehears"),
    ],
)
def test_bad_input_gets_one_sentence(command, arguments, words):
    done = command("explore", *arguments, status=3)
    assert words in done.stderr
