"""The external resource of one object: create it once, store its id, release it, record it.

Flow of `hold`: save a status without an id (from then on a resource may exist outside) → create the
resource → write its id to the status. Control plane migration transfers `status.state` to the next
seed; providerStatus has the same content for users.

For an object without a status no resource was ever requested, so its deletion, or force deletion,
needs no lookup outside.
"""

from collections.abc import Iterable

import attrs

from actuator import (
    ActuatorError,
    Cluster,
    ConfigurationError,
    Context,
    ExternalResource,
    KeepsUnknownFields,
    Raw,
    read_status,
    write_status,
)
from actuator.v1alpha1 import Extension, Network
from extensions.local.config import API_VERSION
from extensions.local.outside import Outside, OutsideResource

REGION = "local"

Holder = Network | Extension
"""The kinds with an external resource."""


@attrs.frozen(kw_only=True)
class Holding(KeepsUnknownFields):
    """The stored state of an external resource; `id` is "" while it is unknown."""

    api_version: str = API_VERSION
    kind: str = "Holding"
    owner: dict[str, str]
    id: str = ""


def hold(
    ctx: Context, outside: Outside, obj: Holder, cluster: Cluster, *, type: str, properties: Raw
) -> None:
    """Create or update the resource with these properties, and write its id to the status.

    Raises OutsideError, and ConfigurationError for a state of another owner.
    """
    holding = _mine(obj, cluster) or Holding(owner=_owner(obj, cluster))
    if not holding.id:
        write_status(obj.status, holding)
        ctx.save(obj)  # from now on a resource may exist outside
    id = holding.id or _id(obj, type, holding.owner)
    ctx.check()
    outside.ensure(OutsideResource(type=type, id=id, tags=holding.owner, properties=properties))
    write_status(obj.status, attrs.evolve(holding, id=id))


def release(ctx: Context, outside: Outside, obj: Holder, cluster: Cluster) -> None:
    """Delete the resource, and clear the status. Raises OutsideError."""
    holding = _mine(obj, cluster)
    if holding is None:
        return  # nothing was ever created: send no request
    ids = [holding.id] if holding.id else [thing.id for thing in outside.find(holding.owner)]
    for id in ids:
        ctx.check()
        outside.delete(id, holding.owner)
    obj.status.provider_status = obj.status.state = None


def recorded(obj: Holder, type: str) -> Iterable[ExternalResource]:
    """Yield the resource that may exist outside, by id, or by tags if the id is unknown."""
    try:
        holding = read_status(Holding, obj.status)
    except ActuatorError:  # unreadable: it may exist
        holding = Holding(owner={"object": _name(obj)})
    if holding is not None:
        yield ExternalResource(type=type, id=holding.id, tags=holding.owner, region=REGION)


def _mine(obj: Holder, cluster: Cluster) -> Holding | None:
    """Return the stored state. Raises ConfigurationError if its owner differs: it is untrusted."""
    holding = read_status(Holding, obj.status)
    if holding is not None and holding.owner != _owner(obj, cluster):
        raise ConfigurationError(
            f"{obj.KIND.name} {obj.key}: status.state names another owner; restore the state that "
            "the extension wrote"
        )
    return holding


def _owner(obj: Holder, cluster: Cluster) -> dict[str, str]:
    """Return the tags of a resource. A shoot's technical ID is the same on every seed."""
    shoot = cluster.technical_id or obj.metadata.namespace
    return {"shoot": shoot, "object": _name(obj)}


def _id(obj: Holder, type: str, owner: dict[str, str]) -> str:
    """Return a constant id per object, so that a repeated creation is idempotent."""
    return f"{type.rpartition('::')[2].lower()}.{owner['shoot']}.{obj.metadata.name}"


def _name(obj: Holder) -> str:
    return f"{obj.KIND.name}/{obj.metadata.name}"
