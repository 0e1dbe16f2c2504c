"""Records the remaining resources of a force deletion: acknowledged by the API server, or an error.

The resources come from an author's `external_resources`, so they are checked first: a resource that
no Orphan can hold must not prevent the end of a force deletion.
"""

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from actuator.codec import encode
from actuator.errors import AlreadyExists, Conflict, NotFound, TooManyRequests, Unavailable
from actuator.interface import Actuator, Client, ExternalResource, innermost
from actuator.meta import Object, ObjectMeta, Raw, format_time, value_at
from actuator.tolerance import decode_tolerantly
from generic.kube.client import Silence
from generic.kube.dropped import NotStored, lost, require_stored
from generic.kube.errorinfo import describe, read_error
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

T = TypeVar("T")
UNKNOWN = ExternalResource(type="unknown")
"""Replaces resources that could not be identified."""

MESSAGE_LENGTH = 1000
"""Maximum length of a message in characters."""
NOT_STORED = "The CRD of Orphan lacks these fields:"
"""Precedes values in the message of an Orphan."""
_OF_ATTEMPT = ("message", "reason", "recordedAt")
"""Fields that differ in a repeat."""
_TRIES = 4
"""How often one resource is recorded at most, before an attempt fails."""
_MAX_RESOURCES = 10_000
"""Maximum resources of one object: each is a request, and force deletions have a budget."""
_MAX_TEXT = 16 * 1024
"""Maximum total characters of the texts of one resource."""
_MAX_TEXTS = 8 * 2**20
"""The same for all resources of one object, after which no other is read: a process has all of
them in memory."""


def record_all(
    client: Client,
    former: OrphanedFrom,
    resources: Iterable[ExternalResource],
    reason: OrphanReason,
    message: str,
    now: datetime,
) -> tuple[Orphan, ...]:
    """Record each resource, several times if the API server refuses one. Raises ApiError.

    The next attempt of the caller begins with the first resource again. If one refusal ended an
    attempt, an API server that refuses a tenth of all requests would let hardly any attempt record
    dozens of resources.
    """
    orphans = []
    for resource in resources:
        write = partial(record, client, former, resource, reason, message, now)
        orphans.append(with_tries(write))
    return tuple(orphans)


def with_tries(write: Callable[[], T]) -> T:
    """Send a write, several times if the API server refuses it for the moment. Raises ApiError."""
    for _ in range(_TRIES - 1):
        try:
            return write()
        except AlreadyExists:
            raise
        except (Conflict, TooManyRequests, Unavailable) as error:
            if error.retry_after or isinstance(error, Silence):
                raise
    return write()


def record(
    client: Client,
    former: OrphanedFrom,
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
            name=orphan_name(former.uid, resource),
            labels={KIND_LABEL: former.kind, SHOOT_LABEL: former.namespace},
        ),
        spec=OrphanSpec(
            resource_type=resource.type,
            id=resource.id,
            tags=dict(resource.tags),
            region=resource.region,
            object=former,
            shoot=former.namespace,
            reason=reason,
            message=message[:MESSAGE_LENGTH],
            recorded_at=format_time(now),
        ),
    )
    sent = encode(orphan)
    _keep_in_message(client, sent, _stored(client, sent))
    return orphan


def _stored(client: Client, sent: Raw) -> Raw:
    """Return the Orphan in the API server, created only if it is not there. Raises ApiError."""
    name: str = sent["metadata"]["name"]
    try:
        return client.get(ORPHANS, name)
    except NotFound:
        pass
    try:
        return client.create(ORPHANS, sent)
    except AlreadyExists:  # by an earlier attempt that ended later
        return client.get(ORPHANS, name)


def _keep_in_message(client: Client, sent: Raw, stored: Raw) -> None:
    """Write the values that the Orphan lacks into its message. Raises NotStored, ApiError."""
    wanted = {name: value for name, value in sent["spec"].items() if name not in _OF_ATTEMPT}
    wanted["object"] = {**wanted["object"]}
    wanted["object"].pop("origin", None)  # logged too, and another attempt may know more of it
    found: Raw = stored.get("spec") or {}
    lacking = {name: value for name, value in wanted.items() if [*lost(value, found.get(name), "")]}
    values = f"{NOT_STORED} {json.dumps(lacking, ensure_ascii=False)}"
    before: str = found.get("message") or ""
    if not lacking or values in before:
        return
    message = f"{values}; {before}" if before else values
    answer = client.patch(ORPHANS, sent["metadata"]["name"], "", {"spec": {"message": message}})
    if value_at(answer, "spec", "message") != message:
        raise NotStored(ORPHANS, [f"spec.{name}" for name in (*lacking, "message")])


def mark_gone(client: Client, orphan: Orphan, now: datetime) -> None:
    """Set the Orphan's state to Gone, after we removed the resource. Raises ApiError."""
    status = {"state": OrphanState.GONE.value, "verifiedAt": format_time(now)}
    name = orphan.metadata.name
    patch = {"status": status}
    with suppress(NotFound):
        answer = client.patch(ORPHANS, name, "", patch, subresource="status")
        require_stored(ORPHANS, status, answer.get("status"), "status")


def recordable(actuator: Actuator[Any], obj: object) -> tuple[list[ExternalResource], str]:
    """Return the external resources of `obj` that fit an Orphan, and the error of the others.

    UNKNOWN replaces the others, and those that an error of the actuator hides.
    """
    found: dict[object, ExternalResource] = {}
    wrong = ""
    problem = ""
    left = _MAX_TEXTS
    try:
        for number, external_resource in enumerate(actuator.external_resources(obj)):
            if number >= _MAX_RESOURCES or left <= 0:
                wrong = wrong or "more"
                break  # it may never end
            usable = _usable(external_resource)
            if usable is None:
                name = type(external_resource).__name__
                wrong = wrong or f"an invalid {name} as number {number + 1}"
                continue
            left -= sum(map(len, _texts(usable)))
            key = usable.type, usable.id, usable.region, *sorted(usable.tags.items())
            found[key] = usable
    except Exception as error:  # the resources yielded before are kept
        problem = read_error(error).text
    if not wrong and not problem:
        return [*found.values()], ""
    author = type(innermost(actuator)).__name__
    return [*found.values(), UNKNOWN], problem or (
        f"{author}.external_resources yields {wrong}; it must yield at most "
        f"{_MAX_RESOURCES} ExternalResources, each with a type, with strings in all fields and "
        f"tags, and with at most {_MAX_TEXT} characters, {_MAX_TEXTS} together"
    )


def remaining(
    actuator: Actuator[Any], cls: type[Object], obj: Raw
) -> tuple[list[ExternalResource], str]:
    """Return the resources that a force deletion of `obj` would record, for other commands.

    The second value is the error for which one of them is UNKNOWN.
    """
    try:
        return recordable(actuator, decode_tolerantly(cls, json.dumps(obj).encode()))
    except Exception as error:  # an author's code, or an object that cannot be read
        return [UNKNOWN], describe(error)


def _texts(one: ExternalResource) -> tuple[str, ...]:
    return (one.type, one.id, one.region, *one.tags, *one.tags.values())


def _usable(resource: object) -> ExternalResource | None:
    """Return a copy, or None for a resource that no Orphan can hold."""
    if not isinstance(resource, ExternalResource) or not isinstance(resource.tags, dict):
        return None
    texts = _texts(resource)
    if not all(isinstance(text, str) for text in texts) or not resource.type:
        return None
    if sum(map(len, texts)) > _MAX_TEXT:
        return None
    type_, id_, region, *tags = (text.encode(errors="replace").decode() for text in texts)
    half = len(tags) // 2
    pairs = dict(zip(tags[:half], tags[half:], strict=True))
    return ExternalResource(type=type_, id=id_, tags=pairs, region=region)
