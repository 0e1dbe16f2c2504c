"""The parts of a shoot's network: names, types, tags, and order.

A part has the name that Gardener's AWS extension uses in its flow state, so that either extension
can take over from the other. Requests to AWS do not belong here.
"""

from collections.abc import Mapping

import attrs

from extensions.aws import ec2, tags
from extensions.aws.iam import INSTANCE_PROFILE, ROLE

OPTIONS = "DHCPOptions"
NETWORK = "VPC"
GATEWAY = "InternetGateway"
PUBLIC_ROUTES = "MainRouteTable"
NODES = "NodesSecurityGroup"
WORKERS = "SubnetWorkers"
PUBLIC = "SubnetPublicUtility"
INTERNAL = "SubnetPrivateUtility"
ROUTES = "ZoneRouteTable"
ADDRESS = "NATGatewayElasticIP"
NAT = "NATGateway"
NODE_ROLE = "IAMRoleName"
NODE_PROFILE = "IAMInstanceProfileName"
KEY = "KeyPair"

_ZONES = "Zones"


@attrs.frozen
class NetworkPart:
    """A resource of the network."""

    type: ec2.ResourceType
    label: str
    """The end of its tag Name; "" for that of the shoot itself."""
    needs: tuple[str, ...] = ()
    role: str = ""
    """The tag by which load balancers find a subnet (AWS load balancer controller documentation,
    "Subnet Auto Discovery")."""
    zone: str = ""


_OF_SHOOT: Mapping[str, NetworkPart] = {
    OPTIONS: NetworkPart(ec2.DHCP_OPTIONS, ""),
    NETWORK: NetworkPart(ec2.VPC, "", (OPTIONS,)),
    GATEWAY: NetworkPart(ec2.INTERNET_GATEWAY, "", (NETWORK,)),
    PUBLIC_ROUTES: NetworkPart(ec2.ROUTE_TABLE, "", (NETWORK, GATEWAY)),
    NODES: NetworkPart(ec2.SECURITY_GROUP, "nodes", (NETWORK,)),
    NODE_ROLE: NetworkPart(ROLE, "nodes", (NETWORK,)),
    NODE_PROFILE: NetworkPart(INSTANCE_PROFILE, "nodes", (NODE_ROLE,)),
    KEY: NetworkPart(ec2.KEY_PAIR, "ssh-publickey", (NETWORK,)),
}
_OF_ZONE: Mapping[str, NetworkPart] = {
    ROUTES: NetworkPart(ec2.ROUTE_TABLE, "private", (NETWORK,)),
    WORKERS: NetworkPart(ec2.SUBNET, "workers", (NETWORK, ROUTES)),
    PUBLIC: NetworkPart(ec2.SUBNET, "public", (NETWORK, PUBLIC_ROUTES), "kubernetes.io/role/elb"),
    INTERNAL: NetworkPart(
        ec2.SUBNET, "internal", (NETWORK, ROUTES), "kubernetes.io/role/internal-elb"
    ),
    ADDRESS: NetworkPart(ec2.ELASTIC_IP, "eip-natgw", (GATEWAY,)),
    NAT: NetworkPart(ec2.NAT_GATEWAY, "natgw", (PUBLIC, ADDRESS, ROUTES)),
}
_ALL = (*_OF_SHOOT.values(), *_OF_ZONE.values())
TYPES = tuple({part.type.name: part.type for part in _ALL}.values())


def in_zone(zone: str, key: str) -> str:
    """Return the name of a part of a zone."""
    return f"{_ZONES}/{zone}/{key}"


def find(name: str) -> NetworkPart | None:
    """Return the part with that name; None for another entry of a flow state."""
    head, _, rest = name.partition("/")
    if head != _ZONES:
        return _OF_SHOOT.get(name)
    zone, _, key = rest.partition("/")
    found = _OF_ZONE.get(key)
    if found is None:
        return None
    needs = tuple(in_zone(zone, need) if need in _OF_ZONE else need for need in found.needs)
    return attrs.evolve(found, label=f"{found.label}-{zone}", needs=needs, zone=zone)


def part(name: str) -> NetworkPart:
    """Return the part with that name. Raises KeyError."""
    found = find(name)
    if found is None:
        raise KeyError(name)
    return found


def full_name(technical_id: str, name: str) -> str:
    """Return the tag Name of a part. Raises KeyError."""
    label = part(name).label
    return f"{technical_id}-{label}" if label else technical_id


def part_tags(technical_id: str, name: str) -> dict[str, str]:
    """Return the tags of a part."""
    role = {role: "1"} if (role := part(name).role) else {}
    return {**tags.mark(technical_id), tags.NAME: full_name(technical_id, name), **role}
