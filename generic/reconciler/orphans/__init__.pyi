# The names of the package, for type checkers and for `__init__.py`.

from generic.reconciler.orphans.forced import (
    FORCE_DELETIONS as FORCE_DELETIONS,
    ForceDeletionRecord as ForceDeletionRecord,
    RECORD_KINDS as RECORD_KINDS,
)
from generic.reconciler.orphans.kind import (
    KIND_LABEL as KIND_LABEL,
    ORPHANS as ORPHANS,
    Orphan as Orphan,
    OrphanReason as OrphanReason,
    OrphanState as OrphanState,
    OrphanedFrom as OrphanedFrom,
    SHOOT_LABEL as SHOOT_LABEL,
)
from generic.reconciler.orphans.record import (
    UNKNOWN as UNKNOWN,
    mark_gone as mark_gone,
    record_all as record_all,
    recordable as recordable,
    remaining as remaining,
)
