"""How one object stands: what would be done about it, and what is in the way."""

from __future__ import annotations

from datetime import datetime

import attrs

from actuator.codec import decode, depth_problem
from actuator.errors import DecodeError
from actuator.meta import Condition, Kind, LastError, LastOperation, Object, Raw, parse_time
from generic.kube.headers import Header, header, request_of
from generic.tools.explain.blockers import blockers
from generic.tools.explain.decision import decide, forcing
from generic.tools.explain.facts import Deleting, Standing, Subject
from generic.tools.explain.owners import held
from generic.tools.explain.reader import Surroundings


@attrs.frozen(kw_only=True)
class _Status:
    """Of an object of any kind: what we say more about. All else stays as it is."""

    conditions: list[Condition] = attrs.field(factory=list)
    last_error: LastError | None = None
    last_operation: LastOperation | None = None
    extra: Raw = attrs.field(factory=dict)


@attrs.define(kw_only=True)
class _Reported(Object):
    status: _Status = attrs.field(factory=_Status)


def stand(kind: Kind, obj: Raw, around: Surroundings, now: datetime) -> Standing:
    """The whole of it, for an object as the API server hands it out."""
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
    """Since when; an age that two clocks make negative is none."""
    if timestamp is None:
        return None
    age = (now - parse_time(timestamp)).total_seconds()
    return Deleting(timestamp=timestamp, seconds=max(age, 0.0))


def _status(obj: Raw) -> tuple[_Status, tuple[str, ...]]:
    """What the object reports, and what is wrong with that."""
    too_deep = depth_problem(obj)
    unreadable = (f"the object cannot be read: {too_deep}",) if too_deep else ()
    try:
        return decode(_Reported, obj).status, unreadable
    except DecodeError as error:
        return _Status(), (f"its status cannot be read: {error}",)


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
