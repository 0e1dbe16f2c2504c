"""Holding one thing outside for one object: made once, remembered, released, recorded.

Flow of `hold`: a status without an id is saved (from here on something may exist outside) → the
thing is created → its id is in the status. `status.state` is what control plane migration carries
to the next seed; providerStatus says the same to people.

An object without a status never asked the outside for anything, so its deletion, and its forced
deletion, have nothing to look for there.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from actuator import ActuatorError, Cluster, Context, DefaultStatus, ExternalResource
from actuator.codec import decode, encode
from actuator.errors import ConfigurationError, DecodeError
from actuator.meta import Raw
from actuator.v1alpha1 import Extension, Network
from extensions.local.config import API_VERSION
from extensions.local.outside import Outside, Thing

REGION = "local"

Holder = Network | Extension
"""The kinds that hold something outside."""


@attrs.frozen(kw_only=True)
class Holding:
    """What a status remembers of a thing outside; `id` is "" as long as nobody knows it."""

    api_version: str = API_VERSION
    kind: str = "Holding"
    owner: dict[str, str]
    id: str = ""
    extra: Raw = attrs.field(factory=dict)


def hold(
    ctx: Context, outside: Outside, obj: Holder, cluster: Cluster, *, type: str, properties: Raw
) -> None:
    """Afterwards the thing exists outside with these properties, and the status has its id.

    Raises OutsideError, and ConfigurationError for a state of another owner.
    """
    holding = _mine(obj, cluster) or Holding(owner=_owner(obj, cluster))
    if not holding.id:
        _write(obj.status, holding)
        ctx.save(obj)  # from here on a thing may exist outside
    id = holding.id or _id(obj, type, holding.owner)
    ctx.check()
    outside.ensure(Thing(type=type, id=id, tags=holding.owner, properties=properties))
    _write(obj.status, attrs.evolve(holding, id=id))


def release(ctx: Context, outside: Outside, obj: Holder, cluster: Cluster) -> None:
    """Afterwards the thing is gone, and forgotten. Raises OutsideError."""
    holding = _mine(obj, cluster)
    if holding is None:
        return  # nothing was ever created: needs no outside
    ids = [holding.id] if holding.id else [thing.id for thing in outside.find(holding.owner)]
    for id in ids:
        ctx.check()
        outside.delete(id, holding.owner)
    obj.status.provider_status = obj.status.state = None


def recorded(obj: Holder, type: str) -> Iterable[ExternalResource]:
    """What may exist outside: by its id, or by its tags where the id is not known."""
    try:
        holding = _read(obj.status)
    except ActuatorError:  # unreadable: it may exist
        holding = Holding(owner={"object": _name(obj)})
    if holding is not None:
        yield ExternalResource(type=type, id=holding.id, tags=holding.owner, region=REGION)


def _mine(obj: Holder, cluster: Cluster) -> Holding | None:
    """What the status says, if it is of this object: a state is an input like any other."""
    holding = _read(obj.status)
    if holding is not None and holding.owner != _owner(obj, cluster):
        raise ConfigurationError(
            f"{obj.KIND.name} {obj.key}: status.state names another owner; restore the state that "
            "the extension wrote"
        )
    return holding


def _owner(obj: Holder, cluster: Cluster) -> dict[str, str]:
    """The mark of a thing. A shoot's technical ID stays the same on every seed."""
    shoot = cluster.technical_id or obj.metadata.namespace
    return {"shoot": shoot, "object": _name(obj)}


def _id(obj: Holder, type: str, owner: dict[str, str]) -> str:
    """Always the same for an object, so that what is made twice is made once."""
    return f"{type.rpartition('::')[2].lower()}.{owner['shoot']}.{obj.metadata.name}"


def _name(obj: Holder) -> str:
    return f"{obj.KIND.name}/{obj.metadata.name}"


def _read(status: DefaultStatus) -> Holding | None:
    remembered = status.provider_status or status.state
    if remembered is None:
        return None
    try:
        return decode(Holding, remembered)
    except DecodeError as error:
        raise ActuatorError(
            f"status.providerStatus, or status.state, is no Holding: {error}"
        ) from error


def _write(status: DefaultStatus, holding: Holding) -> None:
    status.provider_status = encode(holding)
    status.state = encode(holding)
