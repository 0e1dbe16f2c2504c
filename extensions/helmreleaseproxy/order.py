"""Order: a release is installed after its dependencies, and removed before them.

Dependencies cannot be changed, so installed releases cannot form a cycle; releases that are created
in a cycle wait, and report for which release. A force deletion ignores the order: a release whose
HelmChartProxy is force-deleted is force-deleted too. The HelmChartProxy normally starts this at
once. `follow_controller` covers the case in which it cannot, because its call does not return or
the API server refuses, until its budget ends and it is deleted before its releases. A Target that
is deleted takes its releases with it: they are uninstalled before, or force-deleted as it is.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import NoReturn

from actuator import (
    FORCE_DELETION,
    Context,
    NotFound,
    Raw,
    RequeueAfter,
    decode,
    find_condition,
    parse_bool,
)
from extensions.helmreleaseproxy import kinds
from extensions.helmreleaseproxy.targets import TargetId, guard_of
from generic import (
    Event,
    EventType,
    Header,
    KnownObjects,
    Request,
    all_of,
    any_of,
    conditions_changed,
    for_event_types,
    force_annotation_changed,
    generation_changed,
    is_deleting,
    watches,
)
from generic.library import find

_LOOK_AGAIN = 5.0
_AGAIN = 1.0


IS_GONE = for_event_types(EventType.DELETED)
IS_LEAVING = all_of(is_deleting, any_of(generation_changed, force_annotation_changed))


def of_same_target(event: Event[Header], known: KnownObjects) -> Iterator[Request]:
    """Map a HelmReleaseProxy to the others of its Target, which may wait for it."""
    state = event.new or event.old
    target = state.labels.get(kinds.TARGET_LABEL) if state else None
    if target is None:
        return
    for request, header in known.headers():
        beside = request.namespace == event.request.namespace and request != event.request
        if beside and header.labels.get(kinds.TARGET_LABEL) == target:
            yield request


NEIGHBOURS = watches(
    kinds.RELEASES,
    of_same_target,
    predicates=[any_of(conditions_changed(kinds.READY), IS_GONE)],
)
"""The triggers of a waiting release; without the label, it polls."""


def is_ready(release: kinds.HelmReleaseProxy) -> bool:
    """Whether the release is installed as its current spec requests, and is not being deleted."""
    meta = release.metadata
    status = release.status
    ready = find_condition(status.conditions, kinds.READY)
    current = status.observed_generation == meta.generation and meta.deletion_timestamp is None
    return current and ready is not None and ready.status == "True"


def wait_for_dependencies(ctx: Context, obj: kinds.HelmReleaseProxy) -> None:
    """Return when all its dependencies are ready. Raises RequeueAfter, and ApiError."""
    for name in obj.spec.depends_on:
        found = find(ctx.client, kinds.RELEASES, name, obj.metadata.namespace)
        if found is None:
            raise _waiting(name, "the dependency does not exist")
        if not is_ready(decode(kinds.HelmReleaseProxy, found)):
            raise _waiting(name, "the dependency is not ready")


def wait_for_dependants(ctx: Context, obj: kinds.HelmReleaseProxy) -> None:
    """Return when no release depends on it. Raises RequeueAfter, and ApiError."""
    for found in ctx.client.list(kinds.RELEASES, obj.metadata.namespace):
        other = decode(kinds.HelmReleaseProxy, found)
        depends = obj.metadata.name in other.spec.depends_on
        if depends and other.status.target_uid == obj.status.target_uid:
            raise _waiting(other.metadata.name, "the dependent release is uninstalled first")


def _waiting(name: str, why: str) -> RequeueAfter:
    return RequeueAfter(_LOOK_AGAIN, f"Waiting for HelmReleaseProxy {name}: {why}")


def _controlled(event: Event[Header], known: KnownObjects) -> Iterator[Request]:
    """Map a HelmChartProxy to its releases."""
    chart = event.new or event.old
    for request, header in known.headers():
        if chart is not None and any(owner.uid == chart.uid for owner in header.owners):
            yield request


CONTROLLERS = watches(
    kinds.CHARTS,
    _controlled,
    predicates=[any_of(force_annotation_changed, IS_GONE)],
)
"""The triggers of releases by their HelmChartProxy."""


def guarded(event: Event[Header], known: KnownObjects) -> Iterator[Request]:
    """Map a Target to the releases whose guards it has."""
    guards = event.new.finalizers if event.new else ()
    for request, header in known.headers():
        if guard_of(header.uid) in guards:
            yield request


def force(ctx: Context, obj: kinds.HelmReleaseProxy) -> None:
    """Force the release's deletion, once it is being deleted. Raises ApiError."""
    meta = obj.metadata
    patch: Raw = {"metadata": {"uid": meta.uid, "annotations": {FORCE_DELETION: "true"}}}
    try:
        ctx.client.patch(kinds.RELEASES, meta.name, meta.namespace, patch)
    except NotFound:
        ctx.log.debug("gone already")


def delete(ctx: Context, obj: kinds.HelmReleaseProxy) -> None:
    """Request the release's deletion, unless it is being deleted. Raises ApiError."""
    meta = obj.metadata
    if meta.deletion_timestamp is None:
        with suppress(NotFound):
            ctx.client.delete(kinds.RELEASES, meta.name, meta.namespace, uid=meta.uid)


def follow_controller(ctx: Context, obj: kinds.HelmReleaseProxy) -> None:
    """Return if its controller, if it has one, is not force-deleted.

    Raises RequeueAfter if the controller is force-deleted, or already deleted, which before its
    releases happens only by force; and ApiError.
    """
    owner = next(
        (reference for reference in obj.metadata.owner_references if reference.controller),
        None,
    )
    if owner is None:
        return
    chart = find(ctx.client, kinds.CHARTS, owner.name, obj.metadata.namespace)
    if chart is None or chart["metadata"]["uid"] != owner.uid or _is_forced(chart):
        _follow(ctx, obj, f"HelmChartProxy {owner.name}")


def follow_target(ctx: Context, obj: kinds.HelmReleaseProxy, target: TargetId, found: Raw) -> None:
    """Return if the Target is not being deleted by force. Raises RequeueAfter, and ApiError."""
    if _is_forced(found):
        _follow(ctx, obj, target.text)


def leave(ctx: Context, obj: kinds.HelmReleaseProxy, target: TargetId, found: Raw) -> None:
    """Delete the release if its Target is being deleted. Raises RequeueAfter then; and ApiError."""
    if found["metadata"].get("deletionTimestamp") is not None:
        if obj.status.target_uid == found["metadata"]["uid"]:
            delete(ctx, obj)
        raise RequeueAfter(_LOOK_AGAIN, f"{target.text} is being deleted, so are its releases")


def _is_forced(found: Raw) -> bool:
    meta = found["metadata"]
    value = (meta.get("annotations") or {}).get(FORCE_DELETION, "false")
    return meta.get("deletionTimestamp") is not None and parse_bool(value) is True


def _follow(ctx: Context, obj: kinds.HelmReleaseProxy, owner: str) -> NoReturn:
    force(ctx, obj)
    raise RequeueAfter(_AGAIN, f"{owner} is force-deleted, so is this")
