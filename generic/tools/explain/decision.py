"""What the reconciler would do now, in words. `generic.reconciler.operation` decides it."""

from __future__ import annotations

from actuator.cluster import Verdict
from actuator.meta import Kind
from generic.controller.predicates import default_predicate
from generic.kube.store import Event, EventType, Header, Request
from generic.reconciler.operation import Blocked, Nothing, Operation, choose_operation
from generic.tools.explain.facts import Decision

__all__ = ["decide"]

_WHY = {
    Operation.RECONCILE: "it is not yet, or not again, what its spec asks for",
    Operation.RESTORE: "a restore is asked for, or has not succeeded yet",
    Operation.MIGRATE: "a migration is asked for, or has not succeeded yet",
    Operation.DELETE: "it is being deleted, our finalizer is on, and nothing forces the deletion",
    Operation.FORCE_DELETE: "it is being deleted, our finalizer is on, and the deletion is forced",
    Operation.RELEASE: "another seed owns what is outside, so our finalizer comes off, no more",
}
_UNASKED = "only when asked to: there is no operation annotation, and the last one succeeded"
_UNKNOWN = "nobody can say without the Cluster, which could not be read"


def decide(kind: Kind, request: Request, header: Header, verdict: Verdict | None) -> Decision:
    """The operation and the reason; `verdict` is None where the Cluster could not be read."""
    if verdict is None:
        return Decision(operation="", why=_UNKNOWN, blocked=True)
    chosen = choose_operation(kind, header, verdict)
    match chosen:
        case Nothing():
            return Decision(operation="", why=chosen.value)
        case Blocked():
            why = chosen.by.format(name=request.namespace)
            return Decision(operation=chosen.operation.value, why=why, blocked=True)
    asked = default_predicate(kind, ignore_operation_annotation=False)
    first_sight = Event(EventType.ADDED, request, None, header)
    return Decision(operation=chosen.value, why=_WHY[chosen] if asked(first_sight) else _UNASKED)
