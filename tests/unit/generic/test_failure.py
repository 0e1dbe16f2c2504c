"""What an error means for an object, and for its next attempt."""

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
from generic.reconciler.deletion.escalation import Escalation, Then
from generic.reconciler.failure import Waiting, classify
from generic.reconciler.operation import Operation

SINCE = "2026-01-01T00:00:00Z"
NOW = datetime(2026, 1, 1, 0, 10, tzinfo=UTC)
DENIED = ErrorCode.ERR_INFRA_UNAUTHENTICATED
GIVES_UP = [Escalation(after=600, then=Then.GIVE_UP, code=DENIED)]


def classified(error, operation=Operation.RECONCILE, attempts=1, escalations=()):
    since = SINCE if operation.deletes else None
    return classify(read_error(error), operation, attempts, since, NOW, escalations)


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


def test_requeue_after_without_a_cause_waits_in_every_operation():
    for operation in (one for one in Operation if one.calls):
        failure, result = classified(RequeueAfter(30, "the VPC is pending"), operation)
        assert isinstance(failure, Waiting)
        assert "VPC" in failure.text
        assert result == Again(30)


@pytest.mark.parametrize("operation", [one for one in Operation if one.calls])
def test_only_a_deletion_shows_what_blocks_it(operation):
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
def test_a_deletion_alone_is_given_up_after_the_time_of_its_escalation(
    operation, codes, seconds, gives_up
):
    rules = [Escalation(after=seconds, then=Then.GIVE_UP, code=DENIED)]
    failure, result = classified(ActuatorError("x", codes=codes), operation, 1, rules)
    assert failure.gives_up is gives_up
    assert (result == Done()) is gives_up
