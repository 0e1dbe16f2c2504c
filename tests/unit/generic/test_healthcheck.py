"""The meaning of results of health checks, without a cluster."""

import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from actuator import ErrorCode
from actuator.errors import ActuatorError, Unavailable
from actuator.interface import SHOOT_ACCESS
from actuator.meta import Condition, format_time
from actuator.v1alpha1 import Infrastructure
from generic.library.healthchecks import Check, HealthChecks, HealthResult, deployment
from generic.library.healthchecks.aggregate import condition
from generic.library.healthchecks.builtin import (
    _daemon_set_problem,
    _deployment_problem,
    _stateful_set_problem,
    machine_problems,
)
from generic.library.healthchecks.runs import Runs
from tests.support.objects.stand_ins import UNUSED

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
GOOD = HealthResult.healthy()
CONFIG = ErrorCode.ERR_CONFIGURATION_PROBLEM
QUOTA = ErrorCode.ERR_INFRA_QUOTA_EXCEEDED


def bad(detail="MyBad", *codes):
    return HealthResult.unhealthy(detail, codes)


def slow(detail="xyz", threshold=60.0):
    return HealthResult.progressing(detail, threshold)


def made(*findings, before=None):
    return condition("ControlPlaneHealthy", findings, before, NOW)


def was(status, seconds=0.0):
    since = format_time(NOW - timedelta(seconds=seconds))
    return Condition(type="ControlPlaneHealthy", status=status, last_transition_time=since)


def test_all_good_is_true():
    found = made(GOOD, GOOD)
    assert (found.status, found.reason) == ("True", "HealthCheckSuccessful")
    assert found.message == "All health checks successful"


def test_one_bad_is_false_with_its_detail_and_codes_each_once():
    found = made(GOOD, bad("MyBad", CONFIG), bad("MyBad2.", QUOTA, CONFIG))
    assert (found.status, found.reason) == ("False", "HealthCheckUnsuccessful")
    assert found.message == "1) MyBad. 2) MyBad2."
    assert found.codes == [CONFIG.value, QUOTA.value]


def test_an_error_in_a_check_makes_the_condition_unknown_despite_other_results():
    found = made(bad(), slow(), Unavailable(0, "no answer"), GOOD)
    assert (found.status, found.reason) == ("Unknown", "ConditionCheckError")
    assert found.message == (
        "failed to execute 1 health check: Unable to execute check: no answer. "
        "Failed check: MyBad. Progressing check: xyz."
    )
    assert found.codes == []


def test_several_that_cannot_be_checked_are_counted():
    found = made(Unavailable(0, "one"), KeyError("two"))
    assert found.message == "failed to execute 2 health checks: 1) one. 2) KeyError: 'two'."


@pytest.mark.parametrize(
    ("findings", "message"),
    [
        ([bad()], "MyBad."),
        ([slow(), slow("abc")], "1) xyz. 2) abc."),
        ([bad(), slow()], "Failed check: MyBad. Progressing check: xyz."),
        (
            [bad(), bad("MyBad2"), slow(), slow("xtc")],
            "Failed checks: 1) MyBad. 2) MyBad2. Progressing checks: 1) xyz. 2) xtc.",
        ),
    ],
)
def test_the_message_format_is_gardeners(findings, message):
    assert made(*findings).message == message


@pytest.mark.parametrize(
    ("before", "status"),
    [
        pytest.param(None, "Progressing", id="never looked before"),
        pytest.param(was("True", 9999), "Progressing", id="an old True restarts the grace"),
        pytest.param(was("False", 1), "False", id="an old False stays"),
        pytest.param(was("Progressing", 60), "Progressing", id="within the threshold"),
        pytest.param(was("Progressing", 61), "False", id="longer than the threshold"),
        pytest.param(was("Unknown", 61), "False", id="unknown for longer than the threshold"),
        pytest.param(was("Progressing", -59), "Progressing", id="clocks differ by a little"),
        pytest.param(was("Progressing", -61), "False", id="a start by a clock that was wrong"),
    ],
)
def test_progressing_is_fine_for_the_smallest_threshold(before, status):
    found = made(GOOD, slow(threshold=300), slow(threshold=60), slow(threshold=None), before=before)
    assert found.status == status
    reason = "HealthCheckProgressing" if status == "Progressing" else "HealthCheckUnsuccessful"
    assert found.reason == reason


def test_progressing_without_a_threshold_is_false():
    assert made(slow(threshold=None), before=was("True")).status == "False"


@pytest.mark.parametrize(
    ("threshold", "before", "status"),
    [
        pytest.param(60.0, was("True"), "Progressing", id="begins"),
        pytest.param(60.0, was("Progressing", 60), "Progressing", id="within"),
        pytest.param(60.0, was("Progressing", 61), "False", id="longer"),
        pytest.param(None, was("True"), "False", id="no threshold"),
    ],
)
def test_an_unhealthy_result_is_accepted_for_the_threshold_of_its_check(threshold, before, status):
    check = Check("ControlPlaneHealthy", lambda _ctx: bad("b", CONFIG), threshold=threshold)
    found = made(check.run(UNUSED), before=before)
    assert (found.status, found.message, found.codes) == (status, "b.", [CONFIG.value])


@pytest.mark.parametrize("threshold", [0.0, -1.0])
def test_a_threshold_without_time_is_refused(threshold):
    with pytest.raises(ValueError, match="threshold"):
        Check("X", lambda _ctx: GOOD, threshold=threshold)


def test_progressing_beside_something_bad_is_false():
    assert made(slow(), bad(), before=was("True")).status == "False"


def test_checks_run_in_parallel_and_one_that_hangs_delays_no_other():
    gate = threading.Event()
    meet = threading.Barrier(2, timeout=20)
    runs = Runs()

    def hangs():
        gate.wait(30)
        return GOOD

    def meets():
        meet.wait()  # passes only if both run at the same time
        return GOOD

    started = time.monotonic()
    hung, *met = runs.run("uid", [hangs, meets, meets], 3.0)
    assert time.monotonic() - started < 20
    assert met == [GOOD, GOOD]
    assert isinstance(hung, ActuatorError)
    assert "3 s" in str(hung)
    gate.set()


def test_a_check_that_still_hangs_is_not_started_twice():
    gate = threading.Event()
    begun = threading.Event()
    calls = []
    runs = Runs()

    def hangs():
        calls.append(1)
        begun.set()
        gate.wait(30)
        return GOOD

    for _ in range(3):
        assert isinstance(runs.run("uid", [hangs], 0.05)[0], ActuatorError)
    assert begun.wait(20)
    assert len(calls) == 1
    gate.set()
    deadline = time.monotonic() + 60
    while runs.run("uid", [hangs], 1.0) != [GOOD]:
        assert time.monotonic() < deadline
    assert len(calls) >= 2


def test_a_check_that_ends_the_process_ends_nothing():
    def leaves():
        raise SystemExit(3)

    (found,) = Runs().run("uid", [leaves], 5)
    assert str(found).startswith("SystemExit: 3 (test_healthcheck.py:")


def test_a_pre_check_that_returns_false_counts_as_good():
    check = Check("X", lambda ctx: bad(), lambda ctx: False)
    assert check.run(UNUSED) == GOOD


def test_codes_for_a_detail_are_added_to_those_of_the_result():
    check = Check("X", lambda ctx: bad("quota", CONFIG), classify=lambda detail: [QUOTA, CONFIG])
    assert check.run(UNUSED).codes == (CONFIG, QUOTA)


def test_a_check_that_returns_another_type_is_an_error():
    with pytest.raises(TypeError, match="expected a HealthResult"):
        Check("X", lambda ctx: True).run(UNUSED)  # type: ignore[arg-type, return-value]


def test_registrations_that_make_no_sense_are_refused():
    check = Check("X", lambda ctx: GOOD)
    with pytest.raises(ValueError, match="stale"):
        HealthChecks(cls=Infrastructure, types=["a"], checks=[check], stale_conditions=["X"])
    with pytest.raises(ValueError, match="checks"):
        HealthChecks(cls=Infrastructure, types=["a"], checks=[])
    with pytest.raises(ValueError, match="sync_period"):
        HealthChecks(cls=Infrastructure, types=["a"], checks=[check], sync_period=0)


def test_permissions_cover_reads_in_the_seed_and_none_in_the_shoot():
    checks = HealthChecks(
        cls=Infrastructure,
        types=["a"],
        checks=[
            Check("X", deployment("mcm")),
            Check("X", deployment("dns", shoot_namespace="kube-system")),
        ],
    )
    read = {(str(p.resource), tuple(p.verbs)) for p in checks.permissions}
    assert read == {("deployments.apps", ("get",)), ("secrets", ("get",))}


def test_only_who_looks_into_the_shoot_may_read_its_kubeconfig():
    check = Check("X", deployment("m"))
    seed_only = HealthChecks(cls=Infrastructure, types=["a"], checks=[check])
    assert SHOOT_ACCESS not in list(seed_only.permissions)
    check = Check("X", lambda ctx: GOOD, permissions=[SHOOT_ACCESS])
    assert list(HealthChecks(cls=Infrastructure, types=["a"], checks=[check]).permissions)


def test_one_type_or_several():
    check = Check("X", lambda ctx: GOOD)
    assert HealthChecks(cls=Infrastructure, types="aws", checks=[check]).types == ("aws",)
    both = HealthChecks(cls=Infrastructure, types=["aws", "alicloud"], checks=[check])
    assert both.types == ("aws", "alicloud")


def obj(status, spec=None, **meta):
    metadata = {"name": "x", "namespace": "ns", "generation": 2, **meta}
    return {"metadata": metadata, "spec": spec or {}, "status": status}


AVAILABLE = {"type": "Available", "status": "True"}


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        ({"observedGeneration": 2, "conditions": [AVAILABLE]}, None),
        ({"observedGeneration": 1, "conditions": [AVAILABLE]}, "outdated (1/2)"),
        ({"observedGeneration": 2}, '"Available" is missing'),
        (
            {
                "observedGeneration": 2,
                "conditions": [
                    AVAILABLE,
                    {"type": "Progressing", "status": "False", "reason": "R", "message": "m"},
                ],
            },
            '"Progressing" has invalid status False (expected True) due to R: m',
        ),
    ],
)
def test_a_deployment_is_available_up_to_date_and_not_stuck(status, problem):
    found = _deployment_problem(obj(status))
    assert (found is None) if problem is None else (problem in str(found))


@pytest.mark.parametrize(
    ("ready", "spec", "problem"),
    [(1, {}, None), (0, {}, "(0/1)"), (2, {"replicas": 3}, "(2/3)"), (0, {"replicas": 0}, None)],
)
def test_a_stateful_set_has_all_replicas_ready(ready, spec, problem):
    found = _stateful_set_problem(obj({"observedGeneration": 2, "readyReplicas": ready}, spec))
    assert (found is None) if problem is None else (problem in str(found))


@pytest.mark.parametrize(
    ("unavailable", "allowed", "well"),
    [(0, None, True), (1, None, False), (1, 1, True), (2, "25%", True), (3, "25%", False)],
)
def test_a_daemon_set_has_no_more_unavailable_than_an_update_may_take(unavailable, allowed, well):
    rolling = {} if allowed is None else {"rollingUpdate": {"maxUnavailable": allowed}}
    status = {
        "observedGeneration": 2,
        "numberUnavailable": unavailable,
        "desiredNumberScheduled": 8,
    }
    found = _daemon_set_problem(obj(status, {"updateStrategy": rolling}))
    assert (found is None) is well


def test_a_failed_machine_or_an_unhealthy_machine_deployment_is_named():
    failed = {"name": "m-1", "lastOperation": {"description": "no quota"}}
    status = {"observedGeneration": 2, "failedMachines": [failed], "conditions": [AVAILABLE]}
    assert list(machine_problems(obj(status))) == ['machine "m-1" failed: no quota']
    (problem,) = machine_problems(obj({"observedGeneration": 2, "conditions": []}))
    assert problem.startswith('machine deployment "x" in namespace "ns" is unhealthy')
