"""The Gardener contract: gardenlet's rules of readiness, and error codes."""

import re

import pytest

from actuator import ActuatorError, ErrorCode, RequeueAfter
from actuator.classification import determine_error
from actuator.errors import codes_of
from generic.testing.garden import not_ready_because

DONE = {
    "observedGeneration": 2,
    "lastOperation": {
        "type": "Reconcile",
        "state": "Succeeded",
        "lastUpdateTime": "2026-01-01T00:00:10Z",
    },
}
PATTERNS = {code: re.compile(f"text of {code}$", re.IGNORECASE) for code in ErrorCode}


def obj(status, **annotations):
    return {"metadata": {"generation": 2, "annotations": annotations}, "status": status}


def asked(timestamp):
    return obj(DONE, **{"gardener.cloud/timestamp": timestamp})


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (obj(DONE), None),
        (obj({**DONE, "lastError": {"description": "no"}}), "error: no"),
        (obj({**DONE, "observedGeneration": 1}), "generation"),
        (obj(DONE, **{"gardener.cloud/operation": "reconcile"}), "not yet picked up"),
        (obj({"observedGeneration": 2}), "no last operation"),
        (obj({**DONE, "lastOperation": {"state": "Processing"}}), "Processing"),
        (asked("2026-01-01T00:00:10.9Z"), None),
        (asked("2026-01-01T00:00:11Z"), "older than the request"),
        (asked("yesterday"), "yesterday"),
    ],
)
def test_readiness_follows_the_rules_of_gardenlet(seen, reason):
    answer = not_ready_because(seen)
    assert answer is None if reason is None else reason in str(answer)


@pytest.mark.parametrize("code", list(ErrorCode))
def test_each_code_is_known_by_its_text(code):
    determined = determine_error(ValueError(f"TEXT of {code}"), PATTERNS)
    assert codes_of(determined) == (code,)
    assert str(determined) == f"TEXT of {code}"
    assert isinstance(determined.__cause__, ValueError)


def test_an_error_that_fits_nothing_stays_as_it_is():
    error = ValueError("something")
    assert determine_error(error, PATTERNS) is error


def test_codes_that_an_error_carries_win():
    coded = ActuatorError(
        f"text of {ErrorCode.ERR_INFRA_DEPENDENCIES}", codes=[ErrorCode.ERR_INFRA_UNAUTHORIZED]
    )
    assert determine_error(coded, PATTERNS) is coded
    wrapped = RuntimeError("around it")
    wrapped.__cause__ = coded
    assert determine_error(wrapped, PATTERNS) is wrapped


def test_several_may_fit():
    both = {code: re.compile("x") for code in reversed(list(ErrorCode))}
    assert codes_of(determine_error(ValueError("x"), both)) == tuple(sorted(ErrorCode))


def test_when_to_look_again_is_not_lost():
    """Difference: Go's DetermineError hides a RequeueAfterError behind the codes it found."""
    again = RequeueAfter(30, cause=ValueError(f"text of {ErrorCode.ERR_PROBLEMATIC_WEBHOOK}"))
    determined = determine_error(again, PATTERNS)
    assert isinstance(determined, RequeueAfter)
    assert determined.seconds == 30
    assert codes_of(determined) == (ErrorCode.ERR_PROBLEMATIC_WEBHOOK,)
