"""The types of EC2 resources that this extension creates, and the resources with an owner's tag.

Create requests set the tag, so no resource can exist without it, even after a crash. A resource
without the tag is not the extension's and is never adopted. Kubernetes does not belong here.
"""

import re
from typing import Any

import attrs

from actuator import ActuatorError, ErrorCode, Raw
from extensions.aws import tags
from extensions.aws.cloud import Cloud, Service


@attrs.frozen
class ResourceType:
    """A type of resources, and its names in the API of EC2.

    Most operations are named after it.
    """

    name: str
    """As AWS CloudFormation names it."""
    tagged_as: str
    id_key: str
    answer_key: str
    alive: tuple[Raw, ...] = ()
    """A filter, because AWS still describes some resources for about an hour after their end."""
    filters_key: str = "Filters"
    service: Service = "ec2"
    describe: str = attrs.field(kw_only=True)
    delete: str = attrs.field(kw_only=True)

    @describe.default
    def _describe(self) -> str:
        return f"describe_{'_'.join(_words(self.answer_key))}"

    @delete.default
    def _delete(self) -> str:
        return f"delete_{self.tagged_as.replace('-', '_')}"

    def ids(self, described: list[Raw]) -> list[str]:
        """Return the ids of resources as AWS describes them."""
        return [str(item[self.id_key]) for item in described]

    def with_id(self, id: str) -> Raw:
        """Return a filter, because a request that names an unknown id is an error."""
        return {"Name": "-".join(_words(self.id_key)), "Values": [id]}


def _words(name: str) -> list[str]:
    """Return the words of a name such as "KeyPairs", in lower case."""
    return [word.lower() for word in re.findall("[A-Z][a-z]+", name)]


def _in_state(name: str, states: str) -> tuple[Raw, ...]:
    return ({"Name": name, "Values": states.split()},)


VPC = ResourceType("AWS::EC2::VPC", "vpc", "VpcId", "Vpcs")
SUBNET = ResourceType("AWS::EC2::Subnet", "subnet", "SubnetId", "Subnets")
INTERNET_GATEWAY = ResourceType(
    "AWS::EC2::InternetGateway", "internet-gateway", "InternetGatewayId", "InternetGateways"
)
SECURITY_GROUP = ResourceType(
    "AWS::EC2::SecurityGroup", "security-group", "GroupId", "SecurityGroups"
)
ELASTIC_IP = ResourceType(
    "AWS::EC2::EIP", "elastic-ip", "AllocationId", "Addresses", delete="release_address"
)
INSTANCE = ResourceType(
    "AWS::EC2::Instance",
    "instance",
    "InstanceId",
    "Reservations",
    _in_state("instance-state-name", "pending running shutting-down stopping stopped"),
    describe="describe_instances",
    delete="terminate_instances",
)
DHCP_OPTIONS = ResourceType("AWS::EC2::DHCPOptions", "dhcp-options", "DhcpOptionsId", "DhcpOptions")
ROUTE_TABLE = ResourceType("AWS::EC2::RouteTable", "route-table", "RouteTableId", "RouteTables")
NAT_GATEWAY = ResourceType(
    "AWS::EC2::NatGateway",
    "natgateway",
    "NatGatewayId",
    "NatGateways",
    _in_state("state", "pending failed available deleting"),
    "Filter",
    delete="delete_nat_gateway",
)
KEY_PAIR = ResourceType("AWS::EC2::KeyPair", "key-pair", "KeyName", "KeyPairs")
TYPES = (
    DHCP_OPTIONS,
    VPC,
    INTERNET_GATEWAY,
    ROUTE_TABLE,
    SUBNET,
    SECURITY_GROUP,
    ELASTIC_IP,
    NAT_GATEWAY,
    KEY_PAIR,
    INSTANCE,
)


def describe(cloud: Cloud, type: ResourceType, filters: list[Raw]) -> list[Raw]:
    """Return the resources that match all filters, without those that are gone."""
    wanted = {type.filters_key: [*filters, *type.alive]}
    found = cloud.items(type.describe, type.answer_key, **wanted)
    if type is not INSTANCE:
        return found
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
        labels = {**self.mark, tags.NAME: name}
        return create_tagged(self.cloud, operation, type, labels, **parameters)


def create_tagged(
    cloud: Cloud, operation: str, type: ResourceType, labels: dict[str, str], **parameters: Any
) -> Raw:
    """Request a resource with these tags; return AWS's response."""
    own: Raw = {"Tags": tags.as_list(labels)}
    if type.service == "ec2":
        own = {"TagSpecifications": [{"ResourceType": type.tagged_as, **own}]}
    return cloud.service(type.service).request(operation, **own, **parameters)
