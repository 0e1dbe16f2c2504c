"""Watched: neither end of a Mirror may carry an owner reference, so mapping functions find it.

The source is somebody else's and is only read. The copy lives in another namespace, where a
Mirror cannot own it: a label says whose it is, and the Mirror's finalizer is there to delete it.
A forced deletion asks for the same deletion, and does not wait: what else holds the copy is
somebody else's, in a namespace of somebody else's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from actuator import (
    Actuator,
    ActuatorError,
    Cluster,
    Context,
    ErrorCode,
    FieldProblem,
    Permission,
    RequeueAfter,
    Resource,
)
from actuator.errors import AlreadyExists, NotFound
from actuator.meta import Raw
from extensions.relations.kinds import GROUP, Mirror, nothing_to_configure
from generic.controller.mappers import Target
from generic.controller.watch import watches
from generic.kube.headers import Event, Header, Request
from generic.kube.patches import add, test

_CONFIG_MAPS = Resource("v1", "configmaps")
_MIRROR = f"{GROUP}/mirror-uid"
_LOOK_AGAIN = 5.0


def of_source(event: Event[Header], _target: Target) -> Iterator[Request]:
    """From any ConfigMap to the Mirror of its name, which may not exist."""
    yield event.request


def of_copy(event: Event[Header], _target: Target) -> Iterator[Request]:
    """From a copy to its Mirror, after which it is named."""
    if any(state is not None and _MIRROR in state.labels for state in (event.old, event.new)):
        namespace, _, name = event.request.name.partition(".")
        yield Request(namespace, name)


class Mirrors(Actuator[Mirror]):
    """A copy of a ConfigMap in another namespace."""

    permissions = (
        Permission(
            api_version="v1", resource="configmaps", verbs=["get", "create", "patch", "delete"]
        ),
    )
    watches = (watches(_CONFIG_MAPS, of_source), watches(_CONFIG_MAPS, of_copy))

    def validate(self, ctx: Context, obj: Mirror, cluster: Cluster) -> Iterable[FieldProblem]:
        """What is wrong with providerConfig, and with a copy that would be its own source."""
        yield from nothing_to_configure(obj.spec)
        if obj.spec.to == obj.metadata.namespace:
            yield FieldProblem(field="spec.to", detail="is the Mirror's own; name another one")

    def reconcile(self, ctx: Context, obj: Mirror, cluster: Cluster) -> None:
        """Afterwards the copy says what the source says. A source that vanished leaves it be."""
        name, namespace = obj.metadata.name, obj.metadata.namespace
        try:
            source = ctx.client.get(_CONFIG_MAPS, name, namespace)
        except NotFound:
            raise RequeueAfter(_LOOK_AGAIN, f"Waiting for ConfigMap {namespace}/{name}") from None
        wanted = _copy(obj, source.get("data") or {})
        try:
            ctx.client.create(_CONFIG_MAPS, wanted)
        except AlreadyExists:
            _update(ctx, obj, wanted["data"])

    def delete(self, ctx: Context, obj: Mirror, cluster: Cluster) -> None:
        """Afterwards the copy is gone; the source is as it was."""
        self.force_delete(ctx, obj, cluster)
        if there := _find(ctx, obj):
            held = ", ".join(there["metadata"].get("finalizers") or ["nobody"])
            raise RequeueAfter(_LOOK_AGAIN, f"Waiting for ConfigMap {_where(obj)}, held by {held}")

    def force_delete(self, ctx: Context, obj: Mirror, cluster: Cluster) -> None:
        """Afterwards the copy is gone, or on its way."""
        there = _find(ctx, obj)
        if there is None or there["metadata"].get("deletionTimestamp"):
            return
        meta = there["metadata"]
        try:
            ctx.client.delete(_CONFIG_MAPS, meta["name"], meta["namespace"], uid=meta["uid"])
        except NotFound:
            return


def _find(ctx: Context, mirror: Mirror) -> Raw | None:
    """The copy, if something of its name is there and carries our mark."""
    try:
        there = ctx.client.get(_CONFIG_MAPS, _name(mirror), mirror.spec.to)
    except NotFound:
        return None
    ours = (there["metadata"].get("labels") or {}).get(_MIRROR) == mirror.metadata.uid
    return there if ours else None


def _update(ctx: Context, mirror: Mirror, data: dict[str, str]) -> None:
    there = _find(ctx, mirror)
    if there is None:
        raise ActuatorError(
            f"ConfigMap {_where(mirror)} exists and is no copy of Mirror {mirror.key}; remove it",
            codes=[ErrorCode.ERR_CONFIGURATION_PROBLEM],
        )
    if (there.get("data") or {}) != data:
        patch = [test("/metadata/uid", there["metadata"]["uid"]), add("/data", data)]
        ctx.client.patch(_CONFIG_MAPS, _name(mirror), mirror.spec.to, patch)


def _copy(mirror: Mirror, data: dict[str, str]) -> Raw:
    labels = {_MIRROR: mirror.metadata.uid}
    meta = {"name": _name(mirror), "namespace": mirror.spec.to, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def _name(mirror: Mirror) -> str:
    """No other Mirror's copy is called that: a namespace has no dot in its name."""
    return f"{mirror.metadata.namespace}.{mirror.metadata.name}"


def _where(mirror: Mirror) -> str:
    return f"{mirror.spec.to}/{_name(mirror)}"
