"""A rehearsal of the smallest shoot that has something outside and a state to take along."""

from __future__ import annotations

from typing import Any

from actuator import Actuator
from actuator.meta import Raw
from actuator.v1alpha1 import Network
from extensions.local.network import LocalNetwork
from extensions.local.rehearsal import LocalRehearsal
from generic.library.webhooks import AdmissionRequest, Webhook, mutates
from generic.testing.rehearsal import RehearsedShoot


class OneNetwork(LocalRehearsal):
    """The local sample's Network, and nothing else of it."""

    def actuators(self) -> list[Actuator[Any]]:
        return [actuator for actuator in super().actuators() if isinstance(actuator, LocalNetwork)]

    def manifests(self, shoot: RehearsedShoot) -> list[Raw]:
        return [
            manifest
            for manifest in super().manifests(shoot)
            if manifest["kind"] == Network.KIND.name
        ]


@mutates(Network, failure_policy="Fail", object_labels={"drill": "rewrites this"})
def own(request: AdmissionRequest[Network]) -> None:
    """Write a label."""
    request.new.metadata.labels["own"] = "yes"


class OneNetworkWithWebhook(OneNetwork):
    """The same with a webhook."""

    def webhooks(self) -> list[Webhook]:
        return [own]
