"""Predicates: which events are worth a look. Functions from Event to bool, and ways to combine.

They see headers only and never touch the API. An Event of a write of ours passes only
`news_in_answer`; everybody else's goes through the predicates of the controller.
"""

from __future__ import annotations

from collections.abc import Callable

from actuator.cluster import FORCE_DELETION
from actuator.meta import ForceSource, Kind
from generic.store import Event, Header

__all__ = [
    "OPERATION",
    "TIMESTAMP",
    "Predicate",
    "all_of",
    "any_of",
    "default_predicate",
    "deletion_told_late",
    "force_annotation_changed",
    "generation_changed",
    "has_class",
    "has_type",
    "negate",
    "news_in_answer",
    "operation_requested",
    "spec_or_finalizers_changed",
]

OPERATION = "gardener.cloud/operation"
TIMESTAMP = "gardener.cloud/timestamp"
_REQUESTS = frozenset({"reconcile", "migrate", "restore"})

Predicate = Callable[[Event[Header]], bool]


def all_of(*predicates: Predicate) -> Predicate:
    """Passes what every one of them passes."""
    return lambda event: all(predicate(event) for predicate in predicates)


def any_of(*predicates: Predicate) -> Predicate:
    """Passes what at least one of them passes."""
    return lambda event: any(predicate(event) for predicate in predicates)


def negate(predicate: Predicate) -> Predicate:
    """Passes what it does not pass."""
    return lambda event: not predicate(event)


def has_type(*types: str) -> Predicate:
    """Passes objects whose spec.type is one of these."""
    wanted = frozenset(types)
    return lambda event: _latest(event).type in wanted


def has_class(*classes: str) -> Predicate:
    """Passes objects of one of these classes; unset means `shoot`, on both sides."""
    wanted = frozenset(c or "shoot" for c in classes) or frozenset({"shoot"})
    return lambda event: (_latest(event).class_ or "shoot") in wanted


def operation_requested(event: Event[Header]) -> bool:
    """Gardener's default: a requested operation, a deletion, or one that did not succeed yet.

    Gardener documentation, "Extension controllers", reconcile triggers. On a deleting object
    every change but one of the status alone counts; Go's library looks at the status instead,
    to leave out its own writes, and so swallows what others change at the same time.
    """
    old, new = event.old, event.new
    if new is None:
        return False
    if new.annotations.get(OPERATION) in _REQUESTS:
        return True
    if new.deletion_timestamp is not None:
        return old is None or _without_status(old) != _without_status(new)
    return old is None and not new.succeeded


def generation_changed(event: Event[Header]) -> bool:
    """With --ignore-operation-annotation: new objects, and every change of spec or deletion."""
    old, new = event.old, event.new
    return new is not None and (old is None or old.generation != new.generation)


def spec_or_finalizers_changed(event: Event[Header]) -> bool:
    """For kinds outside Gardener: generation or finalizers changed."""
    old, new = event.old, event.new
    changed = generation_changed(event)
    return changed or (new is not None and old is not None and old.finalizers != new.finalizers)


def force_annotation_changed(event: Event[Header]) -> bool:
    """For kinds that carry the force-deletion annotation themselves."""
    old, new = event.old, event.new
    if old is None or new is None:
        return False
    return old.annotations.get(FORCE_DELETION) != new.annotations.get(FORCE_DELETION)


def deletion_told_late(event: Event[Header]) -> bool:
    """On a deleting object somebody's change that our own write has hidden from comparison."""
    return event.late and event.new is not None and event.new.deletion_timestamp is not None


def news_in_answer(event: Event[Header]) -> bool:
    """Whether the answer to a write of ours shows what somebody else asked for just before it."""
    old, new = event.old, event.new
    if old is None or new is None:
        return False
    if new.generation != old.generation:
        return True
    if new.deletion_timestamp is not None and old.deletion_timestamp is None:
        return True
    if force_annotation_changed(event):
        return True
    return OPERATION in new.annotations and _requested(new) != _requested(old)


def default_predicate(kind: Kind, *, ignore_operation_annotation: bool) -> Predicate:
    """What triggers an object of `kind`."""
    trigger: Predicate = operation_requested
    if ignore_operation_annotation:
        trigger = generation_changed
    if not kind.has_operation_annotation:
        trigger = spec_or_finalizers_changed
    if kind.force_from in (ForceSource.OBJECT, ForceSource.OBJECT_LITERAL):
        trigger = any_of(trigger, force_annotation_changed)
    return any_of(trigger, deletion_told_late)


def _requested(header: Header) -> tuple[str | None, str | None]:
    return header.annotations.get(OPERATION), header.annotations.get(TIMESTAMP)


def _without_status(header: Header) -> tuple[object, ...]:
    return (
        header.uid,
        header.generation,
        header.deletion_timestamp,
        header.finalizers,
        header.annotations,
    )


def _latest(event: Event[Header]) -> Header:
    latest = event.new or event.old
    assert latest is not None, "an event has an old or a new state"
    return latest
