"""The VPC of a shoot: its own, or an existing one, with what belongs to it.

An existing VPC, and its internet gateway, are neither changed nor deleted.
"""

from collections.abc import Iterator

from actuator import ConfigurationError
from extensions.aws import securitygroups
from extensions.aws.config import VpcConfig
from extensions.aws.ec2 import INTERNET_GATEWAY, SECURITY_GROUP, VPC, describe
from extensions.aws.parts import GATEWAY, NETWORK, OPTIONS
from extensions.aws.resources import ShootResources
from generic.library import Task

_DNS = ("EnableDnsSupport", "EnableDnsHostnames")
"""Attributes of a VPC that nodes need; the second one needs the first one."""


def tasks(shoot: ShootResources, vpc: VpcConfig, region: str) -> Iterator[Task]:
    """Yield the tasks for the VPC, its DHCP options and its internet gateway."""
    domain = "ec2.internal" if region == "us-east-1" else f"{region}.compute.internal"
    options = {
        "DhcpConfigurations": [  # Amazon Route 53 developer guide, "Resolver", predefined names
            {"Key": "domain-name", "Values": [domain]},
            {"Key": "domain-name-servers", "Values": ["AmazonProvidedDNS"]},
        ]
    }
    create = shoot.creates(OPTIONS, "create_dhcp_options", options)
    yield shoot.task(OPTIONS, create=create, when=not vpc.id)
    if vpc.id:
        yield shoot.task(NETWORK, existing=lambda _ids: _existing(shoot, vpc.id))
        yield shoot.task(GATEWAY, existing=lambda ids: _gateway_of(shoot, ids[NETWORK]))
        return
    yield shoot.task(
        NETWORK,
        create=shoot.creates(NETWORK, "create_vpc", {"CidrBlock": vpc.cidr}),
        update=lambda known, ids: _update(shoot, known, str(vpc.cidr), ids[OPTIONS]),
    )
    yield shoot.task(
        GATEWAY,
        create=shoot.creates(GATEWAY, "create_internet_gateway", {}),
        update=lambda known, ids: _attach(shoot, known, ids[NETWORK]),
    )


def _existing(shoot: ShootResources, id: str) -> str:
    """Return the id, or "" if there is none. Raises ConfigurationError for wrong attributes."""
    found = shoot.first(VPC, [VPC.with_id(id)])
    if found and (off := _dns_off(shoot, id)):
        raise ConfigurationError(
            f"spec.providerConfig.networks.vpc.id: {' and '.join(off)} of {id} must be true, "
            "for the names of nodes; set it in AWS"
        )
    return found


def _gateway_of(shoot: ShootResources, vpc_id: str) -> str:
    return shoot.first(INTERNET_GATEWAY, [{"Name": "attachment.vpc-id", "Values": [vpc_id]}])


def _update(shoot: ShootResources, id: str, cidr: str, options: str) -> None:
    shoot.check_range(VPC, id, cidr, "vpc.cidr")
    if shoot.item(VPC, id).get("DhcpOptionsId") != options:
        shoot.cloud.request("associate_dhcp_options", VpcId=id, DhcpOptionsId=options)
    for attribute in _dns_off(shoot, id):
        shoot.cloud.request("modify_vpc_attribute", VpcId=id, **{attribute: {"Value": True}})
    wanted = [{"Name": "vpc-id", "Values": [id]}, {"Name": "group-name", "Values": ["default"]}]
    for group in describe(shoot.cloud, SECURITY_GROUP, wanted):
        for operation, rules in securitygroups.all_rules(group):
            shoot.cloud.request(operation, GroupId=group["GroupId"], IpPermissions=rules)


def _dns_off(shoot: ShootResources, vpc_id: str) -> list[str]:
    """Return the attributes for DNS that the VPC lacks."""
    return [
        name
        for name in _DNS
        if not shoot.cloud.request(
            "describe_vpc_attribute", VpcId=vpc_id, Attribute=f"e{name[1:]}"
        )[name]["Value"]
    ]


def _attach(shoot: ShootResources, gateway: str, vpc_id: str) -> None:
    if not shoot.item(INTERNET_GATEWAY, gateway).get("Attachments"):
        shoot.cloud.request("attach_internet_gateway", InternetGatewayId=gateway, VpcId=vpc_id)
