"""The time limits of a failing deletion, as a table."""

from typing import Any

import pytest

from actuator import ErrorCode
from generic.reconciler.failure import checked, gives_up

AUTH = ErrorCode.ERR_INFRA_UNAUTHORIZED
QUOTA = ErrorCode.ERR_INFRA_QUOTA_EXCEEDED
LIMITS = {QUOTA: None, AUTH: 100, None: 1000}


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
def test_the_first_entry_with_a_code_of_the_error_decides(codes, seconds, answer):
    assert gives_up(LIMITS, codes, seconds) is answer


def test_without_a_limit_a_deletion_is_never_given_up():
    assert not gives_up({}, [AUTH], 10**12)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({None: -1}, "finite"),
        ({None: float("inf")}, "finite"),
        ({None: float("nan")}, "finite"),
        ({None: "1h"}, "finite"),
        ({"ERR_QUOTA": 1}, "ERR_QUOTA"),
        (3600, r"expected a dict such as \{None: 3600\}, got 3600"),
    ],
)
def test_an_invalid_limit_is_refused(limits, words):
    with pytest.raises((TypeError, ValueError), match=words):
        checked(limits)


def test_a_code_may_be_written_as_text():
    limits: Any = {"ERR_INFRA_UNAUTHORIZED": 60}
    assert checked(limits) == {AUTH: 60.0}


def test_a_limit_of_none_is_kept():
    assert checked(LIMITS) == LIMITS
