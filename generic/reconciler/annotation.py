"""The operation annotation: when an attempt removes it, and whether it still asks for work. Pure.

No request is lost. The annotation is removed only while the status is not Succeeded (so that a
crash starts over), or after success; each removal tests operation, timestamp and generation as of
the start, so that a newer request survives it. Without a timestamp, a repeated request cannot be
distinguished from the old one; then Processing is published and the annotation removed before the
call. The same holds always for kinds with `outcomes_are_watched`.

Not here: the writes themselves (`attempt`), and the choice of the operation (`operation`).
"""

from enum import Enum

from actuator.meta import Kind, LastOperationState
from generic.controller.predicates import OPERATION, REQUESTS, TIMESTAMP
from generic.kube.headers import Header
from generic.reconciler.operation import Operation


class Removal(Enum):
    """When an attempt removes the operation annotation."""

    NEVER = "never"
    BEFORE = "before the call"
    PUBLISHED = "before the call, once the status says Processing"
    AFTER = "after success"


def removal(kind: Kind, operation: Operation, header: Header) -> Removal:
    """Return when an attempt at `operation`, which begins with `header`, removes the annotation."""
    requested = header.annotations.get(OPERATION)
    if requested not in REQUESTS:
        return Removal.NEVER
    if kind.outcomes_are_watched:
        return _before_the_outcome(operation, header)
    if not operation.reports or not _answers(kind, operation, requested):
        return Removal.NEVER
    if operation is Operation.RECONCILE and not header.succeeded:
        return Removal.BEFORE
    is_unique = TIMESTAMP in header.annotations or operation is Operation.MIGRATE
    return Removal.AFTER if is_unique else Removal.PUBLISHED


def _before_the_outcome(operation: Operation, header: Header) -> Removal:
    """gardenlet's watch misses an outcome that is written while the annotation is on the object.

    A crash then continues from the status, so it must name the operation first. A deletion
    continues from the deletionTimestamp, and a new object without a status is reconciled.
    """
    begun = operation.last_operation_type(header), LastOperationState.PROCESSING
    is_new = operation is Operation.RECONCILE and header.last_operation is None
    continues = is_new or not operation.reports or header.last_operation == begun
    return Removal.BEFORE if continues else Removal.PUBLISHED


def asks_for_more(kind: Kind, operation: Operation, header: Header) -> bool:
    """Whether the request of `header` needs another operation after `operation` succeeded.

    A failed restore is repeated first if a reconcile is requested meanwhile.
    """
    requested = header.annotations.get(OPERATION)
    is_left = requested in REQUESTS and not _answers(kind, operation, requested)
    return is_left and operation.guards


def _answers(kind: Kind, operation: Operation, requested: str | None) -> bool:
    """Whether `operation` is the requested one; other kinds than migratable ones only reconcile."""
    return requested == operation.value or not kind.migratable
