"""Orphans: records of external resources that may remain after force deletions."""

from generic.reconciler.orphans.kind import (
    KIND_LABEL,
    ORPHANS,
    SHOOT_LABEL,
    Orphan,
    OrphanedFrom,
    OrphanReason,
    OrphanState,
)
from generic.reconciler.orphans.record import (
    UNKNOWN,
    mark_gone,
    record,
    record_all,
    recordable,
    remaining,
)

__all__ = [
    "KIND_LABEL",
    "ORPHANS",
    "SHOOT_LABEL",
    "UNKNOWN",
    "Orphan",
    "OrphanReason",
    "OrphanState",
    "OrphanedFrom",
    "mark_gone",
    "record",
    "record_all",
    "recordable",
    "remaining",
]
