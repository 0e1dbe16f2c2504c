"""The state of one object: the next operation, and what blocks it."""

from collections.abc import Iterator
from datetime import datetime

import attrs

from actuator.codec import decode, depth_problem
from actuator.conditions import find_condition
from actuator.errors import DecodeError
from actuator.meta import (
    Condition,
    KeepsUnknownFields,
    Kind,
    LastError,
    LastOperation,
    LastOperationState,
    LastOperationType,
    Object,
    Raw,
    parse_time,
)
from generic.kube.headers import DELETION_BLOCKED, Header, header, request_of
from generic.reconciler.operation import Nothing
from generic.reconciler.status import READY
from generic.tools.explain.decision import decide, forcing
from generic.tools.explain.facts import Deleting, Standing, Subject
from generic.tools.explain.owners import held
from generic.tools.explain.reader import Surroundings

_QUIET_SECONDS = 30.0
"""Seconds within which a running manager has written a status."""
_STANDING_STILL = frozenset({Nothing.WAITS_FOR_STATE.value, Nothing.SHOOT_FAILED.value})


@attrs.frozen(kw_only=True)
class _Status(KeepsUnknownFields):
    """The explained parts of any kind's status; other fields are in `extra`."""

    conditions: list[Condition] = attrs.field(factory=list)
    last_error: LastError | None = None
    last_operation: LastOperation | None = None


@attrs.define(kw_only=True)
class _Reported(Object):
    status: _Status = attrs.field(factory=_Status)


def stand(kind: Kind, obj: Raw, around: Surroundings, now: datetime) -> Standing:
    """Return the state of an object as the API server returned it."""
    head, verdict = header(obj), around.verdict(kind)
    status, unreadable = _status(obj)
    standing = Standing(
        subject=_subject(kind, obj, head),
        decision=decide(kind, request_of(obj), head, verdict),
        deleting=deleting_since(head.deletion_timestamp, now),
        last_operation=status.last_operation,
        last_error=status.last_error,
        finalizers=held(head.finalizers, kind),
        secret=around.reference(head.secret),
        conditions=tuple(status.conditions),
        forcing=forcing(kind, head, verdict, around.cluster, status.last_error),
    )
    return attrs.evolve(standing, blockers=(*unreadable, *blockers(kind, standing)))


def deleting_since(timestamp: str | None, now: datetime) -> Deleting | None:
    """Return since when; an age that is negative due to clock differences is 0."""
    if timestamp is None:
        return None
    age = (now - parse_time(timestamp)).total_seconds()
    return Deleting(timestamp=timestamp, seconds=max(age, 0.0))


def _status(obj: Raw) -> tuple[_Status, tuple[str, ...]]:
    """Return the reported status, and the errors in it."""
    too_deep = depth_problem(obj)
    unreadable = (f"cannot read the object: {too_deep}",) if too_deep else ()
    try:
        return decode(_Reported, obj).status, unreadable
    except DecodeError as error:
        return _Status(), (f"cannot read its status: {error}",)


def _subject(kind: Kind, obj: Raw, head: Header) -> Subject:
    request = request_of(obj)
    return Subject(
        api_version=kind.api_version,
        kind=kind.name,
        namespace=request.namespace,
        name=request.name,
        uid=head.uid,
        type=head.type,
        class_=head.class_,
    )


def blockers(kind: Kind, standing: Standing) -> Iterator[str]:
    """Yield each blocker once, in the order of fixing them; none for a settled object."""
    last, ready = standing.last_operation, find_condition(standing.conditions, READY)
    succeeded = last is not None and last.state == LastOperationState.SUCCEEDED
    is_ready = ready is not None and ready.status == "True"
    unsettled = standing.deleting is not None or not (succeeded or is_ready)
    decision, secret = standing.decision, standing.secret
    if decision.blocked or (unsettled and decision.why in _STANDING_STILL):
        yield decision.why
    if unsettled and secret is not None and secret.exists is False:
        yield f"referenced Secret {secret.namespace}/{secret.name} not found"
    yield from _reported(standing)
    if standing.deleting is not None:
        yield from _while_deleting(kind, standing, standing.deleting)


def _reported(standing: Standing) -> Iterator[str]:
    for condition in standing.conditions:
        if (condition.type, condition.status) in ((DELETION_BLOCKED, "True"), (READY, "False")):
            yield f"{condition.type}: {condition.message or condition.reason}"
    last = standing.last_operation
    if standing.last_error is not None:
        yield _with_codes(standing.last_error)
    elif last is not None and last.state == LastOperationState.PROCESSING:
        yield f"{last.type} is in progress: {last.description}"


def _while_deleting(kind: Kind, standing: Standing, deleting: Deleting) -> Iterator[str]:
    forcing, type = standing.forcing, standing.subject.type
    if forcing.value is not None and forcing.counts is False:
        yield f"force deletion: {forcing.verdict}"
    ours = any(one.ours for one in standing.finalizers)
    quiet = kind.has_operation_annotation and deleting.seconds > _QUIET_SECONDS
    if ours and quiet and not _is_told_since(standing, deleting):
        which = f" for type {type}" if type else ""
        yield f"no extension has reported its deletion; check that an extension runs{which}"
    for one in standing.finalizers:
        if not one.ours:
            yield f"finalizer {one.finalizer} ({one.owner})"


def _is_told_since(standing: Standing, deleting: Deleting) -> bool:
    """Return whether the status reports the deletion, or the migration before it."""
    last = standing.last_operation
    if last is None:
        return False
    if last.type in (LastOperationType.DELETE, LastOperationType.MIGRATE):
        return True
    try:
        return parse_time(last.last_update_time) >= parse_time(deleting.timestamp)
    except ValueError:
        return False


def _with_codes(error: LastError) -> str:
    codes = f" [{', '.join(error.codes)}]" if error.codes else ""
    return f"{error.description}{codes}"
