"""Operation: the operation that an object needs, from its header and its Cluster's verdict. Pure.

`choose_operation` is the whole decision, in the order of Gardener's extension library
(`extensions/pkg/controller`), with the differences stated in our design decisions. Not here:
calling the actuator and writing its results (`reconciler`).
"""

from enum import Enum, StrEnum

from msgspec import Struct

from actuator.cluster import FORCE_DELETION, ClusterState, Verdict, parse_bool
from actuator.codec import MAX_DEPTH
from actuator.errors import ActuatorError, ErrorCode
from actuator.meta import ClusterNeed, ForceSource, Kind, LastOperationType
from generic.controller.predicates import OPERATION
from generic.kube.headers import Header


class Operation(Enum):
    """An operation of the reconciler; the value is its name in metrics and logs."""

    RECONCILE = "reconcile"
    RESTORE = "restore"
    MIGRATE = "migrate"
    DELETE = "delete"
    FORCE_DELETE = "force_delete"
    RELEASE = "release"
    """Remove the finalizer without calling the actuator: another seed owns the resources."""
    LATE_CLEANUP = "late_cleanup"
    """Record and clean up a deleted object whose finalizer was removed externally."""

    @property
    def guards(self) -> bool:
        """Whether our finalizer must be on the object first."""
        return self in (Operation.RECONCILE, Operation.RESTORE)

    @property
    def reports(self) -> bool:
        """Whether success is written into the status; a deleted object has none."""
        return self in (Operation.RECONCILE, Operation.RESTORE, Operation.MIGRATE)

    @property
    def releases(self) -> bool:
        """Whether our finalizer is removed after success."""
        return not self.guards and self is not Operation.LATE_CLEANUP

    @property
    def deletes(self) -> bool:
        """Whether the operation ends the object's life here, and counts as a deletion."""
        return self in (Operation.DELETE, Operation.FORCE_DELETE)

    @property
    def calls(self) -> bool:
        """Whether the operation calls the actuator, and is one in metrics."""
        return self not in (Operation.RELEASE, Operation.LATE_CLEANUP)

    def last_operation_type(self, header: Header) -> LastOperationType:
        """Return the type for lastOperation (v1beta1helper.ComputeOperationType)."""
        if self is Operation.RECONCILE:
            last = header.last_operation
            first = last is None or (last[0] == LastOperationType.CREATE and not header.succeeded)
            return LastOperationType.CREATE if first else LastOperationType.RECONCILE
        return _LAST_OPERATION_TYPES[self]


_LAST_OPERATION_TYPES = {
    Operation.RESTORE: LastOperationType.RESTORE,
    Operation.MIGRATE: LastOperationType.MIGRATE,
    Operation.DELETE: LastOperationType.DELETE,
    Operation.FORCE_DELETE: LastOperationType.DELETE,
    Operation.RELEASE: LastOperationType.MIGRATE,
}


class Nothing(StrEnum):
    """The reason why no operation is needed."""

    WAITS_FOR_STATE = "waiting for gardenlet to set the state"
    SHOOT_FAILED = "the shoot has failed"
    MIGRATED = "migrated to another seed"
    RELEASED = "deleting, and our finalizer is removed"
    DELETED = "the object is deleted"

    @property
    def waits(self) -> bool:
        """Whether an object under deletion waits until its shoot changes."""
        return self in (Nothing.WAITS_FOR_STATE, Nothing.SHOOT_FAILED)


_BLOCKERS = {
    ClusterState.MISSING: "Cluster {} not found; gardenlet creates it before extension objects",
    ClusterState.UNREADABLE: (
        "Cluster {} cannot be read: spec.shoot is not a Shoot object, or a field is nested "
        f"deeper than {MAX_DEPTH} levels; correct the Shoot"
    ),
    ClusterState.WITHOUT_SHOOT: "Cluster {} has no spec.shoot",
}
"""The states of a Cluster that block an operation, and the error that is written and retried."""


class Blocked(Struct, frozen=True):
    """A required operation that is blocked."""

    operation: Operation
    by: ClusterState

    def error(self, namespace: str) -> ActuatorError:
        """Return the error for the status; `namespace` is the Cluster's name."""
        wrong = self.by is ClusterState.UNREADABLE
        return ActuatorError(
            _BLOCKERS[self.by].format(namespace),
            codes=[ErrorCode.ERR_CONFIGURATION_PROBLEM] if wrong else [],
            reason=f"Cluster{self.by.value.title().replace('-', '')}",
        )


def is_forced(kind: Kind, header: Header, cluster: Verdict) -> bool:
    """Whether deletion is forced. For shoots: Gardener documentation, "Force Deletion"."""
    if kind.force_from is ForceSource.SHOOT:
        in_shoot = kind.cluster is not ClusterNeed.NEVER
        return in_shoot and header.class_ in ("", "shoot") and cluster.forced
    value = header.annotations.get(FORCE_DELETION, "")
    if kind.force_from is ForceSource.OBJECT_LITERAL:
        return value == "true"
    return kind.force_from is ForceSource.OBJECT and parse_bool(value) is True


def bad_force_value(kind: Kind, header: Header, cluster: Verdict) -> str | None:
    """Return the value of a force-deletion annotation that is not a boolean, else None."""
    if kind.force_from is ForceSource.SHOOT:
        return cluster.bad_force_value
    value = header.annotations.get(FORCE_DELETION)
    unparsed = kind.force_from is ForceSource.OBJECT and parse_bool(value or "false") is None
    return value if unparsed else None


def choose_operation(
    kind: Kind, header: Header | None, cluster: Verdict, *, removed: bool = False
) -> Operation | Nothing | Blocked:
    """Return the operation, or the reason for none.

    `header` is None for a deleted object. `cluster` is ok if the kind needs none. `removed` means
    that our finalizer was removed externally from the last object of that name before its
    cleanup finished.
    """
    if removed:
        return Operation.LATE_CLEANUP
    if header is None:
        return Nothing.DELETED
    deleting = header.deletion_timestamp is not None
    ours = kind.finalizer in header.finalizers
    forced = deleting and is_forced(kind, header, cluster)
    requested = header.annotations.get(OPERATION) if kind.has_operation_annotation else None
    if forced and ours and requested in ("migrate", "wait-for-state"):
        requested = None  # the shoot must be deleted, despite any request
    if requested == "wait-for-state":
        return Nothing.WAITS_FOR_STATE
    if cluster.failed and kind.skips_failed_shoot and not forced:
        return Nothing.SHOOT_FAILED
    chosen = _choose(kind, header, requested, deleting=deleting, ours=ours, forced=forced)
    if isinstance(chosen, Nothing) or chosen in (Operation.RELEASE, Operation.FORCE_DELETE):
        return chosen
    return Blocked(chosen, cluster.state) if cluster.state in _BLOCKERS else chosen


def _choose(
    kind: Kind, header: Header, requested: str | None, *, deleting: bool, ours: bool, forced: bool
) -> Operation | Nothing:
    last = header.last_operation[0] if header.last_operation else ""
    restoring = requested == "restore"
    if kind.migratable:
        migrating = last == LastOperationType.MIGRATE and not restoring
        # Its annotation is removed before the call, and a deletion must not overtake it.
        picked_up = migrating and kind.outcomes_are_watched and not header.succeeded
        if requested == "migrate" or picked_up:
            return Operation.MIGRATE
        if migrating and header.succeeded:
            return Operation.RELEASE if deleting and ours else Nothing.MIGRATED
    if deleting:
        if not ours:
            return Nothing.RELEASED
        return Operation.FORCE_DELETE if forced else Operation.DELETE
    if kind.migratable and restoring:
        return Operation.RESTORE
    if kind.migratable and not header.succeeded:
        return _UNFINISHED.get(last, Operation.RECONCILE)
    return Operation.RECONCILE


_UNFINISHED: dict[str, Operation] = {
    LastOperationType.RESTORE: Operation.RESTORE,
    LastOperationType.MIGRATE: Operation.MIGRATE,
}
