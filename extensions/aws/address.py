"""The Elastic IP address of a shoot's control plane in the cloud: found by its mark.

Nothing in here knows Kubernetes; `controlplane` does.
"""

from __future__ import annotations

import attrs

from actuator.meta import Raw
from extensions.aws import tags
from extensions.aws.cloud import Cloud
from extensions.aws.status import ControlPlaneStatus

ELASTIC_IP = "AWS::EC2::EIP"
"""Resource type as AWS CloudFormation names it."""


@attrs.frozen
class Address:
    """The one address of the shoot `technical_id`."""

    cloud: Cloud
    technical_id: str

    def find(self) -> ControlPlaneStatus | None:
        """The shoot's address, or None. Raises ActuatorError where there are two."""
        found = tags.only(self._mark, "address", "AllocationId", self._marked())
        return None if found is None else _elastic_ip(found)

    def allocate(self) -> ControlPlaneStatus:
        """A new address."""
        specification = tags.specification("elastic-ip", self._mark, self.technical_id)
        return _elastic_ip(
            self.cloud.request("allocate_address", Domain="vpc", TagSpecifications=specification)
        )

    def release(self, known_id: str) -> None:
        """Afterwards neither the address with that id is left, nor one that carries the mark."""
        ids = [known_id, *(str(address["AllocationId"]) for address in self._marked())]
        for id in dict.fromkeys(ids):
            if id:
                self.cloud.remove("release_address", AllocationId=id)

    @property
    def _mark(self) -> tags.Mark:
        return tags.mark(self.technical_id)

    def _marked(self) -> list[Raw]:
        by_tag = tags.filters(self._mark)
        return self.cloud.describe("describe_addresses", "Addresses", by_tag)


def _elastic_ip(described: Raw) -> ControlPlaneStatus:
    """It stays the same however often the load balancer behind it is replaced."""
    return ControlPlaneStatus(
        allocation_id=str(described["AllocationId"]), public_ip=str(described["PublicIp"])
    )
