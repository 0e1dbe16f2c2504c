"""Orphan: the record of one external resource that may remain after a force deletion.

Our own kind, cluster-scoped, so that it outlives the shoot's namespace. Its name derives from the
UID of the released object and from the resource, so that a repeat creates no duplicate. Not here:
writing Orphans (`record`) and processing them (`keeper`, the command line).
"""

import hashlib
import json
from enum import StrEnum
from typing import Annotated, ClassVar

import attrs

from actuator.interface import ExternalResource, resource_of
from actuator.meta import Column, KeepsUnknownFields, Kind, Object, Schema
from generic.reconciler.origin import DeletionOrigin

GROUP = "actuator.extensions.gardener.cloud"
SHOOT_LABEL = f"{GROUP}/shoot"
"""A label with the namespace of the shoot in the seed."""

KIND_LABEL = f"{GROUP}/kind"
"""A label with the kind of the released object."""


TYPE_LABEL = f"{GROUP}/type"
"""A label with the extension type of the released object, if it can be a label."""


class OrphanReason(StrEnum):
    """The reason why our finalizer was removed although resources may remain."""

    FORCED = "ForceDeleted"
    """The force deletion succeeded; it leaves external resources by design."""
    BUDGET = "BudgetExceeded"
    """The budget ended first; seed objects may remain too."""
    HANGING = "CallsHang"
    """Too many calls are unresponsive; the actuator was not called."""
    UNREADABLE = "Unreadable"
    """The object could not be read, so its actuator was not called; seed objects may remain."""
    FINALIZER_REMOVED_EXTERNALLY = "FinalizerRemovedExternally"
    """Our finalizer was removed externally while cleanup was unfinished."""
    DRAINED = "Drained"
    """`actuator drain --release` disowned the object before the extension was uninstalled."""


class OrphanState(StrEnum):
    """The known state of the external resource."""

    UNVERIFIED = "Unverified"
    EXISTS = "Exists"
    GONE = "Gone"
    CLOSED = "Closed"
    """An operator decided that it needs no more attention."""


@attrs.frozen(kw_only=True)
class OrphanedFrom(KeepsUnknownFields):
    """The object whose finalizer was removed."""

    api_version: Annotated[str, Schema(required=True)] = ""
    kind: Annotated[str, Schema(required=True)] = ""
    namespace: str = ""
    name: Annotated[str, Schema(required=True)] = ""
    uid: Annotated[str, Schema(required=True)] = ""
    type: str = ""
    """The extension type, "aws"."""
    origin: DeletionOrigin = attrs.field(factory=DeletionOrigin)


@attrs.frozen(kw_only=True)
class OrphanSpec(KeepsUnknownFields):
    """The resource that may remain, its former object, the reason and the time. No secrets."""

    resource_type: Annotated[str, Schema(required=True, immutable="always")] = ""
    """The provider's type of the resource; "unknown" if it could not be identified."""
    id: Annotated[str, Schema(immutable="always")] = ""
    tags: dict[str, str] = attrs.field(factory=dict)
    region: str = ""
    object: Annotated[OrphanedFrom, Schema(required=True)] = attrs.field(factory=OrphanedFrom)
    shoot: str = ""
    """The shoot's namespace in the seed."""
    reason: Annotated[str, Schema(required=True)] = ""
    message: str = ""
    """The blocker of the cleanup, for people."""
    recorded_at: Annotated[str, Schema(format="date-time", required=True)] = ""

    @property
    def resource(self) -> ExternalResource:
        """The external resource, as an actuator names it."""
        tags = dict(self.tags)
        return ExternalResource(type=self.resource_type, id=self.id, tags=tags, region=self.region)


@attrs.define(kw_only=True)
class OrphanStatus(KeepsUnknownFields):
    """The verified state, written by `actuator orphans verify` and `close`."""

    state: str = ""
    """An OrphanState; empty means Unverified."""
    verified_at: Annotated[str | None, Schema(format="date-time")] = None
    closed_at: Annotated[str | None, Schema(format="date-time")] = None
    closed_by: str = ""
    """The user who closed it, as the API server knows them (SelfSubjectReview)."""
    closed_by_verified: bool = False
    """Whether a policy would have refused the name of another user then."""
    note: str = ""
    """The reason for closing it, for people."""


@attrs.define(kw_only=True)
class Orphan(Object):
    """An external resource that may remain after its object was deleted."""

    KIND: ClassVar[Kind] = Kind(
        name="Orphan",
        group=GROUP,
        finalizer="",
        namespaced=False,
        columns=(
            Column("Type", ".spec.resourceType"),
            Column("ID", ".spec.id"),
            Column("Shoot", ".spec.shoot"),
            Column("Account", ".spec.object.origin.account"),
            Column("Reason", ".spec.reason"),
            Column("State", ".status.state"),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
    )

    spec: OrphanSpec = attrs.field(factory=OrphanSpec)
    status: OrphanStatus = attrs.field(factory=OrphanStatus)

    @property
    def state(self) -> OrphanState:
        """The state; an unreadable value counts as Unverified."""
        known = (state for state in OrphanState if state == self.status.state)
        return next(known, OrphanState.UNVERIFIED)

    @property
    def is_open(self) -> bool:
        """Whether it still needs attention."""
        return self.state in (OrphanState.UNVERIFIED, OrphanState.EXISTS)


ORPHANS = resource_of(Orphan.KIND)


def orphan_name(uid: str, resource: ExternalResource) -> str:
    """Return the name of the Orphan for this object and resource; the same for each repeat."""
    identity = json.dumps(attrs.asdict(resource), sort_keys=True)
    return f"{uid}-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
