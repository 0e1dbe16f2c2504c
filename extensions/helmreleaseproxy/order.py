"""Order: a release is installed after its dependencies, and removed before them.

Dependencies cannot be changed, so installed releases cannot form a cycle; releases that are created
in a cycle wait, and report for which release. A force deletion ignores the order: a release whose
HelmChartProxy is force-deleted is force-deleted too. The HelmChartProxy normally starts this at
once. `follow_controller` covers the case in which it cannot, because its call does not return or
the API server refuses, until its budget ends and it is deleted before its releases.
"""

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
from generic.library.lookup import find
from generic.reconciler.status import READY

_LOOK_AGAIN = 5.0
_AGAIN = 1.0


IS_GONE = for_event_types(EventType.DELETED)


def of_same_target(event: Event[Header], known: Known) -> Iterator[Request]:
    """Map a HelmReleaseProxy to the others of its Target, which may wait for it."""
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
"""The triggers of a waiting release; without the label, it polls."""


def is_ready(release: HelmReleaseProxy) -> bool:
    """Whether the release is installed as its current spec requests, and is not being deleted."""
    meta, status = release.metadata, release.status
    ready = find_condition(status.conditions, READY)
    current = status.observed_generation == meta.generation and meta.deletion_timestamp is None
    return current and ready is not None and ready.status == "True"


def wait_for_dependencies(ctx: Context, obj: HelmReleaseProxy) -> None:
    """Return when all its dependencies are ready. Raises RequeueAfter, and ApiError."""
    for name in obj.spec.depends_on:
        found = find(ctx.client, RELEASES, name, obj.metadata.namespace)
        if found is None:
            raise _waiting(name, "it depends on that, and there is none")
        if not is_ready(decode(HelmReleaseProxy, found)):
            raise _waiting(name, "it depends on that, which is not ready")


def wait_for_dependants(ctx: Context, obj: HelmReleaseProxy) -> None:
    """Return when no release depends on it. Raises RequeueAfter, and ApiError."""
    for found in ctx.client.list(RELEASES, obj.metadata.namespace):
        other = decode(HelmReleaseProxy, found)
        depends = obj.metadata.name in other.spec.depends_on
        if depends and other.status.target_uid == obj.status.target_uid:
            raise _waiting(other.metadata.name, "that depends on it, and goes first")


def _waiting(name: str, why: str) -> RequeueAfter:
    return RequeueAfter(_LOOK_AGAIN, f"Waiting for HelmReleaseProxy {name}: {why}")


def _controlled(event: Event[Header], known: Known) -> Iterator[Request]:
    """Map a HelmChartProxy to its releases."""
    chart = event.new or event.old
    for request, header in known.store.headers():
        if chart is not None and any(owner.uid == chart.uid for owner in header.owners):
            yield request


CONTROLLERS = watches(
    CHARTS,
    _controlled,
    predicates=[any_of(force_annotation_changed, IS_GONE)],
)
"""The triggers of releases by their HelmChartProxy."""


def force(ctx: Context, obj: HelmReleaseProxy) -> None:
    """Force the release's deletion, once it is being deleted. Raises ApiError."""
    meta = obj.metadata
    patch: Raw = {"metadata": {"uid": meta.uid, "annotations": {FORCE_DELETION: "true"}}}
    try:
        ctx.client.patch(RELEASES, meta.name, meta.namespace, patch)
    except NotFound:
        ctx.log.debug("gone already")


def follow_controller(ctx: Context, obj: HelmReleaseProxy) -> None:
    """Return if its controller, if it has one, is not force-deleted.

    Raises RequeueAfter if the controller is force-deleted, or already deleted, which before its
    releases happens only by force; and ApiError.
    """
    owner = next((one for one in obj.metadata.owner_references if one.controller), None)
    if owner is None:
        return
    chart = find(ctx.client, CHARTS, owner.name, obj.metadata.namespace)
    meta = chart["metadata"] if chart else {}
    value = (meta.get("annotations") or {}).get(FORCE_DELETION, "false")
    forced = meta.get("deletionTimestamp") is not None and parse_bool(value) is True
    if forced or meta.get("uid") != owner.uid:
        force(ctx, obj)
        raise RequeueAfter(_AGAIN, f"HelmChartProxy {owner.name} is force-deleted, so is this")
