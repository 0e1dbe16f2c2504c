"""Labels that identify the objects in the seed of one object of this extension."""

from collections.abc import Iterable, Sequence

import attrs

from actuator import Kind, Object, Resource, SeedObjects

_KIND = "local.provider.extensions.gardener.cloud/kind"
_OWNER = "local.provider.extensions.gardener.cloud/owner"
MAX_WAIT_SECONDS = 30.0
"""Counted from an object's deletionTimestamp; a longer deletion is an error."""


def group(kind: Kind, resource: Resource, finalizers: Sequence[str] = ()) -> SeedObjects:
    """Declare the objects of one resource that actuators of `kind` create."""
    return SeedObjects(resource, finalizers, label_selector=f"{_KIND}={kind.name}")


def narrowed(groups: Iterable[SeedObjects], obj: Object) -> list[SeedObjects]:
    """Return the groups, limited to the objects that belong to `obj`."""
    selector = f"{_KIND}={obj.KIND.name},{_OWNER}={obj.metadata.uid}"
    return [attrs.evolve(item, label_selector=selector) for item in groups]
