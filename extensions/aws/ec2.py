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
    """A type of resources, and its names in the API of EC2."""

    name: str
    """As AWS CloudFormation names it."""
    tagged_as: str
    id_key: str
    describe: str
    answer_key: str
    delete: str
    alive: tuple[Raw, ...] = ()
    """A filter, because AWS still describes some resources for about an hour after their end."""
    filters_key: str = "Filters"
    service: Service = "ec2"

    def ids(self, described: list[Raw]) -> list[str]:
        """Return the ids of resources as AWS describes them."""
        return [str(item[self.id_key]) for item in described]

    def with_id(self, id: str) -> Raw:
        """Return a filter, because a request that names an unknown id is an error."""
        words = re.findall("[A-Z][a-z]+", self.id_key)
        return {"Name": "-".join(words).lower(), "Values": [id]}


def _in_state(name: str, states: str) -> tuple[Raw, ...]:
    return ({"Name": name, "Values": states.split()},)


VPC = ResourceType("AWS::EC2::VPC", "vpc", "VpcId", "describe_vpcs", "Vpcs", "delete_vpc")
SUBNET = ResourceType(
    "AWS::EC2::Subnet", "subnet", "SubnetId", "describe_subnets", "Subnets", "delete_subnet"
)
INTERNET_GATEWAY = ResourceType(
    "AWS::EC2::InternetGateway",
    "internet-gateway",
    "InternetGatewayId",
    "describe_internet_gateways",
    "InternetGateways",
    "delete_internet_gateway",
)
SECURITY_GROUP = ResourceType(
    "AWS::EC2::SecurityGroup",
    "security-group",
    "GroupId",
    "describe_security_groups",
    "SecurityGroups",
    "delete_security_group",
)
ELASTIC_IP = ResourceType(
    "AWS::EC2::EIP",
    "elastic-ip",
    "AllocationId",
    "describe_addresses",
    "Addresses",
    "release_address",
)
INSTANCE = ResourceType(
    "AWS::EC2::Instance",
    "instance",
    "InstanceId",
    "describe_instances",
    "Reservations",
    "terminate_instances",
    _in_state("instance-state-name", "pending running shutting-down stopping stopped"),
)
DHCP_OPTIONS = ResourceType(
    "AWS::EC2::DHCPOptions",
    "dhcp-options",
    "DhcpOptionsId",
    "describe_dhcp_options",
    "DhcpOptions",
    "delete_dhcp_options",
)
ROUTE_TABLE = ResourceType(
    "AWS::EC2::RouteTable",
    "route-table",
    "RouteTableId",
    "describe_route_tables",
    "RouteTables",
    "delete_route_table",
)
NAT_GATEWAY = ResourceType(
    "AWS::EC2::NatGateway",
    "natgateway",
    "NatGatewayId",
    "describe_nat_gateways",
    "NatGateways",
    "delete_nat_gateway",
    _in_state("state", "pending failed available deleting"),
    "Filter",
)
KEY_PAIR = ResourceType(
    "AWS::EC2::KeyPair",
    "key-pair",
    "KeyName",
    "describe_key_pairs",
    "KeyPairs",
    "delete_key_pair",
)
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
