"""The rules of security groups, as AWS describes and takes them ("IpPermissions").

Nodes accept everything from each other, and node ports from everywhere; they may send everything
(Gardener's AWS extension, `computeNodesSecurityGroupBaseRules`, and its documentation, "Bring your
own VPC"). Of other rules, only those for the subnets of former zones are removed, because the
shoot's cloud-controller-manager has its own in the group. The default group of a VPC has no rules,
so that nothing uses it by mistake.
"""

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network

from actuator import Raw
from extensions.aws.config import Zone

EVERYWHERE = "0.0.0.0/0"
_ALL: Raw = {"IpProtocol": "-1"}
_PROTOCOLS = ("tcp", "udp")
_NODE_PORTS: Raw = {"FromPort": 30000, "ToPort": 32767}
"""Kubernetes documentation, "Service", type NodePort."""

Change = tuple[str, list[Raw]]
"""The operation of a request, and the rules in it."""


def missing(group: Raw, zones: Iterable[Zone]) -> Iterator[Change]:
    """Yield the requests that add the rules which the group for nodes lacks."""
    ingress = [
        {**_ALL, "UserIdGroupPairs": [{"GroupId": group["GroupId"]}]},
        *(
            {**_NODE_PORTS, "IpProtocol": protocol, "IpRanges": [{"CidrIp": cidr}]}
            for protocol in _PROTOCOLS
            for cidr in (EVERYWHERE, *_of_balancers(zones))
        ),
    ]
    egress = [{**_ALL, "IpRanges": [{"CidrIp": EVERYWHERE}]}]
    yield from _lacking(group.get("IpPermissions") or [], ingress, "ingress")
    # the answer to the creation has no rules, but AWS creates a group with this one
    yield from _lacking(group.get("IpPermissionsEgress", egress), egress, "egress")


def former(group: Raw, zones: Iterable[Zone], vpc: Raw) -> Iterator[Change]:
    """Yield the requests that remove the rules for load balancers in former zones.

    They open the node ports for a part of the VPC that is no subnet of a zone. Those for everywhere
    include them, so no traffic depends on one.
    """
    associated = vpc.get("CidrBlockAssociationSet") or ()
    whole = {vpc["CidrBlock"], *(item["CidrBlock"] for item in associated)}
    kept = {*_of_balancers(zones), *whole}
    for rule in group.get("IpPermissions") or ():
        if rule["IpProtocol"] in _PROTOCOLS and _NODE_PORTS.items() <= rule.items():
            sources = [source["CidrIp"] for source in rule.get("IpRanges") or ()]
            gone = [cidr for cidr in sources if cidr not in kept and _is_within(cidr, whole)]
            if gone:
                ranges = [{"CidrIp": cidr} for cidr in gone]
                removed = {**_NODE_PORTS, "IpProtocol": rule["IpProtocol"], "IpRanges": ranges}
                yield "revoke_security_group_ingress", [removed]


def all_rules(group: Raw) -> Iterator[Change]:
    """Yield the requests that remove all rules of the group."""
    for key, direction in (("IpPermissions", "ingress"), ("IpPermissionsEgress", "egress")):
        if rules := group.get(key):
            yield f"revoke_security_group_{direction}", rules


def _of_balancers(zones: Iterable[Zone]) -> list[str]:
    """Return the ranges of the subnets for load balancers."""
    return [cidr for zone in zones for cidr in (zone.internal, zone.public)]


def _is_within(cidr: str, ranges: Iterable[str]) -> bool:
    return any(IPv4Network(cidr).subnet_of(IPv4Network(whole)) for whole in ranges)


def _lacking(there: list[Raw], wanted: list[Raw], direction: str) -> Iterator[Change]:
    rules = [rule for rule in wanted if not any(_includes(item, rule) for item in there)]
    if rules:
        yield f"authorize_security_group_{direction}", rules


def _includes(described: Raw, rule: Raw) -> bool:
    """Whether a described rule includes `rule`; AWS merges rules with the same ports."""
    for key, value in rule.items():
        if not isinstance(value, list):
            if described.get(key) != value:
                return False
        elif not any(value[0].items() <= source.items() for source in described.get(key) or ()):
            return False
    return True
