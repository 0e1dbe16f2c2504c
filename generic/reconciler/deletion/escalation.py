"""Escalation: how long a deletion that fails is tried, by error code, and what then. Pure data.

Without any, a deletion is tried for ever, with a capped backoff, as Gardener does. Force deletions
have their budget instead.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum

import attrs

from actuator.errors import ErrorCode, check_seconds

__all__ = ["Escalation", "Then", "gives_up"]


class Then(StrEnum):
    """What happens when a deletion has been tried for long enough."""

    GO_ON = "GoOn"
    GIVE_UP = "GiveUp"
    """Nothing is tried any more before something about the object changes."""


@attrs.frozen(kw_only=True)
class Escalation:
    """For errors with `code` (any error where that is None): after so many seconds, then what.

    The seconds count from the object's deletionTimestamp, so a restart changes nothing.
    """

    after: float = attrs.field(converter=check_seconds)
    then: Then
    code: ErrorCode | None = None


def gives_up(
    escalations: Sequence[Escalation], codes: Collection[ErrorCode], seconds: float
) -> bool:
    """Whether a deletion that fails with these codes, tried for so long, is tried no more.

    The first escalation that is about one of the codes, or about all errors, decides.
    """
    for one in escalations:
        if one.code is None or one.code in codes:
            return one.then is Then.GIVE_UP and seconds >= one.after
    return False
