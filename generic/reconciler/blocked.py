"""The condition DeletionBlocked of an object under deletion. Pure.

lastError is Gardener's and has the error; the condition adds the kind of blocker, the number of
attempts, and the time of the next one.
"""

from collections.abc import Collection

from actuator.errors import ErrorCode
from actuator.meta import Raw
from generic.kube.errorinfo import MAX_TEXT, shorten
from generic.kube.headers import DELETION_BLOCKED
from generic.reconciler.status import condition

NO_RETRY = "no retry until the spec or the annotation gardener.cloud/timestamp changes"
"""The end of a deletion that gave up: other changes cannot change its outcome (`predicates`)."""


def blocked_message(text: str, tries: int, deleting_since: str | None, *, gives_up: bool) -> str:
    """Return the message of the condition."""
    count = "1 failed attempt" if tries == 1 else f"{tries} failed attempts"
    then = NO_RETRY if gives_up else "next attempt within 60 s"
    text = shorten(text, MAX_TEXT - 256)
    return f"{text}; terminating since {deleting_since}, {count} in a row, {then}"


def blocking(
    before: Raw | None, reason: str, message: str, codes: Collection[ErrorCode], now: str
) -> Raw:
    """Return the condition; `before` is the one that the object has now."""
    same = before is not None and (before.get("status"), before.get("reason")) == ("True", reason)
    since = before.get("lastTransitionTime") if before is not None and same else None
    return condition(DELETION_BLOCKED, "True", reason, message, codes=codes, now=now, since=since)
