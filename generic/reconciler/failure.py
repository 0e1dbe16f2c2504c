"""Failure: the consequences of an error for an object and its next attempt. Pure.

`classify` is called once for each failed attempt. Not here: writing the status (`attempt`), and
logs, events and metrics (`reporter`).
"""

from collections.abc import Collection, Mapping
from datetime import datetime

from msgspec import Struct

from actuator.errors import CallAbandoned, ErrorCode, LeaseLost, check_seconds
from actuator.meta import parse_time
from generic.controller.controller import Again, Done, Failed, Result
from generic.kube.errorinfo import ErrorInfo
from generic.reconciler.blocked import blocked_message
from generic.reconciler.operation import Operation
from generic.reconciler.status import Failure

MAX_DELETION_BACKOFF_SECONDS = 60.0
"""Maximum seconds between two attempts at a deletion."""
MAX_FORCED_BACKOFF_SECONDS = 5.0
"""The same for a force deletion, regardless of earlier failures: its budget is short."""

Limits = Mapping[ErrorCode | None, float | None]
"""How many seconds after its deletionTimestamp a failing deletion is retried, by error code.

The entry None is for all other errors. Without an entry, or with None, it is retried without limit,
as in Gardener. Force deletions have their budget instead.
"""
GiveUpAfter = Mapping[ErrorCode, float | None] | Mapping[None, float | None] | Limits
"""The same, as an author may write it: a dict with fewer types of keys is of another type."""


class Waiting(Struct, frozen=True):
    """The operation is unfinished, without an error."""

    text: str


def classify(
    error: ErrorInfo,
    operation: Operation,
    attempts: int,
    since: str | None,
    now: datetime | None,
    limits: Limits,
) -> tuple[Failure | Waiting | None, Result]:
    """Return the content of the status, None for no change, and the time of the next attempt.

    `attempts` is the number of failures in a row, this one included; `since` the object's
    deletionTimestamp; `now` is None while the wall clock cannot be trusted: no time has passed.
    """
    if error.is_a(CallAbandoned):
        return None, Again(0)
    if error.is_a(LeaseLost):
        return None, Done()  # the new leader reads the object itself
    if error.waits:
        return Waiting(error.text), Again(error.requeue_after or 0.0)
    is_delete = operation is Operation.DELETE and since is not None
    last = is_delete and gives_up(limits, error.codes, seconds_since(since, now))
    blocked = None
    if operation.deletes:
        blocked = error.blocked_reason, blocked_message(error.text, attempts, since, gives_up=last)
    failure = Failure(
        text=error.text, codes=error.codes, reason=error.reason, blocked=blocked, gives_up=last
    )
    return failure, _next(error, operation, gives_up=last)


def checked(limits: GiveUpAfter) -> Limits:
    """Return the limits. Raises TypeError, and ValueError for an unknown code or invalid time."""
    if not isinstance(limits, Mapping):
        raise TypeError(f"expected a dict such as {{None: 3600}}, got {limits!r}")
    return {
        None if code is None else ErrorCode(code): None if after is None else check_seconds(after)
        for code, after in limits.items()
    }


def gives_up(limits: Limits, codes: Collection[ErrorCode], seconds: float) -> bool:
    """Whether a deletion that failed with these codes for so many seconds is given up.

    The first entry with one of the codes decides; without any, the entry None.
    """
    code = next((code for code in limits if code in codes), None)
    after = limits.get(code)
    return after is not None and seconds >= after


def _next(error: ErrorInfo, operation: Operation, *, gives_up: bool) -> Result:
    cap = MAX_DELETION_BACKOFF_SECONDS if operation.deletes else None
    if operation is Operation.FORCE_DELETE:
        cap = MAX_FORCED_BACKOFF_SECONDS
    if gives_up:
        return Done()
    if error.requeue_after is not None:
        return Again(error.requeue_after)
    if error.retry_after is not None:
        return Again(min(max(error.retry_after, 1.0), cap or MAX_DELETION_BACKOFF_SECONDS))
    return Failed(cap=cap)


def seconds_since(timestamp: str | None, now: datetime | None) -> float:
    """Return the seconds from an RFC 3339 timestamp to `now`; 0 if one of them is None."""
    if timestamp is None or now is None:
        return 0.0
    return (now - parse_time(timestamp)).total_seconds()
