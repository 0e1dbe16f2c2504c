"""Escalation: how long a failing deletion is retried, by error code. Pure data.

Without any, a deletion is retried for ever, with a capped backoff, as in Gardener. Force deletions
have their budget instead.
"""

from collections.abc import Collection, Sequence
from enum import StrEnum

import attrs

from actuator.errors import ErrorCode, check_seconds


class Then(StrEnum):
    """The reaction when a deletion was retried for long enough."""

    GO_ON = "GoOn"
    GIVE_UP = "GiveUp"
    """The deletion is not retried before it is requested again."""


@attrs.frozen(kw_only=True)
class Escalation:
    """The reaction to errors with `code` (None for any error), `after` so many seconds.

    The seconds count from the object's deletionTimestamp, so a restart changes nothing.
    """

    after: float = attrs.field(converter=check_seconds)
    then: Then
    code: ErrorCode | None = None


def gives_up(
    escalations: Sequence[Escalation], codes: Collection[ErrorCode], seconds: float
) -> bool:
    """Whether a deletion that failed with these codes for so many seconds is given up.

    The first escalation with one of the codes, or without a code, decides.
    """
    for one in escalations:
        if one.code is None or one.code in codes:
            return one.then is Then.GIVE_UP and seconds >= one.after
    return False
