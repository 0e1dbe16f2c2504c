"""HelmCharts: the actuator of HelmChartProxies; creates a HelmReleaseProxy per selected Target.

It talks to this cluster only. A Target that is being deleted is no longer selected: its release is
deleted, and keeps the Target until it is uninstalled (see `helmreleaseproxy`).
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from actuator import (
    Actuator,
    ActuatorError,
    AlreadyExists,
    Cluster,
    ConfigurationError,
    Context,
    ErrorCode,
    FieldProblem,
    Raw,
    RequeueAfter,
    decode,
    encode,
    find_condition,
    is_owned_by,
    with_owner,
)
from extensions.helmreleaseproxy import kinds
from extensions.helmreleaseproxy.charts import chart_problems
from extensions.helmreleaseproxy.order import IS_GONE, delete, force, is_ready
from extensions.helmreleaseproxy.targets import TARGETS_ONLY, Places, place_of
from generic import (
    Event,
    Header,
    KnownObjects,
    Request,
    any_of,
    conditions_changed,
    generation_changed,
    owns,
    watches,
)
from generic.library import MAX_NAME, for_each, manifest_of, shortened

_LOOK_AGAIN = 5.0
_MAX_NAME = 53
_OF_CHART = ("chart", "repo_url", "chart_name", "version", "credentials", "values")
_AT_WORK = frozenset({"Reconciling", "Deleting"})


def _in_namespace(event: Event[Header], known: KnownObjects) -> Iterable[Request]:
    """Map a Target to all HelmChartProxies in its namespace: each may select it, or did before."""
    return known.requests(event.request.namespace)


def _is_news(event: Event[Header]) -> bool:
    """Whether a Target is new or deleted, or changed labels or deletionTimestamp."""
    old = event.old
    new = event.new
    if old is None or new is None:
        return True
    return (old.labels, old.deletion_timestamp) != (new.labels, new.deletion_timestamp)


_CHILD_NEWS = any_of(conditions_changed(kinds.READY), generation_changed, IS_GONE)


class HelmCharts(Actuator[kinds.HelmChartProxy]):
    """Installs a chart in several Targets."""

    def __init__(self, charts: Path, places: Places = TARGETS_ONLY) -> None:
        self._charts = charts
        self._places = places
        self.permissions = (
            *(place.permission("list") for place in places.values()),
            kinds.RELEASES.permission("get", "list", "create", "patch", "delete"),
        )
        self.watches = (
            owns(kinds.RELEASES, predicates=[_CHILD_NEWS]),
            *(watches(place, _in_namespace, predicates=[_is_news]) for place in places.values()),
        )

    def validate(
        self, ctx: Context, obj: kinds.HelmChartProxy, cluster: Cluster
    ) -> Iterable[FieldProblem]:
        """Yield the problems of the spec."""
        yield from chart_problems(self._charts, obj.spec, obj.metadata.name)
        if len(obj.metadata.name) > _MAX_NAME:
            detail = f"guards and labels have room for {_MAX_NAME} characters; shorten it"
            yield FieldProblem(field="metadata.name", detail=detail)

    def reconcile(self, ctx: Context, obj: kinds.HelmChartProxy, cluster: Cluster) -> None:
        """Ensure that every selected Target has its release, and no other Target has one."""
        resource = place_of(self._places, obj.spec)
        targets = ctx.client.list(resource, obj.metadata.namespace)
        meant = {target["metadata"]["name"] for target in targets if _means(obj, target)}
        children = {child.spec.target: child for child in _children(ctx, obj)}

        def ensure(name: str) -> None:
            if name in meant:
                children[name] = _ensured(ctx, obj, name, children.get(name))
            else:
                delete(ctx, children[name])

        obj.status.targets = len(meant)
        try:
            for_each(sorted(meant | children.keys()), ensure)
        finally:
            missing = [child for child in children.values() if not is_ready(child)]
            obj.status.ready = len(children) - len(missing)
        _wait_for(missing)

    def delete(self, ctx: Context, obj: kinds.HelmChartProxy, cluster: Cluster) -> None:
        """Uninstall all releases."""
        children = list(_children(ctx, obj))
        for_each(children, partial(delete, ctx))
        _wait_for(children)

    def force_delete(self, ctx: Context, obj: kinds.HelmChartProxy, cluster: Cluster) -> None:
        """Force-delete the releases, which record their remains."""
        children = list(_children(ctx, obj))
        for_each(children, partial(_force, ctx))
        if children:
            raise RequeueAfter(1, f"Waiting for {_listed(children)}, force-deleted too")


def _force(ctx: Context, child: kinds.HelmReleaseProxy) -> None:
    force(ctx, child)
    delete(ctx, child)


def _means(obj: kinds.HelmChartProxy, target: Raw) -> bool:
    """Whether the selector matches the Target and the Target is not being deleted."""
    meta = target["metadata"]
    wanted = obj.spec.target_selector.items() <= (meta.get("labels") or {}).items()
    return wanted and meta.get("deletionTimestamp") is None


def _children(ctx: Context, obj: kinds.HelmChartProxy) -> Iterator[kinds.HelmReleaseProxy]:
    """Yield its children, by owner reference, since any user can change labels."""
    for found in ctx.client.list(kinds.RELEASES, obj.metadata.namespace):
        if is_owned_by(found, obj):
            yield decode(kinds.HelmReleaseProxy, found)


def _ensured(
    ctx: Context, obj: kinds.HelmChartProxy, target: str, there: kinds.HelmReleaseProxy | None
) -> kinds.HelmReleaseProxy:
    """Return the Target's HelmReleaseProxy, updated to the spec unless it is being deleted.

    Raises ConfigurationError if another object has its name.
    """
    wanted = _wanted(obj, target)
    if there is None:
        return decode(kinds.HelmReleaseProxy, _created(ctx, obj, wanted))
    same = all(getattr(there.spec, field) == getattr(obj.spec, field) for field in _OF_CHART)
    if same or there.metadata.deletion_timestamp is not None:
        return there
    patch: list[Raw] = [
        {"op": "test", "path": "/metadata/uid", "value": there.metadata.uid},
        {"op": "replace", "path": "/spec", "value": wanted["spec"]},
    ]
    where = (there.metadata.name, there.metadata.namespace)
    return decode(kinds.HelmReleaseProxy, ctx.client.patch(kinds.RELEASES, *where, patch))


def _created(ctx: Context, obj: kinds.HelmChartProxy, wanted: Raw) -> Raw:
    try:
        return ctx.client.create(kinds.RELEASES, wanted)
    except AlreadyExists:
        raise ConfigurationError(
            f"HelmReleaseProxy {obj.metadata.namespace}/{wanted['metadata']['name']} exists, and "
            f"is none of HelmChartProxy {obj.metadata.name}; remove it, or rename one of them"
        ) from None


def _wanted(obj: kinds.HelmChartProxy, target: str) -> Raw:
    meta = obj.metadata
    spec = obj.spec
    release = kinds.HelmReleaseProxySpec(
        **{field: getattr(spec, field) for field in _OF_CHART},
        target=target,
        target_kind=spec.target_kind,
        namespace=spec.namespace,
        release_name=spec.release_name or meta.name,
        depends_on=[_name(other, target) for other in spec.depends_on],
    )
    labels = {
        **meta.labels,
        kinds.CHART_LABEL: meta.name,
        kinds.TARGET_LABEL: shortened(target),
    }
    where = _name(meta.name, target), meta.namespace
    child = manifest_of(kinds.HelmReleaseProxy, *where, labels, spec=encode(release))
    return with_owner(child, obj)


def _name(chart_proxy: str, target: str) -> str:
    return shortened(f"{chart_proxy}-{target}", MAX_NAME)


def _wait_for(children: Sequence[kinds.HelmReleaseProxy]) -> None:
    """Raise RequeueAfter unless empty, with the error of one of the children if it has one."""
    for child in children:
        ready = find_condition(child.status.conditions, kinds.READY)
        if ready is not None and ready.status == "False" and ready.reason not in _AT_WORK:
            text = f"HelmReleaseProxy {child.metadata.name}: {ready.message}"
            codes = [code for code in ErrorCode if code in ready.codes]
            cause = ActuatorError(text, codes=codes, reason=ready.reason)
            raise RequeueAfter(_LOOK_AGAIN, cause=cause)
    if children:
        raise RequeueAfter(_LOOK_AGAIN, f"Waiting for {_listed(children)}")


def _listed(children: Sequence[kinds.HelmReleaseProxy]) -> str:
    first = ", ".join(child.metadata.name for child in children[:3])
    more = f" and {len(children) - 3} more" if len(children) > 3 else ""
    return f"HelmReleaseProxy {first}{more}"
