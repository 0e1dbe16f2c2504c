"""The objects that a drill creates for each shoot, in gardenlet's stages, and their removal."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from actuator.errors import ActuatorError, ConfigurationError
from actuator.interface import Actuator, kind_of
from actuator.meta import Kind, Raw
from generic.testing.drill.world import DrillWorld
from generic.testing.garden import Garden, GardenletFlows, SeedShoot
from generic.testing.garden.order import AFTERWARDS, CREATION, in_stages
from generic.testing.polling import parallel
from generic.testing.rehearsal import types_of


def plan(manifests: Sequence[Raw], kinds: Iterable[Kind]) -> list[list[Raw]]:
    """Order the manifests: Secrets etc. first, then the extension objects, stage by stage."""
    served = list(kinds)
    names = {kind.name for kind in served}
    stages = [
        [manifest for manifest in manifests if manifest["kind"] in {kind.name for kind in stage}]
        for stage in in_stages(CREATION, served)
    ]
    others = [manifest for manifest in manifests if manifest["kind"] not in names]
    found = [stage for stage in stages if stage]
    if not found:
        raise ConfigurationError("a shoot of this rehearsal has no extension object")
    return [others + found[0], *found[1:]]


def check_types(manifests: Iterable[Raw], actuators: Iterable[Actuator[Any]], type: str) -> None:
    """Raise ConfigurationError for an object that no actuator serves, because of its type."""
    served: dict[str, list[str]] = {}
    for actuator in actuators:
        if (kind := kind_of(actuator)).has_operation_annotation:
            served.setdefault(kind.name, []).extend(types_of(actuator, [type]))
    for manifest in manifests:
        found = manifest.get("spec", {}).get("type")
        known = served.get(manifest["kind"])
        if known is not None and found not in known:
            raise ConfigurationError(
                f"{manifest['kind']} {manifest['metadata']['name']}: spec.type is {found!r}, which "
                "no actuator of the drill serves; use the `type` of the RehearsedShoot "
                f"({', '.join(map(repr, known))}) in the manifests of the rehearsal"
            )


def spoiled(
    stages: Sequence[Sequence[Raw]], kinds: Iterable[Kind], spoil: Callable[[Raw], None]
) -> list[Raw]:
    """Return one object that `spoil` made invalid, and the objects that it needs.

    Without a kind that a force deletion ends there is none: nothing would delete it.
    """
    names = {kind.name for kind in kinds}
    late = frozenset().union(*AFTERWARDS)
    everything = [manifest for stage in stages for manifest in stage]
    bad = [manifest for manifest in everything if manifest["kind"] in names - late][:1]
    for manifest in bad:
        spoil(manifest)
    return [*(m for m in everything if m["kind"] not in names), *bad]


def remaining_objects(world: DrillWorld, shoots: Sequence[SeedShoot]) -> Iterator[str]:
    """Yield the extension's seed objects that still exist. Raises ApiError."""
    for actuator in world.actuators:
        for group in actuator.seed_objects:
            for shoot in shoots:
                where = shoot.technical_id if group.resource.namespaced else ""
                for obj in world.admin.list(
                    group.resource, where, label_selector=group.label_selector
                ):
                    yield f"{group.resource} {where}/{obj['metadata']['name']} is still there"


def clear(
    world: DrillWorld, shoots: Sequence[SeedShoot], *, patience: float, force: bool = False
) -> list[str]:
    """Remove the rest of the shoots as gardenlet does; return the waits that timed out.

    `force`: their objects still exist, and are force-deleted first.
    """
    garden = Garden(world.admin)
    problems = []

    def clear_one(shoot: SeedShoot) -> None:
        try:
            flow = GardenletFlows(garden, shoot, world.kinds, patience=patience)
            if force:
                flow.force_delete()
                flow.delete_afterwards()
            flow.clear()
        except ActuatorError as error:
            problems.append(str(error))

    parallel(shoots, clear_one)
    return problems
