"""A rehearsal of the smallest shoot that has something outside and a state to take along."""

from __future__ import annotations

from typing import Any

from actuator import Actuator
from actuator.meta import Raw
from actuator.v1alpha1 import Network
from extensions.local.network import LocalNetwork
from extensions.local.rehearsal import LocalRehearsal
from generic.testing.rehearsal import RehearsedShoot


class OneNetwork(LocalRehearsal):
    """The local sample's Network, and nothing else of it."""

    def actuators(self) -> list[Actuator[Any]]:
        return [one for one in super().actuators() if isinstance(one, LocalNetwork)]

    def manifests(self, shoot: RehearsedShoot) -> list[Raw]:
        return [one for one in super().manifests(shoot) if one["kind"] == Network.KIND.name]
