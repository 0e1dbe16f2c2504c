"""Budget: the time of one force deletion, and what it did so far. Pure.

Not here: the track that keeps it (`track`), and its record (`orphans.forced`).
"""

import math

from msgspec import Struct
from msgspec.structs import replace

from generic.kube.errorinfo import shorten
from generic.reconciler.stripping import Stripped

_MAX_STRIPPED = 100
_MAX_ERRORS = 5
_MAX_TEXT = 1000
"""Bytes of the text of an error."""
RECORD_SECONDS = 90.0
"""How long a record that cannot be written is retried, if force deletions have no budget."""


class SeenError(Struct, frozen=True):
    """An error, and the number of attempts in a row that ended with it."""

    text: str
    codes: tuple[str, ...] = ()
    count: int = 1


class Budget(Struct, frozen=True):
    """The time of one force deletion, in seconds on the monotonic clock, and its course."""

    since: float
    until: float
    """Infinite if force deletions have no budget."""
    over: bool = False
    unresponsive: bool = False
    """The actuator did not return from `external_resources`."""
    errors: tuple[SeenError, ...] = ()
    """The last errors, oldest first."""
    failed_attempts: int = 0
    stripped: tuple[Stripped, ...] = ()
    """The first of the finalizers that were removed from seed objects."""
    stripped_count: int = 0
    record_failed_at: float | None = None
    """When the record could not be written for the first time."""

    @property
    def seconds(self) -> float | None:
        """The length of the budget; None if there is no limit."""
        return None if math.isinf(self.until) else self.until - self.since

    @property
    def last_error(self) -> str:
        """The text of the last error, or ""."""
        return self.errors[-1].text if self.errors else ""

    def remaining(self, now: float) -> float:
        """Return the seconds left at `now`, at least 0."""
        return max(0.0, self.until - now)

    def remaining_for_record(self, now: float) -> float:
        """Return the seconds left to write the record, at least 0.

        Without a budget, they are infinite until the first failure.
        """
        if self.seconds is not None or self.record_failed_at is None:
            return self.remaining(now)
        return max(0.0, self.record_failed_at + RECORD_SECONDS - now)

    def with_failed_record(self, now: float) -> "Budget":
        """Return the budget after the record could not be written at `now`."""
        return self if self.record_failed_at is not None else replace(self, record_failed_at=now)

    def failed(self, text: str, *codes: str) -> "Budget":
        """Return the budget after an attempt that failed with this error."""
        seen = SeenError(shorten(text, _MAX_TEXT), tuple(map(str, codes)))
        errors = self.errors
        if errors and (errors[-1].text, errors[-1].codes) == (seen.text, seen.codes):
            seen = replace(seen, count=errors[-1].count + 1)
            errors = errors[:-1]
        kept = (*errors, seen)[-_MAX_ERRORS:]
        return replace(self, errors=kept, failed_attempts=self.failed_attempts + 1)

    def with_stripped(self, stripped: Stripped) -> "Budget":
        """Return the budget after a finalizer of another controller was removed."""
        kept = self.stripped
        if len(kept) < _MAX_STRIPPED:
            kept = (*kept, stripped)
        return replace(self, stripped=kept, stripped_count=self.stripped_count + 1)
