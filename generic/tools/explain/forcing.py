"""Force deletion as it is asked for: does the annotation count, would Gardener have taken it?

`generic.reconciler` decides: `operation` what counts, `eligibility` what Gardener accepts.
"""

from __future__ import annotations

from actuator.cluster import FORCE_DELETION, Cluster, ClusterState, Verdict
from actuator.meta import ForceSource, Kind, LastError
from generic.kube.store import Header
from generic.reconciler.eligibility import FORCIBLE, codes_of_shoot, not_forcible_because
from generic.reconciler.operation import bad_force_value, is_forced
from generic.tools.explain.facts import Forcing

__all__ = ["forcing"]


def forcing(
    kind: Kind,
    header: Header,
    verdict: Verdict | None,
    cluster: Cluster,
    last_error: LastError | None,
) -> Forcing:
    """What there is to say; `verdict` is None where the Cluster could not be read."""
    if _is_never_forced(kind, header):
        why = f"nothing forces the deletion of this {kind.name}: it belongs to no shoot"
        if kind.force_from is ForceSource.NONE:
            why = f"nothing forces the deletion of objects of kind {kind.name}"
        return Forcing(place="", value=None, counts=False, verdict=why)
    if kind.force_from is not ForceSource.SHOOT:
        value = header.annotations.get(FORCE_DELETION)
        counts = is_forced(kind, header, verdict or Verdict())
        words = _verdict(kind, header, verdict or Verdict(), value, counts=counts)
        return Forcing(place="this object", value=value, counts=counts, verdict=words)
    if verdict is None:
        words = "nobody can say without the Cluster, which could not be read"
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
        words += "; on this object itself the annotation has no effect"
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
        return "it counts" + (", once the object is being deleted" if waits else "")
    if value is None:
        return "it is not set"
    if kind.force_from is ForceSource.OBJECT_LITERAL:
        return f'{value!r} does not count: here only "true" does, literally'
    if bad_force_value(kind, header, verdict) is not None:
        return f'{value!r} does not count: it is no boolean; write "true"'
    return f"{value!r} does not count: it reads as false"
