"""A bastion in the cloud: an instance in the shoot's network and its security group.

The group allows SSH from the given ranges. Only the bastion uses it, so other rules are removed
from it. The instance is also in the nodes' group, so that it can reach the nodes. Both carry the
bastion's tag.

Kubernetes does not belong here; see `bastion`.
"""

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_network

import attrs

from actuator import ActuatorError, ErrorCode, Raw
from extensions.aws import tags
from extensions.aws.cloud import Cloud
from extensions.aws.config import BastionConfig
from extensions.aws.ec2 import INSTANCE, SECURITY_GROUP, SUBNET, Marked
from extensions.aws.parts import NODES, full_name
from generic.library import Range

_SSH = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22}
_KEYS = {4: ("IpRanges", "CidrIp"), 6: ("Ipv6Ranges", "CidrIpv6")}


@attrs.frozen
class Host:
    """The bastion `name` of the shoot `technical_id`."""

    cloud: Cloud
    technical_id: str
    name: str

    def find_site(self) -> tuple[Raw, str]:
        """Return a public subnet of the shoot, as AWS describes it, and the nodes' group's id.

        Raises ActuatorError while there is none.
        """
        of_shoot = Marked(self.cloud, tags.mark(self.technical_id))
        public = _named(of_shoot.find(SUBNET), f"{self.technical_id}-public-")
        nodes = _named(of_shoot.find(SECURITY_GROUP), full_name(self.technical_id, NODES))
        if not public or not nodes:
            raise ActuatorError(
                f"The network of {self.technical_id} has no public subnet, or no security group "
                "for nodes; its Infrastructure has to be ready first",
                codes=[ErrorCode.ERR_RETRYABLE_INFRA_DEPENDENCIES],
            )
        return public[0], str(nodes[0]["GroupId"])

    def ensure_group(self, vpc_id: str, ranges: Iterable[Range]) -> str:
        """Ensure that the group allows SSH from `ranges` only; return its id."""
        text = {"GroupName": self._full_name, "Description": "SSH to a bastion"}
        group = self._marked.only(SECURITY_GROUP) or self._marked.create(
            "create_security_group", SECURITY_GROUP, self._full_name, VpcId=vpc_id, **text
        )
        self._set_ranges(group, set(ranges))
        return str(group["GroupId"])

    def ensure_instance(
        self, machine: BastionConfig, subnet: Raw, group_ids: Sequence[str], user_data: bytes
    ) -> Raw:
        """Return the instance as AWS describes it; a new one has no address yet."""
        instance = self._marked.only(INSTANCE)
        if instance is not None:
            return instance
        interface = {
            "DeviceIndex": 0,
            "SubnetId": subnet["SubnetId"],
            "Groups": list(group_ids),
            "AssociatePublicIpAddress": True,
            "DeleteOnTermination": True,
        }
        answer = self._marked.create(
            "run_instances",
            INSTANCE,
            self._full_name,
            ImageId=machine.ami,
            InstanceType=machine.machine_type,
            MinCount=1,
            MaxCount=1,
            UserData=user_data,
            NetworkInterfaces=[interface],
            MetadataOptions={"HttpTokens": "required"},
        )
        created: Raw = answer["Instances"][0]
        return created

    def terminate(self) -> list[str]:
        """Terminate the instances; return the ids of those that still exist."""
        for instance in self._marked.find(INSTANCE):
            if instance["State"]["Name"] != "shutting-down":
                self.cloud.remove("terminate_instances", InstanceIds=[instance["InstanceId"]])
        return INSTANCE.ids(self._marked.find(INSTANCE))

    def delete_group(self) -> None:
        """Delete the security group."""
        for id in SECURITY_GROUP.ids(self._marked.find(SECURITY_GROUP)):
            self.cloud.remove("delete_security_group", GroupId=id)

    @property
    def _marked(self) -> Marked:
        return Marked(self.cloud, tags.bastion_mark(self.technical_id, self.name))

    @property
    def _full_name(self) -> str:
        return f"{self.technical_id}-bastion-{self.name}"

    def _set_ranges(self, group: Raw, wanted: set[Range]) -> None:
        there = set(_ranges(group))
        for operation, ranges in (
            ("authorize_security_group_ingress", wanted - there),
            ("revoke_security_group_ingress", there - wanted),
        ):
            if ranges:
                permissions = [_permission(range_) for range_ in sorted(ranges, key=str)]
                self.cloud.request(operation, GroupId=group["GroupId"], IpPermissions=permissions)


def _named(found: list[Raw], prefix: str) -> list[Raw]:
    """Return the resources whose name has the prefix, sorted by name."""
    by_name = {tags.as_dict(thing).get(tags.NAME, ""): thing for thing in found}
    return [by_name[name] for name in sorted(by_name) if name.startswith(prefix)]


def _ranges(group: Raw) -> Iterator[Range]:
    for permission in group.get("IpPermissions") or ():
        for field, key in _KEYS.values():
            yield from (ip_network(item[key]) for item in permission.get(field) or ())


def _permission(one: Range) -> Raw:
    field, key = _KEYS[one.version]
    return {**_SSH, field: [{key: str(one)}]}
