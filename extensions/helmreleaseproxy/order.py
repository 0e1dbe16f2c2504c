"""Order: a release is installed after those that it depends on, and they are removed after it.

Dependencies cannot be changed, so no circle can come about between releases that are installed;
those in a circle from the beginning wait, and say for what. A force deletion knows no order: a
release whose HelmChartProxy is force-deleted is force-deleted too. The HelmChartProxy tells its
releases at once. `follow_controller` is for when it does not come to that: because its call hangs,
or the API server refuses, until its budget ends and it goes before them.
"""

from __future__ import annotations

from collections.abc import Iterator

from actuator import Context, RequeueAfter
from actuator.cluster import FORCE_DELETION, parse_bool
from actuator.codec import decode
from actuator.conditions import find_condition
from actuator.errors import NotFound
from actuator.meta import Raw
from extensions.helmreleaseproxy.kinds import CHARTS, RELEASES, TARGET_LABEL, HelmReleaseProxy
from generic import watches
from generic.controller.mappers import Target as Known
from generic.controller.predicates import (
    any_of,
    conditions_changed,
    for_event_types,
    force_annotation_changed,
)
from generic.kube.headers import Event, EventType, Header, Request
from generic.reconciler.status import READY

_LOOK_AGAIN = 5.0
_AGAIN = 1.0


IS_GONE = for_event_types(EventType.DELETED)


def of_same_target(event: Event[Header], known: Known) -> Iterator[Request]:
    """From a HelmReleaseProxy to the others of its Target: some may wait for it."""
    state = event.new or event.old
    target = state.labels.get(TARGET_LABEL) if state else None
    if target is None:
        return
    for request, header in known.store.headers():
        beside = request.namespace == event.request.namespace and request != event.request
        if beside and header.labels.get(TARGET_LABEL) == target:
            yield request


NEIGHBOURS = watches(
    RELEASES,
    of_same_target,
    predicates=[any_of(conditions_changed(READY), IS_GONE)],
)
"""What somebody who waits wants to hear of; without the label he looks again now and then."""


def is_ready(release: HelmReleaseProxy) -> bool:
    """Whether it is installed as its spec says now, and to stay."""
    meta, status = release.metadata, release.status
    ready = find_condition(status.conditions, READY)
    current = status.observed_generation == meta.generation and meta.deletion_timestamp is None
    return current and ready is not None and ready.status == "True"


def wait_for_dependencies(ctx: Context, obj: HelmReleaseProxy) -> None:
    """Returns when all that it depends on is ready. Raises RequeueAfter, and ApiError."""
    for name in obj.spec.depends_on:
        try:
            found = ctx.client.get(RELEASES, name, obj.metadata.namespace)
        except NotFound:
            raise _waiting(name, "it depends on that, and there is none") from None
        if not is_ready(decode(HelmReleaseProxy, found)):
            raise _waiting(name, "it depends on that, which is not ready")


def wait_for_dependants(ctx: Context, obj: HelmReleaseProxy) -> None:
    """Returns when nothing depends on it any more. Raises RequeueAfter, and ApiError."""
    for found in ctx.client.list(RELEASES, obj.metadata.namespace):
        other = decode(HelmReleaseProxy, found)
        depends = obj.metadata.name in other.spec.depends_on
        if depends and other.status.target_uid == obj.status.target_uid:
            raise _waiting(other.metadata.name, "that depends on it, and goes first")


def _waiting(name: str, why: str) -> RequeueAfter:
    return RequeueAfter(_LOOK_AGAIN, f"Waiting for HelmReleaseProxy {name}: {why}")


def _controlled(event: Event[Header], known: Known) -> Iterator[Request]:
    """From a HelmChartProxy to its releases."""
    chart = event.new or event.old
    for request, header in known.store.headers():
        if chart is not None and header.owner and header.owner.uid == chart.uid:
            yield request


CONTROLLERS = watches(
    CHARTS,
    _controlled,
    predicates=[any_of(force_annotation_changed, IS_GONE)],
)
"""What the releases want to hear of."""


def force(ctx: Context, obj: HelmReleaseProxy) -> None:
    """Afterwards its deletion is forced, once it is deleted. Raises ApiError."""
    meta = obj.metadata
    patch: Raw = {"metadata": {"uid": meta.uid, "annotations": {FORCE_DELETION: "true"}}}
    try:
        ctx.client.patch(RELEASES, meta.name, meta.namespace, patch)
    except NotFound:
        ctx.log.debug("gone already")


def follow_controller(ctx: Context, obj: HelmReleaseProxy) -> None:
    """Returns where its controller, if it has one, is to be deleted in the normal way.

    Raises RequeueAfter where it is force-deleted, or gone: that it is before its releases only
    where it was. And ApiError.
    """
    owner = next((one for one in obj.metadata.owner_references if one.controller), None)
    if owner is None:
        return
    try:
        meta = ctx.client.get(CHARTS, owner.name, obj.metadata.namespace)["metadata"]
    except NotFound:
        meta = {}
    value = (meta.get("annotations") or {}).get(FORCE_DELETION, "false")
    forced = meta.get("deletionTimestamp") is not None and parse_bool(value) is True
    if forced or meta.get("uid") != owner.uid:
        force(ctx, obj)
        raise RequeueAfter(_AGAIN, f"HelmChartProxy {owner.name} is force-deleted, so is this")
