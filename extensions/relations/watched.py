"""Watched: source and copy cannot have an owner reference; mapping functions find the Mirror.

The source belongs to others and is only read. The copy is in another namespace, where a Mirror
cannot own it: a label identifies its Mirror, whose finalizer ensures its deletion. A force deletion
requests the same deletion without waiting: another finalizer on the copy belongs to others, in a
namespace of others.
"""

from collections.abc import Iterable, Iterator
from math import inf

from actuator import Actuator, Cluster, Context, FieldProblem, RequeueAfter, Resource, SeedObjects
from extensions.relations.kinds import GROUP, Mirror
from generic import Event, Header, KnownObjects, Request, watches
from generic.library import find, manifest, seedobjects

_CONFIG_MAPS = Resource("v1", "configmaps")
_MIRROR = f"{GROUP}/mirror-uid"
_LOOK_AGAIN = 5.0


def of_source(event: Event[Header], _known: KnownObjects) -> Iterator[Request]:
    """Map any ConfigMap to the Mirror of its name, which may not exist."""
    yield event.request


def of_copy(event: Event[Header], _known: KnownObjects) -> Iterator[Request]:
    """Map a copy to its Mirror, after which it is named."""
    if any(state is not None and _MIRROR in state.labels for state in (event.old, event.new)):
        namespace, _, name = event.request.name.partition(".")
        yield Request(namespace, name)


class Mirrors(Actuator[Mirror]):
    """A copy of a ConfigMap in another namespace."""

    permissions = (_CONFIG_MAPS.permission("get", "list", "create", "patch", "delete"),)
    watches = (watches(_CONFIG_MAPS, of_source), watches(_CONFIG_MAPS, of_copy))

    def validate(self, ctx: Context, obj: Mirror, cluster: Cluster) -> Iterable[FieldProblem]:
        """Yield a problem for a copy that would be its own source."""
        if obj.spec.to == obj.metadata.namespace:
            yield FieldProblem(field="spec.to", detail="is the Mirror's own; name another one")

    def reconcile(self, ctx: Context, obj: Mirror, cluster: Cluster) -> None:
        """Copy the data of the source. A deleted source leaves the copy unchanged."""
        name = obj.metadata.name
        namespace = obj.metadata.namespace
        source = find(ctx.client, _CONFIG_MAPS, name, namespace)
        if source is None:
            raise RequeueAfter(_LOOK_AGAIN, f"Waiting for ConfigMap {namespace}/{name}")
        data = source.get("data") or {}
        copy = manifest("v1", "ConfigMap", _name(obj), obj.spec.to, data=data)
        seedobjects.ensure(ctx.client, _copies(obj), copy)

    def delete(self, ctx: Context, obj: Mirror, cluster: Cluster) -> None:
        """Delete the copy; keep the source."""
        self.force_delete(ctx, obj, cluster)
        seedobjects.check_deleted(ctx, [_copies(obj)], obj.spec.to, patience=inf)

    def force_delete(self, ctx: Context, obj: Mirror, cluster: Cluster) -> None:
        """Request the deletion of the copy."""
        seedobjects.delete(ctx.client, [_copies(obj)], obj.spec.to)


def _copies(mirror: Mirror) -> SeedObjects:
    """Return the objects with the Mirror's label: its only copy."""
    return SeedObjects(_CONFIG_MAPS, label_selector=f"{_MIRROR}={mirror.metadata.uid}")


def _name(mirror: Mirror) -> str:
    """Return a name that is unique among Mirrors, since a namespace's name has no dot."""
    return f"{mirror.metadata.namespace}.{mirror.metadata.name}"
