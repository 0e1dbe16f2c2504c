"""Watched: neither end of a Mirror may carry an owner reference, so mapping functions find it.

The source is somebody else's and is only read. The copy lives in another namespace, where a
Mirror cannot own it: a label says whose it is, and the Mirror's finalizer is there to delete it.
A forced deletion asks for the same deletion, and does not wait: what else holds the copy is
somebody else's, in a namespace of somebody else's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta

from actuator import (
    Actuator,
    Cluster,
    Context,
    FieldProblem,
    Permission,
    RequeueAfter,
    Resource,
    SeedObjects,
)
from actuator.errors import NotFound
from extensions.relations.kinds import GROUP, Mirror, nothing_to_configure
from generic.controller.mappers import Target
from generic.controller.watch import watches
from generic.kube.headers import Event, Header, Request
from generic.library import seedobjects
from generic.library.manifests import manifest

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
            api_version="v1",
            resource="configmaps",
            verbs=["get", "list", "create", "patch", "delete"],
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
        data = source.get("data") or {}
        copy = manifest("v1", "ConfigMap", _name(obj), obj.spec.to, data=data)
        seedobjects.ensure(ctx.client, _copies(obj), copy)

    def delete(self, ctx: Context, obj: Mirror, cluster: Cluster) -> None:
        """Afterwards the copy is gone; the source is as it was."""
        self.force_delete(ctx, obj, cluster)
        seedobjects.check_deleted(ctx, [_copies(obj)], obj.spec.to, patience=timedelta.max)

    def force_delete(self, ctx: Context, obj: Mirror, cluster: Cluster) -> None:
        """Afterwards the copy is gone, or on its way."""
        seedobjects.delete(ctx.client, [_copies(obj)], obj.spec.to)


def _copies(mirror: Mirror) -> SeedObjects:
    """What carries our mark, which is the one copy."""
    return SeedObjects("v1", "configmaps", label_selector=f"{_MIRROR}={mirror.metadata.uid}")


def _name(mirror: Mirror) -> str:
    """No other Mirror's copy is called that: a namespace has no dot in its name."""
    return f"{mirror.metadata.namespace}.{mirror.metadata.name}"
