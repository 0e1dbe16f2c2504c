"""Label values that are enumerations, and bounds of histograms. Not here: metrics."""

from enum import StrEnum

# controller-runtime's bounds of controller_runtime_reconcile_time_seconds.
RECONCILE_SECONDS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8),
    *(0.9, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50),
    60,
)
# Not client-go's: one bound per decade is too coarse for a P99. Dashboards depend on names only.
QUEUE_SECONDS = (*(0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1000),)
CALL_SECONDS = (0.5, 1, 5, 15, 60, 300, 1200, 3600)
DELETION_SECONDS = (5, 15, 30, 60, 120, 300, 600, 1800, 3600, 86400)
FORCE_SECONDS = (1, 5, 10, 30, 60, 90, 300)
AGES = (60, 1800, 3600, 21600, 86400)
ORPHAN_AGES = {"1d": 86400, "7d": 604800, "30d": 2592000}
"""Upper bounds of the ages of open Orphans in seconds; an older one has the age OLDER."""
OLDER = "older"

OPERATIONS = ("reconcile", "delete", "force_delete", "migrate", "restore")
"""The operations of an actuator, as label values."""


class ReconcileResult(StrEnum):
    """The results of a reconcile in controller-runtime."""

    SUCCESS = "success"
    ERROR = "error"
    REQUEUE = "requeue"
    REQUEUE_AFTER = "requeue_after"


class TryResult(StrEnum):
    """The result of an attempt at an operation."""

    SUCCESS = "success"
    PENDING = "pending"
    """The attempt asked to be called again."""
    ERROR = "error"
    TERMINAL = "terminal"
    """The attempt failed, and is not retried before the object changes."""


class Outcome(StrEnum):
    """The outcome of one pass over an object under deletion.

    Counted after the API server acknowledged the writes of the outcome.
    """

    DELETED = "deleted"
    FORCE_DELETED = "force_deleted"
    ORPHANED = "orphaned"
    """Released although external resources may remain; wins over the two above."""
    FAILED = "failed"
    GAVE_UP = "gave_up"
    SKIPPED = "skipped"

    @property
    def final(self) -> bool:
        """Whether our finalizer was released: at most once for each object."""
        return self in _FINAL


_FINAL = frozenset({Outcome.DELETED, Outcome.FORCE_DELETED, Outcome.ORPHANED})


class TerminatingState(StrEnum):
    """The state of an object under deletion; each object has exactly one."""

    DELETING = "deleting"
    FAILING = "failing"
    GAVE_UP = "gave_up"
    SKIPPED = "skipped"
    """The actuator is not called: the shoot is failed, or its state is awaited."""
    FOREIGN_FINALIZER = "foreign_finalizer"
    """Our finalizer is removed; those of other controllers remain."""


class RelistReason(StrEnum):
    """The reason for a complete list: the first one, after a 410, another error, or a restore."""

    INITIAL = "initial"
    EXPIRED = "expired"
    ERROR = "error"
    RESTORED = "restored"
    """The API server went back to an older version, as after a restore of etcd."""
