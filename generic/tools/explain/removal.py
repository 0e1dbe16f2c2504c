"""What a force deletion would do, by what an actuator declares; nothing of it is done here.

An actuator is asked for `external_resources` alone, which does no I/O by contract.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from actuator.errors import NotFound
from actuator.interface import Actuator, SeedObjects, innermost
from actuator.meta import Kind, Raw
from generic.kube.store import Event, EventType, Header, Request
from generic.manager.registry import Registration
from generic.reconciler.orphans import remaining
from generic.tools.explain.facts import Removal, SeedObject
from generic.tools.explain.reader import Reader

__all__ = ["removal", "serving"]


def serving(
    registrations: Sequence[Registration], kind: Kind, request: Request, header: Header
) -> Registration | None:
    """The registration that serves this object of `kind`, or None."""
    first_sight = Event(EventType.ADDED, request, None, header)
    for one in registrations:
        same = (one.kind.group, one.kind.name) == (kind.group, kind.name)
        typed = not one.types or header.type in one.types
        if same and typed and all(predicate(first_sight) for predicate in one.predicates):
            return one
    return None


def removal(reader: Reader, registration: Registration, obj: Raw, namespace: str) -> Removal:
    """What would go from the seed, what would hold on, what would stay outside."""
    actuator = innermost(registration.actuator)
    found = [one for group in actuator.seed_objects for one in _objects(reader, group, namespace)]
    return Removal(
        actuator=type(actuator).__name__,
        own_way=type(actuator).force_delete is not Actuator.force_delete,
        seed_objects=tuple(found),
        left_outside=tuple(remaining(registration.actuator, registration.cls, obj)),
    )


def _objects(reader: Reader, group: SeedObjects, namespace: str) -> Iterator[SeedObject]:
    where = namespace if group.namespaced else ""
    try:
        found = reader.list(group.resource, where, label_selector=group.label_selector)
    except NotFound:  # nobody ever installed this type here
        return
    for obj in found:
        meta = obj["metadata"]
        finalizers = meta.get("finalizers") or []
        yield SeedObject(
            resource=str(group.resource),
            namespace=meta.get("namespace", ""),
            name=meta["name"],
            deleting=meta.get("deletionTimestamp") is not None,
            stripped=tuple(f for f in finalizers if f in group.finalizers),
            holding=tuple(f for f in finalizers if f not in group.finalizers),
        )
