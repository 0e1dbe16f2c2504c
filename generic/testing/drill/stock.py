"""Taking stock of a seed at the end of a drill, and gardenlet clearing it up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from actuator.errors import ActuatorError
from generic.testing.drill.crowd import for_each
from generic.testing.drill.world import World
from generic.testing.garden import Flow, Garden, Shoot

__all__ = ["clear", "leftovers"]


def leftovers(world: World, shoots: Sequence[Shoot]) -> Iterator[str]:
    """Seed objects of the extension that are still there. Raises ApiError."""
    for actuator in world.actuators:
        for group in actuator.seed_objects:
            for shoot in shoots:
                where = shoot.technical_id if group.namespaced else ""
                for obj in world.admin.list(
                    group.resource, where, label_selector=group.label_selector
                ):
                    yield f"{group.resource} {where}/{obj['metadata']['name']} is still there"


def clear(world: World, shoots: Sequence[Shoot], *, patience: float) -> list[str]:
    """Gardenlet removes what is left of the shoots; returns what it waited for in vain."""
    garden, problems = Garden(world.admin), []

    def clear_one(shoot: Shoot) -> None:
        try:
            Flow(garden, shoot, world.kinds, patience=patience).clear()
        except ActuatorError as error:
            problems.append(str(error))

    for_each(shoots, clear_one)
    return problems
