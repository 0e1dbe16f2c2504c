"""Records the remaining resources of a force deletion: acknowledged by the API server, or an error.

The resources come from an author's `external_resources`, so they are checked first: a resource that
no Orphan can hold must not prevent the end of a force deletion.
"""

import json
from datetime import datetime
from itertools import islice
from typing import Any

from actuator.codec import encode
from actuator.errors import AlreadyExists, NotFound
from actuator.interface import Actuator, Client, ExternalResource, innermost
from actuator.meta import Object, ObjectMeta, Raw, format_time
from actuator.tolerance import decode_tolerantly
from generic.kube.errorinfo import describe
from generic.reconciler.orphans.kind import (
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

UNKNOWN = ExternalResource(type="unknown")
"""Replaces resources that could not be identified."""

MESSAGE_LENGTH = 1000
"""Maximum length of a message in characters."""
_MAX_RESOURCES = 100
"""Maximum resources of one object: each is a request, and force deletions have a budget."""
_MAX_TEXT = 16 * 1024
"""Maximum total characters of the texts of one resource."""


def record(
    client: Client,
    let_go: OrphanedFrom,
    resource: ExternalResource,
    reason: OrphanReason,
    message: str,
    now: datetime,
) -> Orphan:
    """Create the Orphan in the API server; a repeat is the same one. Raises ApiError."""
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
    except AlreadyExists:  # an earlier attempt whose answer was lost, or that ended later
        pass
    return orphan


def mark_gone(client: Client, orphan: Orphan, now: datetime) -> None:
    """Set the Orphan's state to Gone, after we removed the resource. Raises ApiError."""
    status = {"state": OrphanState.GONE.value, "verifiedAt": format_time(now)}
    try:
        client.patch(ORPHANS, orphan.metadata.name, "", {"status": status}, subresource="status")
    except NotFound:
        pass


def recordable(actuator: Actuator[Any], obj: object) -> tuple[list[ExternalResource], str]:
    """Return the external resources of `obj` that fit an Orphan, and the error of the others.

    UNKNOWN replaces the others, and those that an error of the actuator hides.
    """
    found: list[object] = []
    problem = ""
    try:
        found.extend(islice(actuator.external_resources(obj), _MAX_RESOURCES + 1))
    except Exception as error:  # the resources yielded before are kept
        problem = describe(error)
    checked = [_usable(one) for one in found[:_MAX_RESOURCES]]
    usable = list({orphan_name("", one): one for one in checked if one is not None}.values())
    if not problem and len(found) <= _MAX_RESOURCES and None not in checked:
        return usable, ""
    author = type(innermost(actuator)).__name__
    return [*usable, UNKNOWN], problem or (
        f"{author}.external_resources yields invalid resources; it must yield at most "
        f"{_MAX_RESOURCES} ExternalResources, each with a type, with strings in all fields and "
        f"tags, and with at most {_MAX_TEXT} characters"
    )


def remaining(actuator: Actuator[Any], cls: type[Object], obj: Raw) -> list[ExternalResource]:
    """Return the resources that a force deletion of `obj` would record, for other commands."""
    try:
        return recordable(actuator, decode_tolerantly(cls, json.dumps(obj).encode()))[0]
    except Exception:  # an author's code, or an object that cannot be read
        return [UNKNOWN]


def _usable(resource: object) -> ExternalResource | None:
    """Return a copy, or None for a resource that no Orphan can hold."""
    if not isinstance(resource, ExternalResource) or not isinstance(resource.tags, dict):
        return None
    texts = (resource.type, resource.id, resource.region, *resource.tags, *resource.tags.values())
    if not all(isinstance(text, str) for text in texts) or not resource.type:
        return None
    if sum(map(len, texts)) > _MAX_TEXT:
        return None
    type_, id_, region, *tags = (text.encode(errors="replace").decode() for text in texts)
    half = len(tags) // 2
    pairs = dict(zip(tags[:half], tags[half:], strict=True))
    return ExternalResource(type=type_, id=id_, tags=pairs, region=region)
