"""Reads a Shoot from the garden, and its objects from the seed, with a client for each."""

from collections.abc import Sequence
from datetime import datetime

import attrs

from actuator.errors import ActuatorError, ApiError, DecodeError, NotFound, NotServed
from actuator.interface import Client, resource_of
from actuator.meta import Kind, value_at
from generic.kube.clusters import CLUSTERS
from generic.kube.refusals import explained
from generic.manager.registry import Registration
from generic.tools.explain.gather import explain, open_orphans, overview
from generic.tools.explain.reader import Reader
from generic.tools.explain.shoot import (
    SHOOT,
    ReportedShoot,
    SeedPart,
    ShootExplanation,
    actions,
    next_step,
    state_of,
)

EXPLAINED = 10
"""The maximum number of blocked objects that are explained; the others are only listed."""
_REMEDIES = {
    "Forbidden": "become a member of the Project, or set another user with --garden-kubeconfig",
    "Unauthorized": "renew the credentials in --garden-kubeconfig",
    "APIServerUnavailable": "check that the server in --garden-kubeconfig runs",
}


@attrs.frozen
class LandscapeClients:
    """The clients of a garden and of a seed."""

    garden: Client
    seed: Client | None
    seed_problem: str = "no client for the seed"
    """The reason why there is no client for the seed."""


def explain_shoot(
    landscape: LandscapeClients,
    namespace: str,
    name: str,
    now: datetime,
    kinds: Sequence[Kind],
    registrations: Sequence[Registration] | None = None,
) -> ShootExplanation:
    """Explain a Shoot; without access to its seed, as far as the garden knows.

    `kinds` are those of extension objects; `registrations` see `explain`. Raises ActuatorError if
    the Shoot cannot be read.
    """
    shoot = _read_shoot(landscape.garden, namespace, name, now)
    seed = SeedPart(problem=landscape.seed_problem)
    if not shoot.status.technical_id:
        seed = SeedPart(problem="no gardenlet has started with the Shoot")
    elif landscape.seed is not None:
        try:
            seed = _read_seed(landscape.seed, shoot, now, kinds, registrations)
        except ApiError as error:
            seed = SeedPart(problem=str(error))
    steps = tuple(actions(shoot, seed))
    return ShootExplanation(shoot=shoot, seed=seed, next=next_step(shoot), actions=steps)


def _read_shoot(garden: Client, namespace: str, name: str, now: datetime) -> ReportedShoot:
    """Return the state of a Shoot. Raises ActuatorError with the remedy."""
    try:
        return state_of(garden.get(resource_of(SHOOT), name, namespace), now)
    except NotServed:
        why = f"this cluster is no garden, because it does not serve {SHOOT.api_version}; "
        why += "set --garden-kubeconfig to that of a garden"
    except NotFound:
        why = f"Shoot {namespace}/{name} not found in the garden; if it was deleted, "
        why += "`actuator orphans list` shows the resources that remain"
    except (ApiError, DecodeError) as error:
        text = explained(error, **_REMEDIES) if isinstance(error, ApiError) else error
        why = f"cannot read the Shoot in the garden: {text}"
    raise ActuatorError(why)


def _read_seed(
    client: Client,
    shoot: ReportedShoot,
    now: datetime,
    kinds: Sequence[Kind],
    registrations: Sequence[Registration] | None,
) -> SeedPart:
    """Return the objects in the seed. Raises ApiError if it does not answer."""
    home = shoot.status.technical_id
    reader = Reader(client)
    notes = list[str]()
    orphans = tuple(open_orphans(reader, home, notes))
    if other := _other_shoot(reader, shoot):
        notes.append(other)
    notes += map(str, reader.unread)
    try:
        found = overview(client, kinds, home, now, registrations or ())
    except ActuatorError as error:
        return SeedPart(problem=str(error), orphans=orphans, notes=tuple(notes))
    blocked = [object_.subject for object_ in found.objects if object_.blockers]
    named = {(kind.api_version, kind.name): kind for kind in kinds}
    explanations = []
    for item in blocked[:EXPLAINED]:
        kind = named[item.api_version, item.kind]
        try:
            explanations.append(
                explain(client, kind, item.namespace, item.name, now, registrations)
            )
        except ActuatorError as error:  # the object was deleted meanwhile
            notes.append(str(error))
    if len(blocked) > EXPLAINED:
        notes.append(f"{len(blocked) - EXPLAINED} more objects are blocked: explain {home}")
    return SeedPart(
        overview=found, explanations=tuple(explanations), orphans=orphans, notes=tuple(notes)
    )


def _other_shoot(reader: Reader, shoot: ReportedShoot) -> str | None:
    """Return why the objects in the seed are not those of this Shoot, or None."""
    home = shoot.status.technical_id
    try:
        cluster = reader.get(CLUSTERS, home) or {}
    except NotFound:
        return f"this cluster has no Cluster {home}; the Shoot is in seed {shoot.seed or 'none'}"
    uid = value_at(cluster, "spec", "shoot", "metadata", "uid")
    if uid in (None, shoot.uid):
        return None
    return (
        f"Cluster {home} is of another Shoot of this name, with the uid {uid}: its objects here are"
        " those of the other one"
    )
