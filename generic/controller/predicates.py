"""Predicates: filters for events. Functions from Event to bool, and ways to combine them.

They read headers only and never call the API. They are triggers; a `selection` decides which
objects a controller serves. An Event of our own write passes only `answer_predicate`; events of
other clients pass through `default_predicate` and `filtered`.

An accepted event overrides the backoff and a RequeueAfter. So the default accepts only changes that
can change the outcome: otherwise the writes of other controllers would set our rate of attempts.
"""

import logging
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from actuator.cluster import FORCE_DELETION
from actuator.meta import ForceSource, Kind
from generic.kube.errorinfo import describe
from generic.kube.headers import Event, EventType, Header, Request

logger = logging.getLogger(__name__)

OPERATION = "gardener.cloud/operation"
TIMESTAMP = "gardener.cloud/timestamp"
REQUESTS = frozenset({"reconcile", "migrate", "restore"})
_ASKED = 4

Predicate = Callable[[Event[Header]], bool]


def all_of(*predicates: Predicate) -> Predicate:
    """Accept events that every predicate accepts."""

    def passes(event: Event[Header]) -> bool:
        for predicate in predicates:  # noqa: SIM110 - a generator takes twice as long
            if not predicate(event):
                return False
        return True

    return predicates[0] if len(predicates) == 1 else passes


def any_of(*predicates: Predicate) -> Predicate:
    """Accept events that at least one predicate accepts."""
    return lambda event: any(predicate(event) for predicate in predicates)


def contained(predicate: Predicate) -> Predicate:
    """Accept the events of an author's predicate; if it raises, accept the event."""

    def passes(event: Event[Header]) -> bool:
        try:
            return bool(predicate(event))
        except BaseException as error:  # it must stop neither the informer nor a start
            fields = {"object": str(event.request), "error": describe(error)}
            logger.error("predicate failed", extra={"fields": fields})
            return True

    return passes


def negate(predicate: Predicate) -> Predicate:
    """Accept events that the predicate rejects."""
    return lambda event: not predicate(event)


def has_type(*types: str) -> Predicate:
    """Accept objects whose spec.type is one of these."""
    wanted = frozenset(types)
    return lambda event: _latest(event).type in wanted


def has_class(*classes: str) -> Predicate:
    """Accept objects of one of these classes; unset means `shoot`, on both sides."""
    wanted = frozenset(c or "shoot" for c in classes) or frozenset({"shoot"})
    return lambda event: (_latest(event).class_ or "shoot") in wanted


def has_namespace(*namespaces: str) -> Predicate:
    """Accept objects in one of these namespaces."""
    wanted = frozenset(namespaces)
    return lambda event: event.request.namespace in wanted


def selection(
    types: Sequence[str], classes: Sequence[str] | None, namespaces: Sequence[str] = ()
) -> Predicate:
    """Accept the objects of these types, classes and namespaces, which never change.

    None accepts every class. Without types, neither type nor class counts; without namespaces,
    every namespace does.
    """
    parts = [has_type(*types)] if types else []
    if types and classes is not None:
        parts.append(has_class(*classes))
    return all_of(*parts, *([has_namespace(*namespaces)] if namespaces else []))


def for_event_types(*types: EventType) -> Predicate:
    """Accept events of one of these types."""
    wanted = frozenset(types)
    return lambda event: event.type in wanted


def is_deleting(event: Event[Header]) -> bool:
    """Accept objects that have a deletionTimestamp."""
    return event.new is not None and event.new.deletion_timestamp is not None


def has_operation_annotation(event: Event[Header]) -> bool:
    """Accept objects with gardenlet's operation annotation reconcile, migrate or restore."""
    return event.new is not None and event.new.annotations.get(OPERATION) in REQUESTS


def operation_requested(event: Event[Header]) -> bool:
    """Accept Gardener's default: a requested operation, a deletion, or no success yet.

    Gardener documentation, "Extension controllers", reconcile triggers. Of an object that we know,
    only a change of spec, deletion or request counts. Go's library accepts every event while the
    annotation is set, and on a deleting object every event that leaves the status unchanged.
    """
    old = event.old
    new = event.new
    if new is None or not (
        has_operation_annotation(event) or is_deleting(event) or not new.succeeded
    ):
        return False
    return old is None or _differs(
        event, lambda header: (header.generation, header.deletion_timestamp, requested(header))
    )


def generation_changed(event: Event[Header]) -> bool:
    """Accept new objects and changes of spec or deletion, for --ignore-operation-annotation."""
    old = event.old
    new = event.new
    return new is not None and (old is None or old.generation != new.generation)


def conditions_changed(*types: str) -> Predicate:
    """Accept added, removed or changed conditions of one of these types."""

    def relevant(header: Header) -> frozenset[tuple[str, str]]:
        return frozenset(condition for condition in header.conditions if condition[0] in types)

    return lambda event: _differs(event, relevant)


def force_annotation_changed(event: Event[Header]) -> bool:
    """Accept changes of the force-deletion annotation, for kinds that carry it themselves."""
    return _differs(event, lambda header: header.annotations.get(FORCE_DELETION))


def news_in_answer(event: Event[Header]) -> bool:
    """Whether the answer to our write shows a request that another client made just before it."""
    old = event.old
    new = event.new
    if old is None or new is None:
        return False
    if new.generation != old.generation:
        return True
    if new.deletion_timestamp is not None and _deletion(new) != _deletion(old):
        return True
    return OPERATION in new.annotations and requested(new) != requested(old)


def answer_predicate(kind: Kind) -> Predicate:
    """Return the trigger for answers to our writes of objects of `kind`."""
    carries = any_of(news_in_answer, force_annotation_changed)
    return carries if _carries_force(kind) else news_in_answer


def default_predicate(kind: Kind, *, ignore_operation_annotation: bool) -> Predicate:
    """Return the default trigger: objects with work, if they are new or a relevant part changed.

    Relevant is exactly what can change the outcome of an operation on an object of `kind`.
    """
    by_request = kind.has_operation_annotation and not ignore_operation_annotation
    has_work: Predicate = operation_requested if by_request else generation_changed
    carries = _carries_force(kind)

    def relevant(header: Header) -> tuple[object, ...]:
        return (
            header.uid,
            header.generation,
            _deletion(header),
            kind.finalizer in header.finalizers,
            requested(header) if by_request else None,
            header.annotations.get(FORCE_DELETION) if carries else None,
        )

    def passes(event: Event[Header]) -> bool:
        return (event.old is None or _differs(event, relevant)) and has_work(_as_new(event))

    return passes


def filtered(kind: Kind, authors: Sequence[Predicate], trigger: Predicate) -> Predicate:
    """Return the trigger, limited to the events that all predicates of the author accept.

    They cannot hide the end of an object that carries our finalizer: no other client removes it.
    If they select a change explicitly, it triggers too, provided that the object has work.
    """
    accepts = all_of(*map(contained, authors))

    def passes(event: Event[Header]) -> bool:
        if not trigger(event):
            return trigger(_as_new(event)) and _selects(accepts, event)
        is_held = is_deleting(event) and kind.finalizer in _latest(event).finalizers
        return is_held or accepts(event)

    return passes if authors else trigger


def _selects(accepts: Predicate, event: Event[Header]) -> bool:
    """Whether the change itself is the reason to accept: the unchanged object would be rejected.

    Asked repeatedly, because a predicate that contradicts itself must not set the rate of attempts.
    """
    unchanged = replace(event, old=event.new)
    times = range(_ASKED)
    if event.old is None or not all(accepts(event) for _ in times):
        return False
    return not any(accepts(unchanged) for _ in times)


def first_sight(request: Request, header: Header) -> Event[Header]:
    """Return the event of an object as if it were new."""
    return Event(EventType.ADDED, request, None, header)


def _as_new(event: Event[Header]) -> Event[Header]:
    return replace(event, type=EventType.ADDED, old=None)


def _carries_force(kind: Kind) -> bool:
    return kind.force_from in (ForceSource.OBJECT, ForceSource.OBJECT_LITERAL)


def _differs(event: Event[Header], part: Callable[[Header], object]) -> bool:
    """Whether that part of an object changed; false for new and deleted objects."""
    old = event.old
    new = event.new
    return old is not None and new is not None and part(old) != part(new)


def requested(header: Header) -> tuple[str | None, str | None]:
    """Return the operation annotation, and the time that it was set."""
    return header.annotations.get(OPERATION), header.annotations.get(TIMESTAMP)


def _deletion(header: Header) -> tuple[str, str | None] | None:
    """Return when a deletion began, and when it was last requested; None without one."""
    since = header.deletion_timestamp
    return None if since is None else (since, header.annotations.get(TIMESTAMP))


def _latest(event: Event[Header]) -> Header:
    latest = event.new or event.old
    assert latest is not None, "an event has an old or a new state"
    return latest
