"""The two seeds of a migration, and the data copied from one to the other."""

from collections.abc import Iterator, Sequence

import attrs

from actuator.interface import Client
from actuator.meta import Kind, Raw
from generic.library.lookup import find
from generic.testing.drill.kills.calls import ObservedCall, digest
from generic.testing.drill.kills.processes import Victim
from generic.testing.drill.migration.rules import DESTINATION, Arrival
from generic.testing.garden import (
    Garden,
    GardenletFlows,
    SeedShoot,
    ShootState,
    resource_of_manifest,
)
from generic.testing.garden.order import STAYS


@attrs.frozen(kw_only=True)
class Side:
    """One of the two seeds."""

    garden: Garden
    victim: Victim
    kinds: Sequence[Kind]
    patience: float

    def flow(self, shoot: SeedShoot) -> GardenletFlows:
        """Return gardenlet's flows for the shoot in this seed."""
        return GardenletFlows(self.garden, shoot, self.kinds, patience=self.patience)

    def left(self, shoot: SeedShoot) -> Iterator[str]:
        """Yield a shoot's objects that still exist, except the seed's own. Raises ApiError."""
        for kind in self.kinds:
            if kind.name in STAYS:
                continue
            for obj in self.garden.objects(kind, shoot):
                held = ", ".join(obj["metadata"].get("finalizers") or []) or "no finalizer"
                yield f"{kind.name} {shoot.technical_id} is still there, with {held}"


def arrivals(
    client: Client, shoot: SeedShoot, state: ShootState, calls: Sequence[ObservedCall]
) -> Iterator[Arrival]:
    """Compare the sent state and resources with those that the destination first saw."""
    first: dict[tuple[str, str], ObservedCall] = {}
    for call in calls:
        if (call.seed, call.operation, call.shoot) == (DESTINATION, "restore", shoot.technical_id):
            first.setdefault((call.kind, call.name), call)
    for extension in state.extensions:
        if extension.state is not None:
            seen = first.get((extension.kind, extension.name))
            yield Arrival(
                shoot=shoot.technical_id,
                what=f"state of {extension.kind} {extension.name}",
                sent=digest(extension.state),
                came=seen.state if seen else "",
            )
    for resource in state.resources:
        where = resource_of_manifest(resource)
        name = resource["metadata"]["name"]
        yield Arrival(
            shoot=shoot.technical_id,
            what=f"{resource['kind']} {name}",
            sent=_content(resource),
            came=_content(find(client, where, name, shoot.technical_id)),
        )


def _content(obj: Raw | None) -> str:
    """Return a digest of the object without metadata and status."""
    apart = ("apiVersion", "kind", "metadata", "status")
    return "" if obj is None else digest({k: v for k, v in obj.items() if k not in apart})
