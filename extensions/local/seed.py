"""Which objects in its namespace of the seed belong to one object of this extension: by labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

import attrs

from actuator import Object, Resource, SeedObjects
from actuator.meta import Kind

_KIND = "local.provider.extensions.gardener.cloud/kind"
_OWNER = "local.provider.extensions.gardener.cloud/owner"
PATIENCE = timedelta(seconds=30)
"""From an object's deletionTimestamp on: what takes longer is an error."""


def group(kind: Kind, resource: Resource, finalizers: Sequence[str] = ()) -> SeedObjects:
    """The declaration of what actuators of `kind` make of one resource."""
    return SeedObjects(
        resource.api_version, resource.plural, finalizers, label_selector=f"{_KIND}={kind.name}"
    )


def narrowed(groups: Iterable[SeedObjects], obj: Object) -> list[SeedObjects]:
    """The groups, without what belongs to other objects of the kind."""
    selector = f"{_KIND}={obj.KIND.name},{_OWNER}={obj.metadata.uid}"
    return [attrs.evolve(one, label_selector=selector) for one in groups]
