"""The AWS rehearsal, whose Infrastructure does not report the resource that is being created."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from actuator import Actuator, ExternalResource
from actuator.v1alpha1 import Infrastructure
from extensions.aws.infrastructure import AwsInfrastructure
from extensions.aws.rehearsal import AwsRehearsal


class UnreportingInfrastructure(AwsInfrastructure):
    """Reports only resources with an id, as if ids were not written ahead."""

    def external_resources(self, obj: Infrastructure) -> Iterable[ExternalResource]:
        return [
            external_resource
            for external_resource in super().external_resources(obj)
            if external_resource.id
        ]


class UnreportingRehearsal(AwsRehearsal):
    """The actuator above in place of the sample's."""

    def actuators(self) -> Sequence[Actuator[Any]]:
        _, *others = super().actuators()
        return [UnreportingInfrastructure(self.url), *others]
