"""The network of one shoot in the cloud: find it by its tag, create it, delete it.

All resources are found by tag, so any step may be repeated after any crash. AWS's responses lag
behind its writes (Amazon EC2 API reference, "Eventual consistency"): a repetition within that time
may create a resource twice. The next lookup then reports both instead of choosing one.

Security group rules are only added, because the shoot's cloud-controller-manager has its own in the
group. Kubernetes does not belong here; see `infrastructure` and `controlplane`.
"""

from collections.abc import Iterable

import attrs

from actuator import ActuatorError, ConfigurationError, ErrorCode
from actuator.meta import Raw
from extensions.aws import tags
from extensions.aws.cloud import Cloud
from extensions.aws.config import Zone
from extensions.aws.status import ControlPlaneStatus, SecurityGroup, Subnet, Vpc

VPC = "AWS::EC2::VPC"
SUBNET = "AWS::EC2::Subnet"
SECURITY_GROUP = "AWS::EC2::SecurityGroup"
ELASTIC_IP = "AWS::EC2::EIP"
"""Resource types as AWS CloudFormation names them."""

NODES = "nodes"
"""The purpose of the only security group."""

_NODE_PORTS: Raw = {"FromPort": 30000, "ToPort": 32767, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
"""Kubernetes documentation, "Service", type NodePort."""


@attrs.frozen
class Network:
    """The VPC of the shoot `technical_id`, its subnets, its security group and its address."""

    cloud: Cloud
    technical_id: str

    def find_vpc(self, cidr: str, known_id: str) -> str | None:
        """Return the id of the shoot's VPC, or None.

        Raises ActuatorError if there are two, or if the VPC with the known id lost its tag;
        ConfigurationError if the VPC has another range.
        """
        vpc = tags.only(self._mark, "VPC", "VpcId", self._marked("describe_vpcs", "Vpcs"))
        if vpc is None:
            self._refuse_unmarked(known_id)
            return None
        if vpc["CidrBlock"] != cidr:
            raise _cannot_change("networks.vpc.cidr", vpc["VpcId"], vpc["CidrBlock"], cidr)
        return str(vpc["VpcId"])

    def create_vpc(self, cidr: str) -> str:
        """Create a VPC and return its id."""
        answer = self.cloud.request(
            "create_vpc",
            CidrBlock=cidr,
            TagSpecifications=tags.specification("vpc", self._mark, self.technical_id),
        )
        return str(answer["Vpc"]["VpcId"])

    def ensure_subnets(self, vpc: Vpc, zones: Iterable[Zone]) -> None:
        """Ensure that each zone has its three subnets; list all existing ones in `vpc`.

        Subnets of a removed zone are kept: Gardener does not allow the removal of zones.
        """
        found = self._by_name("subnet", "SubnetId", self._marked("describe_subnets", "Subnets"))
        vpc.subnets = [self._subnet(name, subnet) for name, subnet in found.items()]
        for index, zone in enumerate(zones):
            for purpose, cidr in zone.ranges().items():
                name = self._name(purpose, zone.name)
                if name not in found:
                    subnet = self._create_subnet(vpc.id, zone.name, cidr, name)
                    vpc.subnets.append(self._subnet(name, subnet))
                elif (there := found[name]["CidrBlock"]) != cidr:
                    field = f"networks.zones[{index}].{purpose}"
                    raise _cannot_change(field, found[name]["SubnetId"], there, cidr)

    def ensure_security_group(self, vpc: Vpc) -> None:
        """Ensure that the nodes' security group exists with its rules; add it to `vpc`."""
        marked = self._marked("describe_security_groups", "SecurityGroups")
        name = self._name(NODES)
        group = self._by_name("security group", "GroupId", marked).get(name)
        if group is None:
            group = self._create_security_group(vpc.id, name)
        id = str(group["GroupId"])
        vpc.security_groups = [SecurityGroup(id=id, purpose=NODES)]
        missing = _missing_rules(group)
        if missing:
            self.cloud.request(
                "authorize_security_group_ingress", GroupId=id, IpPermissions=missing
            )

    def delete(self, vpc: Vpc) -> None:
        """Delete all resources in `vpc`, and all with the tag.

        Each deleted resource is removed from `vpc`, so after an error it lists the remaining ones.
        """
        marked = self._marked("describe_security_groups", "SecurityGroups")
        for id in _ids([group.id for group in vpc.security_groups], marked, "GroupId"):
            self.cloud.remove("delete_security_group", GroupId=id)
            vpc.security_groups = [group for group in vpc.security_groups if group.id != id]
        marked = self._marked("describe_subnets", "Subnets")
        for id in _ids([subnet.id for subnet in vpc.subnets], marked, "SubnetId"):
            self.cloud.remove("delete_subnet", SubnetId=id)
            vpc.subnets = [subnet for subnet in vpc.subnets if subnet.id != id]
        for id in _ids([vpc.id], self._marked("describe_vpcs", "Vpcs"), "VpcId"):
            self.cloud.remove("delete_vpc", VpcId=id)
        vpc.id = ""

    def find_address(self) -> ControlPlaneStatus | None:
        """Return the Elastic IP address, or None. Raises ActuatorError if there are two."""
        marked = self._marked("describe_addresses", "Addresses")
        found = tags.only(self._mark, "address", "AllocationId", marked)
        return None if found is None else _address(found)

    def allocate_address(self) -> ControlPlaneStatus:
        """Allocate an address and return it."""
        specification = tags.specification("elastic-ip", self._mark, self.technical_id)
        return _address(
            self.cloud.request("allocate_address", Domain="vpc", TagSpecifications=specification)
        )

    def release_address(self, known_id: str) -> None:
        """Release the address with that id, and every address with the tag."""
        marked = self._marked("describe_addresses", "Addresses")
        for id in _ids([known_id], marked, "AllocationId"):
            self.cloud.remove("release_address", AllocationId=id)

    @property
    def _mark(self) -> tags.Mark:
        return tags.mark(self.technical_id)

    def _marked(self, operation: str, answer_key: str) -> list[Raw]:
        return self.cloud.describe(operation, answer_key, tags.filters(self._mark))

    def _by_name(self, what: str, id_key: str, found: list[Raw]) -> dict[str, Raw]:
        """Map resources by their Name tag. Raises ActuatorError if a name occurs twice."""
        by_name: dict[str, Raw] = {}
        for thing in found:
            name = tags.as_dict(thing).get(tags.NAME, "")
            twin = [by_name[name]] if name in by_name else []
            tags.only(self._mark, f"{what} {name}", id_key, [thing, *twin])
            by_name[name] = thing
        return by_name

    def _refuse_unmarked(self, vpc_id: str) -> None:
        """Stop if the extension's VPC lost its tag: it would never be found again."""
        if not vpc_id:
            return
        by_id: list[Raw] = [{"Name": "vpc-id", "Values": [vpc_id]}]
        if self.cloud.describe("describe_vpcs", "Vpcs", by_id):
            raise ActuatorError(
                f"VPC {vpc_id} has lost its tag {tags.text(self._mark)}; put it back",
                codes=[ErrorCode.ERR_INFRA_DEPENDENCIES],
            )

    def _name(self, *parts: str) -> str:
        return "-".join([self.technical_id, *parts])

    def _subnet(self, name: str, described: Raw) -> Subnet:
        zone = str(described["AvailabilityZone"])
        purpose = name.removeprefix(f"{self.technical_id}-").removesuffix(f"-{zone}")
        return Subnet(id=str(described["SubnetId"]), purpose=purpose, zone=zone)

    def _create_subnet(self, vpc_id: str, zone: str, cidr: str, name: str) -> Raw:
        answer = self.cloud.request(
            "create_subnet",
            VpcId=vpc_id,
            CidrBlock=cidr,
            AvailabilityZone=zone,
            TagSpecifications=tags.specification("subnet", self._mark, name),
        )
        subnet: Raw = answer["Subnet"]
        return subnet

    def _create_security_group(self, vpc_id: str, name: str) -> Raw:
        return self.cloud.request(
            "create_security_group",
            VpcId=vpc_id,
            GroupName=name,
            Description="Security group for nodes",
            TagSpecifications=tags.specification("security-group", self._mark, name),
        )


def _address(described: Raw) -> ControlPlaneStatus:
    """Return the status of an address, which stays the same if its load balancer is replaced."""
    return ControlPlaneStatus(
        allocation_id=str(described["AllocationId"]), public_ip=str(described["PublicIp"])
    )


def _ids(known: list[str], marked: list[Raw], id_key: str) -> list[str]:
    """Return the known ids, then further ids found by the tag."""
    ids = [*known, *(str(thing[id_key]) for thing in marked)]
    return [id for id in dict.fromkeys(ids) if id]


def _cannot_change(field: str, id: str, there: str, wanted: str) -> ConfigurationError:
    return ConfigurationError(
        f"spec.providerConfig.{field}: {wanted} differs from {there} of {id}; AWS cannot change "
        f"it, so set {there} again"
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
