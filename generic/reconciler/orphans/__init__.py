"""Records of force deletions: of each one, and of external resources that may remain (Orphans)."""

from generic.reconciler.orphans.forced import FORCE_DELETIONS, RECORD_KINDS, ForceDeletionRecord
from generic.reconciler.orphans.kind import (
    KIND_LABEL,
    ORPHANS,
    SHOOT_LABEL,
    Orphan,
    OrphanedFrom,
    OrphanReason,
    OrphanState,
)
from generic.reconciler.orphans.record import UNKNOWN, mark_gone, record_all, recordable, remaining

__all__ = [
    "FORCE_DELETIONS",
    "KIND_LABEL",
    "ORPHANS",
    "RECORD_KINDS",
    "SHOOT_LABEL",
    "UNKNOWN",
    "ForceDeletionRecord",
    "Orphan",
    "OrphanReason",
    "OrphanState",
    "OrphanedFrom",
    "mark_gone",
    "record_all",
    "recordable",
    "remaining",
]
