"""Escalations, as a table."""

import pytest

from actuator import ErrorCode
from generic.reconciler.deletion.escalation import Escalation, Then, gives_up

AUTH = ErrorCode.ERR_INFRA_UNAUTHORIZED
QUOTA = ErrorCode.ERR_INFRA_QUOTA_EXCEEDED
RULES = [
    Escalation(code=QUOTA, after=0, then=Then.GO_ON),
    Escalation(code=AUTH, after=100, then=Then.GIVE_UP),
    Escalation(after=1000, then=Then.GIVE_UP),
]


@pytest.mark.parametrize(
    ("codes", "seconds", "answer"),
    [
        ([], 999, False),
        ([], 1000, True),
        ([AUTH], 99, False),
        ([AUTH], 100, True),
        ([QUOTA], 10**9, False),
        ([AUTH, QUOTA], 10**9, False),
    ],
)
def test_the_first_that_is_about_an_error_decides(codes, seconds, answer):
    assert gives_up(RULES, codes, seconds) is answer


def test_without_any_a_deletion_is_tried_for_ever():
    assert not gives_up([], [AUTH], 10**12)


@pytest.mark.parametrize("after", [-1, float("inf"), float("nan")])
def test_a_time_that_is_none_is_refused(after):
    with pytest.raises(ValueError, match="finite"):
        Escalation(after=after, then=Then.GO_ON)
