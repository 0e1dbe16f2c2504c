"""Orphan: one thing outside the seed that a force deletion may have left behind, on record.

A kind of ours, cluster-scoped, so that it outlives the shoot's namespace. Named after the UID of
the object that was let go and after the thing outside, so that a repeat is no duplicate. Who
writes them is not here (`record`), nor who looks after them (`keeper`, the command line).
"""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from typing import Annotated, ClassVar

import attrs

from actuator.interface import ExternalResource, resource_of
from actuator.meta import Column, Kind, Object, Raw, Schema

GROUP = "actuator.extensions.gardener.cloud"
SHOOT_LABEL = f"{GROUP}/shoot"
"""Label: the namespace of the shoot in the seed."""

KIND_LABEL = f"{GROUP}/kind"
"""Label: the kind of the object that was let go."""


class OrphanReason(StrEnum):
    """Why our finalizer came off although something may remain."""

    FORCED = "ForceDeleted"
    """The force deletion did its work; what is outside stays by its nature."""
    BUDGET = "BudgetExceeded"
    """The budget ended first; seed objects may remain too."""
    HANGING = "CallsHang"
    """Too many calls hang; the actuator was not asked."""
    UNREADABLE = "Unreadable"
    """The object could not be read, so its actuator was not called; seed objects may remain."""
    BYPASSED = "Bypassed"
    """Somebody else took our finalizer off while cleanup was unfinished."""
    DRAINED = "Drained"
    """`actuator drain --release` disowned the object before the extension was uninstalled."""


class OrphanState(StrEnum):
    """What is known of the thing outside."""

    UNVERIFIED = "Unverified"
    EXISTS = "Exists"
    GONE = "Gone"
    CLOSED = "Closed"
    """Somebody decided that it needs no more attention."""


@attrs.frozen(kw_only=True)
class OrphanedFrom:
    """The object that was let go."""

    api_version: Annotated[str, Schema(required=True)] = ""
    kind: Annotated[str, Schema(required=True)] = ""
    namespace: str = ""
    name: Annotated[str, Schema(required=True)] = ""
    uid: Annotated[str, Schema(required=True)] = ""
    type: str = ""
    """The extension type, "aws"."""
    extra: Raw = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class OrphanSpec:
    """What may be left, of which object, why, since when. Never a secret, never raw state."""

    resource_type: Annotated[str, Schema(required=True)] = ""
    """The provider's name of it; "unknown" where nobody can say."""
    id: str = ""
    tags: dict[str, str] = attrs.field(factory=dict)
    region: str = ""
    object: Annotated[OrphanedFrom, Schema(required=True)] = attrs.field(factory=OrphanedFrom)
    shoot: str = ""
    """The shoot's namespace in the seed."""
    reason: Annotated[str, Schema(required=True)] = ""
    message: str = ""
    """What stood in the way, for people."""
    recorded_at: Annotated[str, Schema(format="date-time", required=True)] = ""
    extra: Raw = attrs.field(factory=dict)

    @property
    def resource(self) -> ExternalResource:
        """The thing outside, as an actuator names it."""
        tags = dict(self.tags)
        return ExternalResource(type=self.resource_type, id=self.id, tags=tags, region=self.region)


@attrs.define(kw_only=True)
class OrphanStatus:
    """What became of it; `actuator orphans verify` and `close` write it."""

    state: str = ""
    """An OrphanState; empty means Unverified."""
    verified_at: Annotated[str | None, Schema(format="date-time")] = None
    closed_at: Annotated[str | None, Schema(format="date-time")] = None
    note: str = ""
    """Why it was closed, for people."""
    extra: Raw = attrs.field(factory=dict)


@attrs.define(kw_only=True)
class Orphan(Object):
    """One thing outside the seed that may have been left behind."""

    KIND: ClassVar[Kind] = Kind(
        name="Orphan",
        plural="orphans",
        group=GROUP,
        finalizer="",
        namespaced=False,
        columns=(
            Column("Type", ".spec.resourceType"),
            Column("ID", ".spec.id"),
            Column("Shoot", ".spec.shoot"),
            Column("Reason", ".spec.reason"),
            Column("State", ".status.state"),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
    )

    spec: OrphanSpec = attrs.field(factory=OrphanSpec)
    status: OrphanStatus = attrs.field(factory=OrphanStatus)

    @property
    def state(self) -> OrphanState:
        """What is known of it; what cannot be read is unverified."""
        known = set(OrphanState)
        return (
            OrphanState(self.status.state) if self.status.state in known else OrphanState.UNVERIFIED
        )

    @property
    def is_open(self) -> bool:
        """Whether somebody still has to look after it."""
        return self.state in (OrphanState.UNVERIFIED, OrphanState.EXISTS)


ORPHANS = resource_of(Orphan.KIND)


def orphan_name(uid: str, resource: ExternalResource) -> str:
    """The same for the same object and thing; another one for every other."""
    identity = json.dumps(attrs.asdict(resource), sort_keys=True)
    return f"{uid}-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
