"""ForceDeletionRecord: the evidence of one force deletion, also if nothing remains.

Our own kind, cluster-scoped as Orphan is, and named after the UID of the released object, so that a
repeat creates no second one. Its spec never changes. Writing one costs one request, and happens
before our finalizer is removed. Not here: when it is written (`deletion.force_deletion`), and for
how long it is kept (`generic.manager.orphans.keeper`).
"""

import re
from contextlib import suppress
from typing import Annotated, ClassVar

import attrs

from actuator.codec import encode
from actuator.errors import AlreadyExists
from actuator.interface import Client, resource_of
from actuator.meta import Column, KeepsUnknownFields, Kind, Object, ObjectMeta, Schema
from generic.kube.client import HttpClient
from generic.kube.dropped import require_stored
from generic.reconciler.budget import Budget
from generic.reconciler.orphans.kind import (
    GROUP,
    KIND_LABEL,
    SHOOT_LABEL,
    TYPE_LABEL,
    Orphan,
    OrphanedFrom,
    OrphanReason,
)
from generic.reconciler.orphans.record import with_tries
from generic.reconciler.stripping import Stripped
from generic.serving.metrics import Outcome

_MAX_NAMED = 100
"""Finalizers and Orphans that a record names; it has the number of all."""
_LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_REQUEST_SECONDS = 5.0


@attrs.frozen(kw_only=True)
class StrippedFinalizer(KeepsUnknownFields):
    """A finalizer of another controller that was removed from a seed object."""

    resource: str = ""
    name: str = ""
    finalizer: str = ""


@attrs.frozen(kw_only=True)
class RecordedError(KeepsUnknownFields):
    """An error of the force deletion, and the number of attempts in a row that ended with it."""

    text: str = ""
    codes: list[str] = attrs.field(factory=list)
    count: int = 0


@attrs.frozen(kw_only=True)
class ForceDeletionSpec(KeepsUnknownFields):
    """The course, times and owner of a force deletion. No secrets."""

    object: Annotated[OrphanedFrom, Schema(required=True)] = attrs.field(factory=OrphanedFrom)
    outcome: Annotated[str, Schema(required=True)] = ""
    """force_deleted; or orphaned, if external resources may remain."""
    reason: Annotated[str, Schema(required=True)] = ""
    """An OrphanReason; ForceDeleted if the actuator's force_delete succeeded, and
    FinalizerRemovedExternally if another party removed our finalizer before."""
    deletion_requested_at: Annotated[str | None, Schema(format="date-time")] = None
    """The deletionTimestamp of the object."""
    forced_at: Annotated[str | None, Schema(format="date-time")] = None
    """When the process that finished the force deletion first saw it."""
    finished_at: Annotated[str, Schema(format="date-time", required=True)] = ""
    """When everything was done but the removal of our finalizer; if another party removed it, when
    that was recorded, before the late cleanup."""
    budget_seconds: float | None = None
    """None: force deletions have no budget."""
    used_seconds: float = 0.0
    """Seconds from forcedAt to finishedAt, on a clock that does not jump."""
    stripped: list[StrippedFinalizer] = attrs.field(factory=list)
    stripped_count: int = 0
    """The number of all of them: `stripped` has at most 100."""
    errors: list[RecordedError] = attrs.field(factory=list)
    """The last different errors, at most 5."""
    failed_attempts: int = 0
    orphans: list[str] = attrs.field(factory=list)
    """The names of Orphans."""
    orphan_count: int = 0
    """The number of all of them: `orphans` has at most 100."""


@attrs.define(kw_only=True)
class ForceDeletionRecord(Object):
    """A force deletion that ended; its spec cannot be changed."""

    KIND: ClassVar[Kind] = Kind(
        name="ForceDeletionRecord",
        group=GROUP,
        finalizer="",
        namespaced=False,
        columns=(
            Column("Kind", ".spec.object.kind"),
            Column("Shoot", ".spec.object.namespace"),
            Column("Outcome", ".spec.outcome"),
            Column("Reason", ".spec.reason"),
            Column("Orphans", ".spec.orphanCount", "integer"),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
    )

    spec: Annotated[ForceDeletionSpec, Schema(required=True, immutable="always")] = attrs.field(
        factory=ForceDeletionSpec
    )


FORCE_DELETIONS = resource_of(ForceDeletionRecord.KIND)
RECORD_KINDS: tuple[type[Object], ...] = (Orphan, ForceDeletionRecord)
"""The kinds in which force deletions leave evidence."""


@attrs.frozen(kw_only=True)
class Ended:
    """The end of a force deletion, for its record."""

    reason: OrphanReason
    deletion_requested_at: str | None
    """RFC 3339, in UTC."""
    orphans: tuple[Orphan, ...]

    @property
    def outcome(self) -> Outcome:
        """The outcome of the deletion: whether external resources may remain."""
        return Outcome.ORPHANED if self.orphans else Outcome.FORCE_DELETED


def forced_record(
    former: OrphanedFrom,
    budget: Budget,
    ended: Ended,
    *,
    forced_at: str,
    finished_at: str,
    used_seconds: float,
) -> ForceDeletionRecord:
    """Return the record of a force deletion. Pure; sizes are bounded.

    Times are RFC 3339, in UTC.
    """
    names = [orphan.metadata.name for orphan in ended.orphans]
    return ForceDeletionRecord(
        api_version=ForceDeletionRecord.KIND.api_version,
        kind=ForceDeletionRecord.KIND.name,
        metadata=ObjectMeta(
            name=former.uid,
            labels={
                KIND_LABEL: former.kind,
                SHOOT_LABEL: former.namespace,
                TYPE_LABEL: former.type if _LABEL.fullmatch(former.type) else "",
            },
        ),
        spec=ForceDeletionSpec(
            object=former,
            outcome=ended.outcome.value,
            reason=ended.reason.value,
            deletion_requested_at=ended.deletion_requested_at,
            forced_at=forced_at,
            finished_at=finished_at,
            budget_seconds=budget.seconds,
            used_seconds=round(used_seconds, 3),
            stripped=[_stripped(item) for item in budget.stripped[:_MAX_NAMED]],
            stripped_count=budget.stripped_count,
            errors=[
                RecordedError(text=error.text, codes=list(error.codes), count=error.count)
                for error in budget.errors
            ],
            failed_attempts=budget.failed_attempts,
            orphans=names[:_MAX_NAMED],
            orphan_count=len(names),
        ),
    )


def _stripped(item: Stripped) -> StrippedFinalizer:
    return StrippedFinalizer(resource=item.resource, name=item.name, finalizer=item.finalizer)


def write_record(client: Client, record: ForceDeletionRecord, seconds: float) -> None:
    """Create the record, unless an earlier attempt did. Raises NotStored, ApiError.

    A request waits at most `seconds`, and at most 5.
    """
    if isinstance(client, HttpClient):
        client = client.within(min(seconds, _REQUEST_SECONDS))
    sent = encode(record)
    with suppress(AlreadyExists):
        answer = with_tries(lambda: client.create(FORCE_DELETIONS, sent))
        require_stored(FORCE_DELETIONS, sent["spec"], answer.get("spec"), "spec")
