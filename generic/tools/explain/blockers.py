"""What stands in the way of an object, in words: pure, from how it stands."""

from __future__ import annotations

from collections.abc import Iterator

from actuator.conditions import find_condition
from actuator.meta import (
    Kind,
    LastError,
    LastOperationState,
    LastOperationType,
    parse_time,
)
from generic.kube.headers import DELETION_BLOCKED
from generic.reconciler.operation import Nothing
from generic.reconciler.status import READY
from generic.tools.explain.facts import Deleting, Standing

_QUIET_SECONDS = 30.0
"""A manager that is alive has written something by then."""
_STANDING_STILL = frozenset({Nothing.WAITS_FOR_STATE.value, Nothing.SHOOT_FAILED.value})


def blockers(kind: Kind, standing: Standing) -> Iterator[str]:
    """Each thing once, what has to be mended first comes first; nothing for a settled object."""
    last, ready = standing.last_operation, find_condition(standing.conditions, READY)
    succeeded = last is not None and last.state == LastOperationState.SUCCEEDED
    is_ready = ready is not None and ready.status == "True"
    unsettled = standing.deleting is not None or not (succeeded or is_ready)
    decision, secret = standing.decision, standing.secret
    if decision.blocked or (unsettled and decision.why in _STANDING_STILL):
        yield decision.why
    if unsettled and secret is not None and secret.exists is False:
        yield f"Secret {secret.namespace}/{secret.name}, which it refers to, is not there"
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
        yield f"{last.type} is still going on: {last.description}"


def _while_deleting(kind: Kind, standing: Standing, deleting: Deleting) -> Iterator[str]:
    forcing, type = standing.forcing, standing.subject.type
    if forcing.value is not None and forcing.counts is False:
        yield f"force deletion as it is written: {forcing.verdict}"
    ours = any(held.ours for held in standing.finalizers)
    quiet = kind.has_operation_annotation and deleting.seconds > _QUIET_SECONDS
    if ours and quiet and not _is_told_since(standing, deleting):
        which = f" for type {type}" if type else ""
        yield f"nobody has reported on its deletion yet; is an extension running{which}?"
    for held in standing.finalizers:
        if not held.ours:
            yield f"finalizer {held.finalizer} ({held.owner})"


def _is_told_since(standing: Standing, deleting: Deleting) -> bool:
    """Whether somebody wrote of the deletion, or of the migration that goes before it."""
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
