"""The Elastic IP address of a shoot's control plane in the cloud: found by its mark.

Nothing in here knows Kubernetes; `controlplane` does.
"""

from __future__ import annotations

import attrs

from actuator import ActuatorError, ErrorCode
from actuator.meta import Raw
from extensions.aws import tags
from extensions.aws.cloud import Cloud

__all__ = ["Address", "ElasticIp"]


@attrs.frozen
class ElasticIp:
    """An address that stays the same however often the load balancer behind it is replaced."""

    allocation_id: str
    public_ip: str


@attrs.frozen
class Address:
    """The one address of the shoot `technical_id`."""

    cloud: Cloud
    technical_id: str

    def find(self) -> ElasticIp | None:
        """The shoot's address, or None. Raises ActuatorError where there are two."""
        found = self._marked()
        if len(found) > 1:
            ids = ", ".join(sorted(address.allocation_id for address in found))
            raise ActuatorError(
                f"More than one address is tagged {tags.text(self.technical_id)}: {ids}; "
                "find out which one is in use and release the others",
                codes=[ErrorCode.ERR_INFRA_DEPENDENCIES],
            )
        return found[0] if found else None

    def allocate(self) -> ElasticIp:
        """A new address."""
        specification = tags.specification("elastic-ip", self.technical_id, self.technical_id)
        return _elastic_ip(
            self.cloud.request("allocate_address", Domain="vpc", TagSpecifications=specification)
        )

    def release(self, known_id: str) -> None:
        """Afterwards neither the address with that id is left, nor one that carries the mark."""
        ids = [known_id, *(address.allocation_id for address in self._marked())]
        for id in dict.fromkeys(ids):
            if id:
                self.cloud.remove("release_address", AllocationId=id)

    def _marked(self) -> list[ElasticIp]:
        by_tag = tags.filters(self.technical_id)
        found = self.cloud.describe("describe_addresses", "Addresses", by_tag)
        return [_elastic_ip(address) for address in found]


def _elastic_ip(described: Raw) -> ElasticIp:
    return ElasticIp(str(described["AllocationId"]), str(described["PublicIp"]))
