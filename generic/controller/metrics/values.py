"""The values of labels that are words, and the bounds of histograms. No metrics in here."""

from __future__ import annotations

from enum import StrEnum

# controller-runtime's bounds of controller_runtime_reconcile_time_seconds.
RECONCILE_SECONDS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8),
    *(0.9, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50),
    60,
)
# Not client-go's: with a bound per decade nobody can tell a P99. Dashboards depend on names only.
QUEUE_SECONDS = (*(0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1000),)
CALL_SECONDS = (0.5, 1, 5, 15, 60, 300, 1200, 3600)
DELETION_SECONDS = (5, 15, 30, 60, 120, 300, 600, 1800, 3600, 86400)
FORCE_SECONDS = (1, 5, 10, 30, 60, 90, 300)
AGES = (60, 300, 1800, 3600, 21600, 86400)

OPERATIONS = ("reconcile", "delete", "force_delete", "migrate", "restore")
"""The operations of an actuator, as metrics call them."""


class ReconcileResult(StrEnum):
    """How controller-runtime calls the ends of a reconcile."""

    SUCCESS = "success"
    ERROR = "error"
    REQUEUE = "requeue"
    REQUEUE_AFTER = "requeue_after"


class TryResult(StrEnum):
    """How a try at an operation ended."""

    SUCCESS = "success"
    PENDING = "pending"
    """It asked to be called again."""
    ERROR = "error"
    TERMINAL = "terminal"
    """It failed, and is not tried again before something changes."""


class Outcome(StrEnum):
    """How one pass over an object under deletion ended.

    Counted after the API server acknowledged what the outcome says.
    """

    DELETED = "deleted"
    FORCE_DELETED = "force_deleted"
    ORPHANED = "orphaned"
    """Released although something outside may remain; wins over the two above."""
    FAILED = "failed"
    GAVE_UP = "gave_up"
    SKIPPED = "skipped"

    @property
    def final(self) -> bool:
        """Whether our finalizer came off: at most once for each object."""
        return self in _FINAL


_FINAL = frozenset({Outcome.DELETED, Outcome.FORCE_DELETED, Outcome.ORPHANED})


class TerminatingState(StrEnum):
    """How an object under deletion stands; each has exactly one state."""

    DELETING = "deleting"
    FAILING = "failing"
    GAVE_UP = "gave_up"
    SKIPPED = "skipped"
    """The actuator is not called: the shoot has failed, or its state is waited for."""
    FOREIGN_FINALIZER = "foreign_finalizer"
    """Ours is off; it waits for others."""


class RelistReason(StrEnum):
    """Why an informer listed everything: the first time, after a 410, or after another error."""

    INITIAL = "initial"
    EXPIRED = "expired"
    ERROR = "error"
