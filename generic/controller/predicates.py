"""Predicates: which events are worth a look. Functions from Event to bool, and ways to combine.

They see headers only and never touch the API. An Event of a write of ours passes only
`news_in_answer`; everybody else's goes through the predicates of the controller.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from actuator.cluster import FORCE_DELETION, Verdict
from actuator.meta import ForceSource, Kind
from generic.kube.errorinfo import describe
from generic.kube.headers import Event, EventType, Header

__all__ = [
    "OPERATION",
    "TIMESTAMP",
    "Predicate",
    "all_of",
    "any_of",
    "conditions_changed",
    "contained",
    "default_predicate",
    "deletion_told_late",
    "finalizers_changed",
    "for_event_types",
    "force_annotation_changed",
    "generation_changed",
    "has_class",
    "has_name",
    "has_namespace",
    "has_operation_annotation",
    "has_type",
    "is_deleting",
    "last_operation_changed",
    "negate",
    "news_in_answer",
    "operation_requested",
    "shoot_not_failed",
    "spec_or_finalizers_changed",
]

logger = logging.getLogger(__name__)

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


def contained(predicate: Predicate) -> Predicate:
    """Passes what an author's predicate passes; where that raises, the object is looked at."""

    def passes(event: Event[Header]) -> bool:
        try:
            return bool(predicate(event))
        except BaseException as error:  # it must not stop the informer, nor a start
            fields = {"object": str(event.request), "error": describe(error)}
            logger.error("a predicate failed", extra={"fields": fields})
            return True

    return passes


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


def has_name(*names: str) -> Predicate:
    """Passes objects of one of these names."""
    wanted = frozenset(names)
    return lambda event: event.request.name in wanted


def has_namespace(*namespaces: str) -> Predicate:
    """Passes objects in one of these namespaces."""
    wanted = frozenset(namespaces)
    return lambda event: event.request.namespace in wanted


def for_event_types(*types: EventType) -> Predicate:
    """Passes what is of one of these types, whatever the object says."""
    wanted = frozenset(types)
    return lambda event: event.type in wanted


def shoot_not_failed(verdict: Callable[[str], Verdict]) -> Predicate:
    """Passes objects whose shoot did not end as Failed, by the verdict on their namespace.

    A failed shoot that is force-deleted passes. So does an object whose Cluster is missing or
    cannot be read: Go's library drops that event, and nobody would look again.
    """

    def passes(event: Event[Header]) -> bool:
        found = verdict(event.request.namespace)
        return event.new is not None and (found.forced or not found.failed)

    return passes


def is_deleting(event: Event[Header]) -> bool:
    """Passes objects that have a deletionTimestamp."""
    return event.new is not None and event.new.deletion_timestamp is not None


def has_operation_annotation(event: Event[Header]) -> bool:
    """Passes objects on which gardenlet asks for reconcile, migrate or restore."""
    return event.new is not None and event.new.annotations.get(OPERATION) in _REQUESTS


def operation_requested(event: Event[Header]) -> bool:
    """Gardener's default: a requested operation, a deletion, or one that did not succeed yet.

    Gardener documentation, "Extension controllers", reconcile triggers. On a deleting object
    every change but one of the status alone counts; Go's library looks at the status instead,
    to leave out its own writes, and so swallows what others change at the same time.
    """
    old, new = event.old, event.new
    if new is None:
        return False
    if has_operation_annotation(event):
        return True
    if new.deletion_timestamp is not None:
        return old is None or _without_status(old) != _without_status(new)
    return old is None and not new.succeeded


def generation_changed(event: Event[Header]) -> bool:
    """With --ignore-operation-annotation: new objects, and every change of spec or deletion."""
    old, new = event.old, event.new
    return new is not None and (old is None or old.generation != new.generation)


def finalizers_changed(event: Event[Header]) -> bool:
    """Passes where a finalizer came or went."""
    return _differs(event, lambda header: header.finalizers)


def last_operation_changed(event: Event[Header]) -> bool:
    """Passes where lastOperation has another type or state than before."""
    return _differs(event, lambda header: header.last_operation)


def conditions_changed(*types: str) -> Predicate:
    """Passes where a condition of one of these types came, went, or has another status."""

    def relevant(header: Header) -> frozenset[tuple[str, str]]:
        return frozenset(condition for condition in header.conditions if condition[0] in types)

    return lambda event: _differs(event, relevant)


def spec_or_finalizers_changed(event: Event[Header]) -> bool:
    """For kinds outside Gardener: generation or finalizers changed."""
    return generation_changed(event) or finalizers_changed(event)


def force_annotation_changed(event: Event[Header]) -> bool:
    """For kinds that carry the force-deletion annotation themselves."""
    return _differs(event, lambda header: header.annotations.get(FORCE_DELETION))


def deletion_told_late(event: Event[Header]) -> bool:
    """On a deleting object somebody's change that our own write has hidden from comparison."""
    return event.late and is_deleting(event)


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


def _differs(event: Event[Header], part: Callable[[Header], object]) -> bool:
    """Whether that part of an object changed; an object that is new, or gone, changed nothing."""
    old, new = event.old, event.new
    return old is not None and new is not None and part(old) != part(new)


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
