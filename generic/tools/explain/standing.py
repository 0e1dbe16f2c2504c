"""The state of one object: the next operation, what blocks it, and whether deletion is forced.

`generic.reconciler.operation` chooses the operation and detects forced deletions. Source of
Gardener's own rule about force deletions: gardener `pkg/apis/core/validation`
(ValidateForceDeletion); Gardener documentation, "Force Deletion".
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

import attrs

from actuator.cluster import FORCE_DELETION, Cluster, ClusterState, Verdict
from actuator.codec import decode, depth_problem
from actuator.conditions import find_condition
from actuator.errors import DecodeError, ErrorCode
from actuator.meta import (
    DefaultStatus,
    ForceSource,
    Kind,
    LastError,
    LastOperationState,
    LastOperationType,
    Object,
    Raw,
    parse_time,
)
from actuator.suggestions import did_you_mean
from generic.controller.predicates import OPERATION, REQUESTS, default_predicate, first_sight
from generic.kube.headers import DELETION_BLOCKED, Header, Request, as_dict, header, request_of
from generic.manager.registry import Registration
from generic.reconciler.operation import (
    Blocked,
    Nothing,
    Operation,
    bad_force_value,
    choose_operation,
    is_forced,
)
from generic.reconciler.status import READY
from generic.tools.explain.facts import Decision, Deleting, Forcing, Standing, Subject
from generic.tools.explain.owners import as_found, held
from generic.tools.explain.reader import Surroundings

_QUIET_SECONDS = 30.0
"""Seconds within which a running manager has written a status."""
_STANDING_STILL = frozenset({Nothing.WAITS_FOR_STATE.value, Nothing.SHOOT_FAILED.value})


@attrs.define(kw_only=True)
class _Reported(Object):
    status: DefaultStatus = attrs.field(factory=DefaultStatus)


@attrs.frozen(kw_only=True)
class Parsed:
    """An object as the API server returned it, parsed once for all parts of its explanation."""

    kind: Kind
    """With the finalizer that its extension uses for this object."""
    by: Registration | None
    """The registration that serves it, if known."""
    raw: Raw = attrs.field(repr=False)
    request: Request
    header: Header


def parse(kind: Kind, obj: Raw, registrations: Sequence[Registration] = ()) -> Parsed:
    """Parse an object of `kind`; `registrations` are those of extensions that may serve it."""
    head = header(obj)
    request = request_of(obj)
    by = None
    for registration in registrations:
        same = (registration.kind.group, registration.kind.name) == (kind.group, kind.name)
        if same and registration.selection(None)(first_sight(request, head)):
            by = registration
            break
    used = as_found(kind, head.finalizers) if by is None else by.kind
    return Parsed(kind=used, by=by, raw=obj, request=request, header=head)


def stand(parsed: Parsed, around: Surroundings, now: datetime) -> Standing:
    """Return the state of an object."""
    kind = parsed.kind
    head = parsed.header
    verdict = around.verdict(parsed.kind)
    status, unreadable = _status(parsed.raw)
    standing = Standing(
        subject=_subject(parsed),
        decision=_pending(decide(kind, parsed.request, head, verdict), kind, head, status),
        deleting=deleting_since(head.deletion_timestamp, now),
        last_operation=status.last_operation,
        last_error=status.last_error,
        finalizers=held(head.finalizers, kind),
        secret=around.reference(head.secret),
        conditions=tuple(status.conditions),
        forcing=forcing(kind, head, verdict, around.cluster, status.last_error),
        untouched=_is_untouched(parsed, now),
    )
    wrong = *around.blockers, *unreadable, *ignored_request(kind, head)
    return attrs.evolve(standing, blockers=(*wrong, *blockers(kind, standing)))


def deleting_since(timestamp: str | None, now: datetime) -> Deleting | None:
    """Return since when; an age that is negative due to clock differences is 0."""
    if timestamp is None:
        return None
    age = (now - parse_time(timestamp)).total_seconds()
    return Deleting(timestamp=timestamp, seconds=max(age, 0.0))


def _status(obj: Raw) -> tuple[DefaultStatus, tuple[str, ...]]:
    too_deep = depth_problem(obj)
    unreadable = (f"cannot read the object: {too_deep}",) if too_deep else ()
    try:
        return decode(_Reported, obj).status, unreadable
    except DecodeError as error:
        return DefaultStatus(), (f"cannot read its status: {error}",)


def ignored_request(kind: Kind, header: Header) -> Iterator[str]:
    """Yield the problem of an operation annotation with a value that no extension knows."""
    known = sorted({*REQUESTS, "wait-for-state"})
    value = header.annotations.get(OPERATION) if kind.has_operation_annotation else None
    if value is not None and value not in known:
        hint = did_you_mean(value, known) or f"; set one of {', '.join(known)}"
        yield f"annotation {OPERATION} has no effect: unknown value {value!r}{hint}"


def _is_untouched(parsed: Parsed, now: datetime) -> bool:
    """Whether no extension has worked on the object, although there was time."""
    age = deleting_since(as_dict(parsed.raw.get("metadata")).get("creationTimestamp"), now)
    return parsed.header.is_untouched and age is not None and age.seconds > _QUIET_SECONDS


def _check_runs(subject: Subject) -> str:
    which = f" for type {subject.type!r}" if subject.type else ""
    return f"check that an extension runs{which}"


def _subject(parsed: Parsed) -> Subject:
    return Subject(
        api_version=parsed.kind.api_version,
        kind=parsed.kind.name,
        namespace=parsed.request.namespace,
        name=parsed.request.name,
        uid=parsed.header.uid,
        type=parsed.header.type,
        class_=parsed.header.class_,
    )


def blockers(kind: Kind, standing: Standing) -> Iterator[str]:
    """Yield each blocker once, in the order of fixing them; none for a settled object."""
    last = standing.last_operation
    ready = find_condition(standing.conditions, READY)
    succeeded = last is not None and last.state == LastOperationState.SUCCEEDED
    is_ready = ready is not None and ready.status == "True"
    unsettled = standing.deleting is not None or not (succeeded or is_ready)
    decision = standing.decision
    secret = standing.secret
    if decision.blocked or (unsettled and decision.why in _STANDING_STILL):
        yield decision.why
    elif standing.untouched:
        yield f"no extension has worked on it; {_check_runs(standing.subject)}"
    if unsettled and secret is not None and secret.exists is False:
        yield f"referenced Secret {secret.namespace}/{secret.name} not found"
    yield from _reported(standing)
    if standing.deleting is not None:
        yield from _while_deleting(kind, standing, standing.deleting)


def _reported(standing: Standing) -> Iterator[str]:
    last = standing.last_operation
    error = standing.last_error
    codes = f" [{', '.join(error.codes)}]" if error and error.codes else ""
    for condition in standing.conditions:
        if (condition.type, condition.status) in ((DELETION_BLOCKED, "True"), (READY, "False")):
            reason = f"{condition.type}: {condition.message or condition.reason}"
            if error is not None and is_cause(error, condition.message):
                reason = f"{reason}{codes}"
                codes = ""
                error = None
            yield reason
    if error is not None:
        yield f"{error.description}{codes}"
    elif last is not None and last.state == LastOperationState.PROCESSING:
        yield f"{last.type} is in progress: {last.description}"


def is_cause(error: LastError, text: str) -> bool:
    """Whether a text names the cause of an error, whose description says "Error deleting …: "."""
    before, colon, cause = error.description.partition(": ")
    known = cause if colon and before.startswith("Error ") else error.description
    return bool(known) and known in text


def _while_deleting(kind: Kind, standing: Standing, deleting: Deleting) -> Iterator[str]:
    forcing = standing.forcing
    if forcing.value is not None and forcing.counts is False:
        yield f"force deletion: {forcing.verdict}"
    ours = any(finalizer.ours for finalizer in standing.finalizers)
    quiet = kind.has_operation_annotation and deleting.seconds > _QUIET_SECONDS
    if ours and quiet and not _is_reported_since(standing, deleting):
        yield f"no extension has reported its deletion; {_check_runs(standing.subject)}"
    for finalizer in standing.finalizers:
        if not finalizer.ours:
            yield f"finalizer {finalizer.finalizer} ({finalizer.owner})"


def _is_reported_since(standing: Standing, deleting: Deleting) -> bool:
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


_WHY = {
    Operation.RECONCILE: "the spec is not reconciled yet",
    Operation.RESTORE: "a restore is requested, or has not succeeded yet",
    Operation.MIGRATE: "a migration is requested, or has not succeeded yet",
    Operation.DELETE: "it is terminating with our finalizer, and deletion is not forced",
    Operation.FORCE_DELETE: "it is terminating with our finalizer, and deletion is forced",
    Operation.RELEASE: "another seed owns the external resources, so only our finalizer is removed",
}
_UNASKED = "only when requested: no operation annotation is set, and the last operation succeeded"
_READY = "only after a change: condition Ready is True for the current spec"
_UNKNOWN = "unknown, because the Cluster could not be read"


def decide(kind: Kind, request: Request, header: Header, verdict: Verdict | None) -> Decision:
    """Return operation and reason; `verdict` is None if the Cluster could not be read."""
    if verdict is None:
        return Decision(operation="", why=_UNKNOWN, blocked=True)
    chosen = choose_operation(kind, header, verdict)
    match chosen:
        case Nothing():
            return Decision(operation="", why=chosen.value)
        case Blocked():
            why = str(chosen.error(request.namespace))
            return Decision(operation=chosen.operation.value, why=why, blocked=True)
    asked = default_predicate(kind, ignore_operation_annotation=False)
    has_work = asked(first_sight(request, header))
    return Decision(operation=chosen.value, why=_WHY[chosen] if has_work else _UNASKED)


def _pending(decision: Decision, kind: Kind, header: Header, status: DefaultStatus) -> Decision:
    """Return the decision, reworded for a kind outside Gardener that is ready."""
    current = status.observed_generation == header.generation
    is_ready = current and (READY, "True") in header.conditions
    waits = not kind.has_operation_annotation and decision.operation == Operation.RECONCILE.value
    return attrs.evolve(decision, why=_READY) if waits and is_ready else decision


def forcing(
    kind: Kind,
    header: Header,
    verdict: Verdict | None,
    cluster: Cluster,
    last_error: LastError | None,
) -> Forcing:
    """Describe the force deletion; `verdict` is None if the Cluster could not be read."""
    if _is_never_forced(kind, header):
        why = f"the deletion of this {kind.name} is never forced: it belongs to no shoot"
        if kind.force_from is ForceSource.NONE:
            why = f"the deletion of the kind {kind.name} is never forced"
        return Forcing(place="", value=None, counts=False, verdict=why)
    of_shoot = kind.force_from is ForceSource.SHOOT
    if of_shoot and verdict is None:
        words = _UNKNOWN
        return Forcing(place="the shoot in the Cluster", value=None, counts=None, verdict=words)
    verdict = verdict or Verdict()
    value = cluster.force_value if of_shoot else header.annotations.get(FORCE_DELETION)
    counts = is_forced(kind, header, verdict)
    words = _verdict(kind, header, verdict, value, counts=counts)
    if not of_shoot:
        return Forcing(place="this object", value=value, counts=counts, verdict=words)
    if FORCE_DELETION in header.annotations and not counts:
        words += "; the annotation on the object itself has no effect"
    shoot = cluster.shoot
    codes = last_error.codes if last_error else ()
    refusal = not_forcible_because(shoot) if shoot else None
    return Forcing(
        place=f"shoot {cluster.shoot_key} in Cluster {cluster.metadata.name}",
        value=value,
        counts=counts,
        verdict=words,
        allowed=refusal is None if shoot else None,
        not_allowed_because=refusal or "",
        shoot_codes=tuple(codes_of_shoot(shoot)),
        own_codes=tuple(code for code in codes if code in FORCIBLE),
    )


def _is_never_forced(kind: Kind, header: Header) -> bool:
    if kind.force_from is ForceSource.SHOOT:
        return not is_forced(kind, header, Verdict(ClusterState.OK, forced=True))
    return kind.force_from is ForceSource.NONE


def _verdict(
    kind: Kind, header: Header, verdict: Verdict, value: str | None, *, counts: bool
) -> str:
    if counts:
        waits = header.deletion_timestamp is None
        return "deletion is forced" + (" once the object is deleted" if waits else "")
    if value is None:
        return "the annotation is not set"
    if kind.force_from is ForceSource.OBJECT_LITERAL:
        return f'{value!r} has no effect: set "true"; this kind accepts no other value'
    if bad_force_value(kind, header, verdict) is not None:
        return f'{value!r} has no effect: it is not a boolean; set "true"'
    return f"{value!r} has no effect: it means false"


FORCIBLE = frozenset(code for code in ErrorCode if code.allows_force_deletion)
"""The last errors of the shoot must contain one of these codes."""


def codes_of_shoot(shoot: Raw) -> list[str]:
    """Return the codes of the shoot's last errors, without duplicates."""
    errors = as_dict(shoot.get("status")).get("lastErrors")
    listed = [as_dict(error).get("codes") for error in errors] if isinstance(errors, list) else []
    return list(dict.fromkeys(str(code) for codes in listed for code in codes or []))


def not_forcible_because(shoot: Raw) -> str | None:
    """Return why Gardener would refuse the annotation, or None."""
    if as_dict(shoot.get("metadata")).get("deletionTimestamp") is None:
        return "the shoot is not being deleted; delete it first"
    if FORCIBLE.isdisjoint(codes_of_shoot(shoot)):
        return f"no last error of the shoot has one of the codes {', '.join(sorted(FORCIBLE))}"
    return None
