"""The types of EC2 resources that this extension creates, and the resources with an owner's tag.

Create requests set the tag, so no resource can exist without it, even after a crash. A resource
without the tag is not the extension's and is never adopted. Kubernetes does not belong here.
"""

from typing import Any

import attrs

from actuator import ActuatorError, ErrorCode
from actuator.meta import Raw
from extensions.aws import tags
from extensions.aws.cloud import Cloud


@attrs.frozen
class ResourceType:
    """A type of resources, and its names in the API of EC2."""

    name: str
    """As AWS CloudFormation names it."""
    tagged_as: str
    id_key: str
    describe: str
    answer_key: str

    def ids(self, described: list[Raw]) -> list[str]:
        """Return the ids of resources as AWS describes them."""
        return [str(one[self.id_key]) for one in described]

    def with_id(self, id: str) -> Raw:
        """Return a filter, because a request that names an unknown id is an error."""
        return {"Name": f"{self.id_key.removesuffix('Id').lower()}-id", "Values": [id]}


VPC = ResourceType("AWS::EC2::VPC", "vpc", "VpcId", "describe_vpcs", "Vpcs")
SUBNET = ResourceType("AWS::EC2::Subnet", "subnet", "SubnetId", "describe_subnets", "Subnets")
SECURITY_GROUP = ResourceType(
    "AWS::EC2::SecurityGroup",
    "security-group",
    "GroupId",
    "describe_security_groups",
    "SecurityGroups",
)
ELASTIC_IP = ResourceType(
    "AWS::EC2::EIP", "elastic-ip", "AllocationId", "describe_addresses", "Addresses"
)
INSTANCE = ResourceType(
    "AWS::EC2::Instance", "instance", "InstanceId", "describe_instances", "Reservations"
)
TYPES = (VPC, SUBNET, SECURITY_GROUP, ELASTIC_IP, INSTANCE)

_STATES = ["pending", "running", "shutting-down", "stopping", "stopped"]
_ALIVE: Raw = {"Name": "instance-state-name", "Values": _STATES}
"""A filter, because AWS still describes an instance for about an hour after its termination."""


def describe(cloud: Cloud, type: ResourceType, filters: list[Raw]) -> list[Raw]:
    """Return the resources that match all filters, without terminated instances."""
    if type is not INSTANCE:
        return cloud.describe(type.describe, type.answer_key, filters)
    found = cloud.describe(type.describe, type.answer_key, [*filters, _ALIVE])
    return [instance for reservation in found for instance in reservation["Instances"]]


@attrs.frozen
class Marked:
    """The resources with the tag `mark`."""

    cloud: Cloud
    mark: tags.Mark

    def find(self, type: ResourceType) -> list[Raw]:
        """Return all resources of the type, as AWS describes them."""
        return describe(self.cloud, type, tags.filters(self.mark))

    def only(self, type: ResourceType) -> Raw | None:
        """Return the only resource of the type, or None. Raises ActuatorError if there are two."""
        found = self.find(type)
        if len(found) > 1:
            raise ActuatorError(
                f"More than one {type.name} is tagged {tags.text(self.mark)}: "
                f"{', '.join(sorted(type.ids(found)))}; "
                "find out which one is in use and remove the others",
                codes=[ErrorCode.ERR_INFRA_DEPENDENCIES],
            )
        return found[0] if found else None

    def create(self, operation: str, type: ResourceType, name: str, **parameters: Any) -> Raw:
        """Request a resource with the tag and the name; return AWS's response."""
        labels = tags.as_list({**self.mark, tags.NAME: name})
        specification = [{"ResourceType": type.tagged_as, "Tags": labels}]
        return self.cloud.request(operation, TagSpecifications=specification, **parameters)
