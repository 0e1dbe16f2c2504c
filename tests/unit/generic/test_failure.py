"""The consequences of an error for an object and its next attempt."""

from datetime import UTC, datetime

import pytest

from actuator.errors import (
    ActuatorError,
    ApiError,
    CallAbandoned,
    DeadlineExceeded,
    ErrorCode,
    LeaseLost,
    RequeueAfter,
)
from generic.controller.controller import Again, Done, Failed
from generic.kube.errorinfo import read_error
from generic.reconciler.failure import Waiting, classify, seconds_since
from generic.reconciler.operation import Operation
from generic.reconciler.status import Failure

SINCE = "2026-01-01T00:00:00Z"
NOW = datetime(2026, 1, 1, 0, 10, tzinfo=UTC)
DENIED = ErrorCode.ERR_INFRA_UNAUTHENTICATED
GIVES_UP = {DENIED: 600}


def classified(error, operation=Operation.RECONCILE, attempts=1, limits=None):
    since = SINCE if operation.deletes else None
    return classify(read_error(error), operation, attempts, since, NOW, limits or {})


@pytest.mark.parametrize(
    ("error", "operation", "result"),
    [
        (ValueError("x"), Operation.RECONCILE, Failed()),
        (ValueError("x"), Operation.MIGRATE, Failed()),
        (ValueError("x"), Operation.DELETE, Failed(cap=60.0)),
        (ValueError("x"), Operation.FORCE_DELETE, Failed(cap=5.0)),
        (DeadlineExceeded("x"), Operation.DELETE, Failed(cap=60.0)),
        (RequeueAfter(7, cause=ValueError("x")), Operation.DELETE, Again(7)),
        (ApiError(429, "x", retry_after=0.1), Operation.RECONCILE, Again(1.0)),
        (ApiError(429, "x", retry_after=3), Operation.FORCE_DELETE, Again(3)),
        (ApiError(429, "x", retry_after=900), Operation.RECONCILE, Again(60.0)),
        (ApiError(429, "x", retry_after=900), Operation.FORCE_DELETE, Again(5.0)),
    ],
)
def test_a_failure_is_retried_with_the_backoff_of_its_operation(error, operation, result):
    failure, got = classified(error, operation)
    assert got == result
    assert "x" in failure.text


@pytest.mark.parametrize(
    ("error", "result"), [(CallAbandoned("x"), Again(0)), (LeaseLost("x"), Done())]
)
def test_a_call_that_had_to_stop_shows_nothing(error, result):
    assert classified(error, Operation.DELETE) == (None, result)


@pytest.mark.parametrize("operation", [item for item in Operation if item.calls])
def test_requeue_after_without_a_cause_waits_in_every_operation(operation):
    failure, result = classified(RequeueAfter(30, "the VPC is pending"), operation)
    assert isinstance(failure, Waiting)
    assert "VPC" in failure.text
    assert result == Again(30)


@pytest.mark.parametrize("operation", [item for item in Operation if item.calls])
def test_only_a_deletion_has_a_blocked_reason(operation):
    failure, _ = classified(ActuatorError("x", codes=[DENIED]), operation, attempts=3)
    assert (failure.blocked is not None) is operation.deletes
    assert failure.codes == (DENIED,)
    if failure.blocked:
        reason, message = failure.blocked
        assert reason == "ActuatorError"
        assert "3 failed attempts in a row, next attempt within 60 s" in message


@pytest.mark.parametrize(
    ("operation", "codes", "seconds", "gives_up"),
    [
        (Operation.DELETE, [DENIED], 600, True),
        (Operation.DELETE, [DENIED], 601, False),
        (Operation.DELETE, [], 600, False),
        (Operation.FORCE_DELETE, [DENIED], 600, False),
        (Operation.RECONCILE, [DENIED], 600, False),
    ],
)
def test_a_deletion_alone_is_given_up_after_its_limit(operation, codes, seconds, gives_up):
    rules = {DENIED: seconds}
    failure, result = classified(ActuatorError("x", codes=codes), operation, 1, rules)
    assert failure.gives_up is gives_up
    assert (result == Done()) is gives_up


@pytest.mark.parametrize(
    ("since", "now", "limits", "gives_up"),
    [
        pytest.param(SINCE, NOW, GIVES_UP, True, id="given up"),
        pytest.param(SINCE, None, GIVES_UP, False, id="no trusted wall clock"),
        pytest.param(None, NOW, GIVES_UP, False, id="no deletionTimestamp"),
        pytest.param(SINCE, NOW, {}, False, id="no limit"),
    ],
)
def test_a_failed_deletion_has_all_of_its_error_in_the_status(since, now, limits, gives_up):
    error = read_error(ActuatorError("no", codes=[DENIED], reason="Lost"))
    failure, result = classify(error, Operation.DELETE, 2, since, now, limits)
    retried = "2 failed attempts in a row, next attempt within 60 s"
    given_up = "2 failed attempts in a row, no retry until the spec or the annotation"
    assert isinstance(failure, Failure)
    assert failure.blocked is not None
    assert failure.blocked[0] == "Lost"
    assert failure.blocked[1].startswith(f"no; terminating since {since}, ")
    assert (given_up if gives_up else retried) in failure.blocked[1]
    assert failure == Failure(
        text="no", codes=(DENIED,), reason="Lost", blocked=failure.blocked, gives_up=gives_up
    )
    assert result == (Done() if gives_up else Failed(cap=60.0))


def test_only_an_error_of_its_own_counts_as_waiting():
    """A cause is an error, at the time that the actuator asked for."""
    failure, result = classified(RequeueAfter(0, cause=ValueError("x")))
    assert isinstance(failure, Failure)
    assert result == Again(0)
    assert classified(RequeueAfter(0, "later"))[1] == Again(0)


@pytest.mark.parametrize(
    ("timestamp", "now", "seconds"),
    [
        (SINCE, NOW, 600.0),
        (None, NOW, 0.0),
        (SINCE, None, 0.0),
        (None, None, 0.0),
        ("2026-01-01T01:00:00+01:00", NOW, 600.0),
    ],
)
def test_the_seconds_since_a_timestamp_need_both_times(timestamp, now, seconds):
    assert seconds_since(timestamp, now) == seconds
