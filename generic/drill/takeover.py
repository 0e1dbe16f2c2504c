"""Take-over: an extension on Gardener's Go library served the shoots, and ours continues.

The stand-in for that extension is a manager of ours, whose ManagedResources `_leave` rewrites as
the Go library deploys them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256

from actuator.errors import NotFound
from actuator.interface import Client, Resource
from actuator.meta import Raw
from generic.drill.crowd import for_each
from generic.drill.evidence import Bystander
from generic.drill.world import World, manager_for
from generic.garden import Flow, Garden, Shoot
from generic.managedresources import GARBAGE_COLLECTABLE, GO_LIBRARY, MANAGED_RESOURCES
from generic.patches import add, remove

__all__ = ["SCENARIO", "former", "take_over"]

SCENARIO = "take-over"
_SECRETS = Resource("v1", "secrets")


@contextmanager
def former(world: World) -> Iterator[None]:
    """While it is open, the former extension serves the shoots."""
    manager = manager_for(world.actuators, [world.names.type], world.manager.options)
    manager.start()
    try:
        yield
    finally:
        manager.stop()


def take_over(world: World, shoots: Sequence[Shoot], patience: float) -> list[Bystander]:
    """Our manager starts, and reconciles what there is; returns what became of it.

    Raises ActuatorError where an object does not get ready.
    """
    before = [one for shoot in shoots for one in _managed(world.admin, shoot)]
    for managed in before:
        if managed["metadata"]["name"] in GO_LIBRARY:
            _leave(world.admin, managed)
    world.manager.start()
    garden = Garden(world.admin)
    for_each(shoots, lambda one: Flow(garden, one, world.kinds, patience=patience).reconcile())
    kept = {one["metadata"]["uid"] for shoot in shoots for one in _managed(world.admin, shoot)}
    lost = "deleted or replaced by the take-over"
    return [
        Bystander(name=f"ManagedResource {m['name']}", problem=None if m["uid"] in kept else lost)
        for m in (one["metadata"] for one in before)
    ]


def _leave(client: Client, managed: Raw) -> None:
    """Removes our labels and annotations; the Secret gets a name as the Go library forms it."""
    name, namespace = managed["metadata"]["name"], managed["metadata"]["namespace"]
    [ours] = managed["spec"]["secretRefs"]
    secret = client.get(_SECRETS, ours["name"], namespace)
    theirs = {"name": f"{name}-{sha256(repr(secret['data']).encode()).hexdigest()[:8]}"}
    meta = {**theirs, "namespace": namespace, "labels": {GARBAGE_COLLECTABLE: "true"}}
    client.create(_SECRETS, {**secret, "metadata": meta})
    bare = [remove("/metadata/labels"), remove("/metadata/annotations")]
    client.patch(MANAGED_RESOURCES, name, namespace, [*bare, add("/spec/secretRefs", [theirs])])
    client.delete(_SECRETS, ours["name"], namespace)


def _managed(client: Client, shoot: Shoot) -> list[Raw]:
    try:
        return client.list(MANAGED_RESOURCES, shoot.technical_id)
    except NotFound:  # the rehearsal has no such kind
        return []
