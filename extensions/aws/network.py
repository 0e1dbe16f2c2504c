"""The network of one shoot in the cloud, as the tasks of a flow.

All resources are found by tag, so any step may be repeated after any crash. AWS's responses lag
behind its writes (Amazon EC2 API reference, "Eventual consistency"): a repetition within that time
may create a resource twice. The next lookup then reports both instead of choosing one.

Security group rules are only added, because the shoot's cloud-controller-manager has its own in the
group. Kubernetes does not belong here; see `infrastructure`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from actuator import ActuatorError, ConfigurationError, ErrorCode
from actuator.meta import Raw
from extensions.aws import tags
from extensions.aws.cloud import Cloud
from extensions.aws.config import Networks
from extensions.aws.ec2 import SECURITY_GROUP, SUBNET, VPC, Marked, ResourceType, describe
from generic.library.flow import Task

NETWORK, NODES = "vpc", "nodes"
"""The names of the tasks for the VPC and for the only security group."""

_NODE_PORTS: Raw = {"FromPort": 30000, "ToPort": 32767, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
"""Kubernetes documentation, "Service", type NodePort."""


@attrs.frozen
class Range:
    """The range of a VPC or subnet; empty in a deletion, which needs none."""

    cidr: str = ""
    zone: str = ""
    field: str = ""
    """The field of the providerConfig that requests it."""


def task_tags(technical_id: str, name: str) -> dict[str, str]:
    """Return the tags of the resource of a task."""
    return {**tags.mark(technical_id), tags.NAME: _full_name(technical_id, name)}


def ranges(networks: Networks) -> dict[str, Range]:
    """Return the ranges of the VPC and its subnets, by the names of their tasks."""
    subnets = {
        f"{purpose}-{zone.name}": Range(cidr, zone.name, f"zones[{index}].{purpose}")
        for index, zone in enumerate(networks.zones)
        for purpose, cidr in zone.ranges().items()
    }
    return {NETWORK: Range(networks.vpc.cidr, field="vpc.cidr"), **subnets}


@attrs.frozen
class Network:
    """The VPC of the shoot `technical_id`, its subnets and its security group."""

    cloud: Cloud
    technical_id: str

    def tasks(self, wanted: Mapping[str, Range], known_vpc: str = "") -> Iterator[Task]:
        """Yield the tasks for the wanted ranges, for all existing subnets and the security group.

        Raises ActuatorError if the VPC with the known id lost its tag.
        """
        vpcs = self._marked.find(VPC)
        if known_vpc and not vpcs:
            self._refuse_unmarked(known_vpc)
        yield Task(
            name=NETWORK,
            type=VPC.name,
            find=lambda: VPC.ids(vpcs),
            create=lambda _: self._create_vpc(wanted[NETWORK]),
            update=lambda known, _: _check(VPC, vpcs, known, wanted[NETWORK]),
            delete=lambda known: self.cloud.remove("delete_vpc", VpcId=known),
        )
        subnets = self._marked.find(SUBNET)
        for name in dict.fromkeys([*wanted, *map(self._name_of, subnets)]):
            if name not in (NETWORK, NODES):
                same = [subnet for subnet in subnets if self._name_of(subnet) == name]
                yield self._subnet(name, same, wanted.get(name, Range()))
        groups = self._marked.find(SECURITY_GROUP)
        yield Task(
            name=NODES,
            type=SECURITY_GROUP.name,
            find=lambda: SECURITY_GROUP.ids(groups),
            create=lambda ids: self._create_security_group(ids[NETWORK]),
            update=lambda known, _: self._add_rules(groups, known),
            delete=lambda known: self.cloud.remove("delete_security_group", GroupId=known),
            needs=[NETWORK],
        )

    @property
    def _marked(self) -> Marked:
        return Marked(self.cloud, tags.mark(self.technical_id))

    def _name_of(self, described: Raw) -> str:
        return tags.as_dict(described).get(tags.NAME, "").removeprefix(f"{self.technical_id}-")

    def _refuse_unmarked(self, vpc_id: str) -> None:
        """Stop if the extension's VPC lost its tag: it would never be found again."""
        if describe(self.cloud, VPC, [VPC.with_id(vpc_id)]):
            raise ActuatorError(
                f"VPC {vpc_id} has lost its tag {tags.text(self._marked.mark)}; put it back",
                codes=[ErrorCode.ERR_INFRA_DEPENDENCIES],
            )

    def _create(self, operation: str, type: ResourceType, name: str, **parameters: Any) -> Raw:
        """Request the resource of a task; return AWS's response."""
        named = _full_name(self.technical_id, name)
        return self._marked.create(operation, type, named, **parameters)

    def _create_vpc(self, wanted: Range) -> str:
        answer = self._create("create_vpc", VPC, NETWORK, CidrBlock=wanted.cidr)
        return str(answer["Vpc"]["VpcId"])

    def _subnet(self, name: str, same: list[Raw], wanted: Range) -> Task:
        """Return the task for a subnet; `same` are the existing ones of this name."""
        return Task(
            name=name,
            type=SUBNET.name,
            find=lambda: SUBNET.ids(same),
            create=lambda ids: self._create_subnet(ids[NETWORK], name, wanted),
            update=lambda known, _: _check(SUBNET, same, known, wanted),
            delete=lambda known: self.cloud.remove("delete_subnet", SubnetId=known),
            needs=[NETWORK],
        )

    def _create_subnet(self, vpc_id: str, name: str, wanted: Range) -> str:
        place = {"VpcId": vpc_id, "CidrBlock": wanted.cidr, "AvailabilityZone": wanted.zone}
        answer = self._create("create_subnet", SUBNET, name, **place)
        return str(answer["Subnet"]["SubnetId"])

    def _create_security_group(self, vpc_id: str) -> str:
        text = {
            "GroupName": f"{self.technical_id}-{NODES}",
            "Description": "Security group for nodes",
        }
        answer = self._create("create_security_group", SECURITY_GROUP, NODES, VpcId=vpc_id, **text)
        return str(answer["GroupId"])

    def _add_rules(self, groups: list[Raw], id: str) -> None:
        described = next((group for group in groups if group["GroupId"] == id), {"GroupId": id})
        missing = _missing_rules(described)
        if missing:
            self.cloud.request(
                "authorize_security_group_ingress", GroupId=id, IpPermissions=missing
            )


def _full_name(technical_id: str, name: str) -> str:
    """Return the Name tag of the resource of a task."""
    return technical_id if name == NETWORK else f"{technical_id}-{name}"


def _check(type: ResourceType, described: list[Raw], id: str, wanted: Range) -> None:
    """Refuse another range for an existing resource. Raises ConfigurationError."""
    for thing in described:
        there = thing["CidrBlock"]
        if wanted.cidr and thing[type.id_key] == id and there != wanted.cidr:
            raise ConfigurationError(
                f"spec.providerConfig.networks.{wanted.field}: {wanted.cidr} differs from {there} "
                f"of {id}; AWS cannot change it, so set {there} again"
            )


def _missing_rules(group: Raw) -> list[Raw]:
    """Return the IpPermissions that a security group, as AWS describes it, lacks."""
    wanted: list[Raw] = [
        {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group["GroupId"]}]},  # among nodes
        {"IpProtocol": "tcp", **_NODE_PORTS},
        {"IpProtocol": "udp", **_NODE_PORTS},
    ]
    there = group.get("IpPermissions") or []
    return [rule for rule in wanted if not any(_includes(one, rule) for one in there)]


def _includes(described: Raw, rule: Raw) -> bool:
    """Whether a described rule includes `rule`; AWS merges rules with the same ports."""
    for key, value in rule.items():
        if not isinstance(value, list):
            if described.get(key) != value:
                return False
        elif not any(value[0].items() <= source.items() for source in described.get(key) or ()):
            return False
    return True
