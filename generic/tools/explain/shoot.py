"""The state of a Shoot in the garden: its errors, its deletion, the next step. Pure.

Sources: Gardener documentation, "Shoot Status" (error codes and who can resolve them), "Trigger
Shoot Operations Through Annotations" (retry; force deletion, whose rule is ValidateForceDeletion in
gardener `pkg/api/core/validation/shoot.go`); gardener `plugin/pkg/global/deletionconfirmation`.
Not here: the objects of the Shoot in the seed (`standing`), and reading both (`garden`).
"""

from collections.abc import Iterator
from datetime import datetime

import attrs

from actuator.cluster import FORCE_DELETION, Cluster, parse_bool
from actuator.codec import decode
from actuator.errors import ErrorCode
from actuator.meta import (
    ClusterNeed,
    Condition,
    ForceSource,
    Kind,
    LastError,
    LastOperation,
    LastOperationState,
    Raw,
    value_at,
)
from generic.controller.predicates import OPERATION
from generic.kube.deleting import CONFIRM_DELETION
from generic.kube.headers import header, request_of
from generic.tools.explain.facts import Deleting, Explanation, Forcing, Orphaned, Overview
from generic.tools.explain.standing import (
    codes_of_shoot,
    deleting_since,
    forcing,
    not_forcible_because,
)

SHOOT = Kind(
    name="Shoot",
    group="core.gardener.cloud",
    version="v1beta1",
    finalizer="gardener",
    cluster=ClusterNeed.NEVER,
    force_from=ForceSource.OBJECT,
)
_NOT_OF_USERS = {
    ErrorCode.ERR_INFRA_RATE_LIMITS_EXCEEDED,
    ErrorCode.ERR_RETRYABLE_INFRA_DEPENDENCIES,
}
"""Gardener classifies all other codes as errors that the owner of the Shoot can resolve."""
_FAILED = LastOperationState.FAILED.value
_NEXT = {
    _FAILED: "nothing: gardenlet retries a Failed Shoot only after a request or a change",
    LastOperationState.ERROR.value: "gardenlet retries the operation",
    LastOperationState.SUCCEEDED.value: "gardenlet reconciles in the maintenance time window",
}
"""By the state of the last operation."""


@attrs.frozen(kw_only=True)
class ShootStatus:
    """The part of a Shoot's status that is explained."""

    last_operation: LastOperation | None = None
    last_errors: list[LastError] = attrs.field(factory=list)
    conditions: list[Condition] = attrs.field(factory=list)
    constraints: list[Condition] = attrs.field(factory=list)
    technical_id: str = attrs.field(default="", metadata={"wire": "technicalID"})
    """The namespace in the seed; empty before gardenlet has started."""


@attrs.frozen(kw_only=True)
class ReportedShoot:
    """The state of a Shoot, as the garden reports it."""

    namespace: str
    name: str
    uid: str
    seed: str
    """The seed that runs it, or the assigned one; empty without one."""
    deleting: Deleting | None
    confirmed: bool
    """Whether it has the annotation without which Gardener refuses to delete it."""
    forcing: Forcing
    status: ShootStatus


@attrs.frozen(kw_only=True)
class SeedPart:
    """The objects of a Shoot in its seed."""

    problem: str = ""
    """The reason why there is no overview."""
    overview: Overview | None = None
    explanations: tuple[Explanation, ...] = ()
    """Those of blocked objects."""
    orphans: tuple[Orphaned, ...] = ()
    """The open ones."""
    notes: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class ShootExplanation:
    """The explanation of a Shoot across garden and seed."""

    shoot: ReportedShoot
    seed: SeedPart
    next: str
    """The next step of Gardener."""
    actions: tuple[str, ...]
    """The necessary actions, each with the person who must act."""


def state_of(shoot: Raw, now: datetime) -> ReportedShoot:
    """Return the state of a Shoot as the garden returned it. Raises DecodeError."""
    head = header(shoot)
    request = request_of(shoot)
    found = forcing(SHOOT, head, None, Cluster(), None)
    refusal = None if found.counts else not_forcible_because(shoot)  # once set, it stays
    running = value_at(shoot, "status", "seedName")
    assigned = value_at(shoot, "spec", "seedName")
    return ReportedShoot(
        namespace=request.namespace,
        name=request.name,
        uid=head.uid,
        seed=running or assigned or "",
        deleting=deleting_since(head.deletion_timestamp, now),
        confirmed=parse_bool(head.annotations.get(CONFIRM_DELETION, "")) is True,
        forcing=attrs.evolve(
            found,
            place="this Shoot",
            allowed=refusal is None,
            not_allowed_because=refusal or "",
            shoot_codes=tuple(codes_of_shoot(shoot)),
        ),
        status=decode(ShootStatus, shoot.get("status") or {}),
    )


def next_step(shoot: ReportedShoot) -> str:
    """Return what Gardener does next with the Shoot."""
    last = shoot.status.last_operation
    if not shoot.seed:
        leaves = "the Shoot is deleted once its finalizers are removed"
        return leaves if shoot.deleting else "gardener-scheduler retries to find a seed"
    if shoot.deleting and shoot.forcing.counts:
        return "gardenlet deletes the control plane, and extensions force-delete their objects"
    if last is None:
        return f"the gardenlet of seed {shoot.seed} starts the first operation"
    return _NEXT.get(last.state, "gardenlet continues the operation")


def actions(shoot: ReportedShoot, seed: SeedPart) -> Iterator[str]:
    """Yield the necessary actions, each with the person who must act."""
    last = shoot.status.last_operation
    errors = shoot.status.last_errors
    failed = last is not None and last.state == _FAILED
    forced = shoot.deleting is not None and shoot.forcing.counts
    codes = {code for error in errors for code in error.codes}
    if not shoot.seed and last is not None and not shoot.deleting:
        yield "the owner of the Shoot or the operator of Gardener: fix the cause in the description"
    elif (errors or failed) and not forced:
        who = "the owner of the Shoot" if codes - _NOT_OF_USERS else "the operator of Gardener"
        retry = f", then set the annotation {OPERATION}=retry" if failed else ""
        yield f"{who}: fix the cause of the last errors{retry}"
    if shoot.deleting and shoot.forcing.allowed and not forced:
        yield (
            "the owner of the Shoot: if the cause cannot be fixed, force the deletion, after which "
            "resources in the cloud may remain: kubectl annotate shoot "
            f"-n {shoot.namespace} {shoot.name} {FORCE_DELETION}=true"
        )
    if seed.explanations:
        yield "the operators of the extensions: fix the blockers of their objects"
    if seed.orphans:
        yield "the owner of the cloud account: delete the resources of the open orphans"
