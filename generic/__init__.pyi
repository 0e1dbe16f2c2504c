# The public names of the package, for type checkers and for `__init__.py`.

from generic.controller.mappers import (
    KnownObjects as KnownObjects,
    Mapper as Mapper,
    by_label as by_label,
    by_secret_reference as by_secret_reference,
)
from generic.controller.predicates import (
    Predicate as Predicate,
    all_of as all_of,
    any_of as any_of,
    conditions_changed as conditions_changed,
    for_event_types as for_event_types,
    force_annotation_changed as force_annotation_changed,
    generation_changed as generation_changed,
    is_deleting as is_deleting,
    negate as negate,
)
from generic.controller.watch import Watch as Watch, owns as owns, watches as watches
from generic.kube.connect import connect as connect
from generic.kube.finalizers import (
    add_finalizer as add_finalizer,
    finalizer as finalizer,
    remove_finalizers as remove_finalizers,
)
from generic.kube.headers import (
    Event as Event,
    EventType as EventType,
    Header as Header,
    Owner as Owner,
    Request as Request,
)
from generic.manager.manager import Manager as Manager
from generic.manager.options import Options as Options
from generic.reconciler.origin import DeletionOrigin as DeletionOrigin
from generic.reconciler.orphans.forced import ForceDeletionRecord as ForceDeletionRecord
from generic.reconciler.orphans.kind import (
    Orphan as Orphan,
    OrphanSpec as OrphanSpec,
    OrphanState as OrphanState,
    OrphanStatus as OrphanStatus,
    OrphanedFrom as OrphanedFrom,
)
