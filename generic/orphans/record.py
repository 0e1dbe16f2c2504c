"""Recording what a force deletion leaves behind: written and acknowledged, or an error."""

from __future__ import annotations

from datetime import datetime

from actuator.codec import encode
from actuator.errors import AlreadyExists, NotFound
from actuator.interface import Client, ExternalResource
from actuator.meta import ObjectMeta, format_time
from generic.orphans.kind import (
    KIND_LABEL,
    ORPHANS,
    SHOOT_LABEL,
    Orphan,
    OrphanedFrom,
    OrphanReason,
    OrphanSpec,
    OrphanState,
    orphan_name,
)

__all__ = ["MESSAGE_LENGTH", "mark_gone", "record"]

MESSAGE_LENGTH = 1000
"""Characters of a message that are kept."""


def record(
    client: Client,
    let_go: OrphanedFrom,
    resource: ExternalResource,
    reason: OrphanReason,
    message: str,
    now: datetime,
) -> Orphan:
    """Afterwards the API server has the Orphan; a repeat is the same one. Raises ApiError."""
    orphan = Orphan(
        api_version=Orphan.KIND.api_version,
        kind=Orphan.KIND.name,
        metadata=ObjectMeta(
            name=orphan_name(let_go.uid, resource),
            labels={KIND_LABEL: let_go.kind, SHOOT_LABEL: let_go.namespace},
        ),
        spec=OrphanSpec(
            resource_type=resource.type,
            id=resource.id,
            tags=dict(resource.tags),
            region=resource.region,
            object=let_go,
            shoot=let_go.namespace,
            reason=reason,
            message=message[:MESSAGE_LENGTH],
            recorded_at=format_time(now),
        ),
    )
    try:
        client.create(ORPHANS, encode(orphan))
    except AlreadyExists:  # an earlier try whose answer got lost, or which ended later
        pass
    return orphan


def mark_gone(client: Client, orphan: Orphan, now: datetime) -> None:
    """Afterwards the Orphan says that the thing outside is gone: we saw to it. Raises ApiError."""
    status = {"state": OrphanState.GONE.value, "verifiedAt": format_time(now)}
    try:
        client.patch(ORPHANS, orphan.metadata.name, "", {"status": status}, subresource="status")
    except NotFound:
        pass
