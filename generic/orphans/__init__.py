"""The record of what force deletions left outside the seed."""

from generic.orphans.kind import ORPHANS, Orphan, OrphanedFrom, OrphanReason, OrphanState
from generic.orphans.record import record

__all__ = ["ORPHANS", "Orphan", "OrphanReason", "OrphanState", "OrphanedFrom", "record"]
