"""Forced: a release whose HelmChartProxy is force-deleted is force-deleted too.

The HelmChartProxy tells its releases at once. This is for when it does not come to that: because
its call hangs, or the API server refuses, until its budget ends and it goes before them.
"""

from __future__ import annotations

from collections.abc import Iterator

from actuator import Context, RequeueAfter
from actuator.cluster import FORCE_DELETION, parse_bool
from actuator.errors import NotFound
from actuator.meta import Raw
from extensions.helmreleaseproxy.kinds import CHARTS, RELEASES, HelmReleaseProxy
from extensions.helmreleaseproxy.order import IS_GONE
from generic import watches
from generic.controller.mappers import Target as Known
from generic.controller.predicates import any_of, force_annotation_changed
from generic.kube.headers import Event, Header, Request

_AGAIN = 1.0


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
