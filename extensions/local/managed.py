"""What belongs into the shoot: brought there, and taken back, by a ManagedResource of our own.

In a force deletion gardenlet removes it, so nothing is declared as a seed object here.
"""

from __future__ import annotations

from collections.abc import Iterable

from actuator import Context, Object
from actuator.meta import Raw
from generic.library.managedresources import (
    check_deleted,
    delete,
    deploy_for_shoot,
    set_keep_objects,
)

_ORIGIN = "extension-local"


def deploy(ctx: Context, obj: Object, name: str, manifests: Iterable[Raw]) -> None:
    """Afterwards these manifests, and no others, are on their way into the shoot."""
    deploy_for_shoot(ctx.client, obj.metadata.namespace, name, manifests, origin=_ORIGIN)


def withdraw(ctx: Context, obj: Object, name: str, *, keep_objects: bool = False) -> None:
    """Afterwards the ManagedResource is gone, and what it brought into the shoot.

    With `keep_objects` the shoot keeps what it has: another seed takes over. Raises RequeueAfter,
    and ActuatorError where the resource manager fails, or takes too long.
    """
    namespace = obj.metadata.namespace
    if keep_objects:
        set_keep_objects(ctx.client, namespace, name, keep=True, origin=_ORIGIN)
    delete(ctx.client, namespace, name, origin=_ORIGIN)
    check_deleted(ctx.client, ctx.clock, namespace, name, origin=_ORIGIN)
