"""The reconciler's next operation, and whether a deletion is forced, in words.

`generic.reconciler.operation` chooses the operation and detects forced deletions. Whether Gardener
accepts the annotation: gardener `pkg/apis/core/validation` (ValidateForceDeletion); Gardener
documentation, "Force Deletion".
"""

from actuator.cluster import FORCE_DELETION, Cluster, ClusterState, Verdict
from actuator.errors import ErrorCode
from actuator.meta import ForceSource, Kind, LastError, Raw
from generic.controller.predicates import default_predicate
from generic.kube.headers import as_dict
from generic.kube.store import Event, EventType, Header, Request
from generic.reconciler.operation import (
    Blocked,
    Nothing,
    Operation,
    bad_force_value,
    choose_operation,
    is_forced,
)
from generic.tools.explain.facts import Decision, Forcing

_WHY = {
    Operation.RECONCILE: "the spec is not reconciled yet",
    Operation.RESTORE: "a restore is requested, or has not succeeded yet",
    Operation.MIGRATE: "a migration is requested, or has not succeeded yet",
    Operation.DELETE: "it is terminating with our finalizer, and deletion is not forced",
    Operation.FORCE_DELETE: "it is terminating with our finalizer, and deletion is forced",
    Operation.RELEASE: "another seed owns the external resources, so only our finalizer is removed",
}
_UNASKED = "only when requested: no operation annotation is set, and the last operation succeeded"
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
            why = chosen.by.format(name=request.namespace)
            return Decision(operation=chosen.operation.value, why=why, blocked=True)
    asked = default_predicate(kind, ignore_operation_annotation=False)
    first_sight = Event(EventType.ADDED, request, None, header)
    return Decision(operation=chosen.value, why=_WHY[chosen] if asked(first_sight) else _UNASKED)


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
    if kind.force_from is not ForceSource.SHOOT:
        value = header.annotations.get(FORCE_DELETION)
        counts = is_forced(kind, header, verdict or Verdict())
        words = _verdict(kind, header, verdict or Verdict(), value, counts=counts)
        return Forcing(place="this object", value=value, counts=counts, verdict=words)
    if verdict is None:
        words = _UNKNOWN
        return Forcing(place="the shoot in the Cluster", value=None, counts=None, verdict=words)
    return _of_shoot(kind, header, verdict, cluster, last_error)


def _of_shoot(
    kind: Kind,
    header: Header,
    verdict: Verdict,
    cluster: Cluster,
    last_error: LastError | None,
) -> Forcing:
    value, shoot = cluster.force_value, cluster.shoot
    counts = is_forced(kind, header, verdict)
    words = _verdict(kind, header, verdict, value, counts=counts)
    if FORCE_DELETION in header.annotations and not counts:
        words += "; the annotation on the object itself has no effect"
    refusal = not_forcible_because(shoot) if shoot else None
    return Forcing(
        place=f"shoot {cluster.shoot_key} in Cluster {cluster.metadata.name}",
        value=value,
        counts=counts,
        verdict=words,
        allowed=refusal is None if shoot else None,
        not_allowed_because=refusal or "",
        shoot_codes=tuple(codes_of_shoot(shoot)),
        own_codes=tuple(
            code for code in (last_error.codes if last_error else ()) if code in FORCIBLE
        ),
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
