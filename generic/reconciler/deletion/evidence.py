"""Evidence: writes the record of a force deletion, or reports that it could not be written.

Not here: the content of the record (`orphans.forced`), and when it is written (`force_deletion` and
`late_cleanup`).
"""

from datetime import timedelta

from actuator.errors import ApiError, Forbidden, Invalid, NotFound
from actuator.meta import format_time
from generic.kube.dropped import NotStored
from generic.reconciler.budget import Budget
from generic.reconciler.invoker import Invoker
from generic.reconciler.orphans.forced import (
    Ended,
    ForceDeletionRecord,
    forced_record,
    write_record,
)
from generic.reconciler.orphans.probe import refused
from generic.reconciler.reporter import Reporter

_PERMANENT = (Forbidden, Invalid, NotFound, NotStored)
"""Answers to a record that another attempt would hardly change."""


def leave_record(
    invoker: Invoker,
    budget: Budget,
    report: Reporter,
    ended: Ended,
    seconds: float,
    is_retried: bool,
) -> None:
    """Leave a record of a force deletion that ends now; one request waits at most `seconds`.

    A record that is refused, or that is not retried, is logged. Raises ApiError if another attempt
    is to write it.
    """
    now = invoker.clock.now()
    used = invoker.clock.monotonic() - budget.since
    record = forced_record(
        report.orphaned_from,
        budget,
        ended,
        forced_at=format_time(now - timedelta(seconds=used)),
        finished_at=format_time(now),
        used_seconds=used,
    )
    try:
        write_record(invoker.client, record, seconds)
    except ApiError as error:
        if is_retried and not isinstance(error, _PERMANENT):
            raise
        report.not_recorded(record, not_written(error))


def not_written(error: ApiError) -> str:
    """Return the message of a record that could not be written, with the remedy."""
    return f"cannot write the record: {refused(error, ForceDeletionRecord)}"
