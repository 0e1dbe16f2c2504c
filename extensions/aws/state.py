"""status.state of an Infrastructure: the flow state of Gardener's AWS extension.

Its form is that of `InfrastructureState` (provider-extension-aws, `pkg/apis/aws/v1alpha1`): ids by
name. Entries that this sample does not know, such as markers and endpoints, are kept, so that
either extension can take over from the other. The state of a former version of that extension,
which used Terraform, is only read.
"""

import json
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Self

import attrs

from actuator import DecodeError, Raw
from extensions.aws import parts
from extensions.aws.config import API_VERSION
from generic.library import FlowState, ResourceRecord

_EXISTING = "Existing/"
"""Prefix of the names of resources of another owner; the other extension ignores such entries."""

_OF_TERRAFORM = {
    "aws_vpc_dhcp_options.vpc_dhcp_options": parts.OPTIONS,
    "aws_vpc.vpc": parts.NETWORK,
    "aws_internet_gateway.igw": parts.GATEWAY,
    "aws_route_table.routetable_main": parts.PUBLIC_ROUTES,
    "aws_security_group.nodes": parts.NODES,
    "aws_iam_role.nodes": parts.NODE_ROLE,
    "aws_iam_instance_profile.nodes": parts.NODE_PROFILE,
    "aws_key_pair.nodes": parts.KEY,
}
_OF_TERRAFORM_ZONE = {
    "aws_subnet.nodes_z": parts.WORKERS,
    "aws_subnet.public_utility_z": parts.PUBLIC,
    "aws_subnet.private_utility_z": parts.INTERNAL,
    "aws_route_table.routetable_private_utility_z": parts.ROUTES,
    "aws_eip.eip_natgw_z": parts.ADDRESS,
    "aws_nat_gateway.natgw_z": parts.NAT,
}


@attrs.define(kw_only=True)
class InfrastructureState(FlowState):
    """The ids of all resources of the network."""

    api_version: str = API_VERSION
    kind: str = "InfrastructureState"

    @classmethod
    def from_stored(cls, stored: Raw) -> Self:
        """Read a flow state, or the state of Terraform. Raises DecodeError."""
        data = stored.get("data")
        if isinstance(data, str):
            ids = dict(_of_terraform(data, str(stored.get("encoding", ""))))
        elif isinstance(data, dict) and all(isinstance(id, str) for id in data.values()):
            ids = data
        else:
            raise DecodeError("data: expected ids by name, or the state of Terraform")
        return cls(resources=[record for item in ids.items() for record in _records(*item)])

    def to_stored(self, before: Raw) -> Raw:
        """Return the flow state; other entries of the stored one are kept."""
        data = before.get("data")
        known = data if isinstance(data, dict) else {}
        others = {name: value for name, value in known.items() if not [*_records(name, "")]}
        ids = {
            f"{_EXISTING}{record.name}" if record.existing else record.name: record.id
            for record in self.resources
        }
        head = {"apiVersion": self.api_version, "kind": self.kind}
        return {**head, "data": {**others, **ids}}


def _records(entry: str, id: str) -> Iterator[ResourceRecord]:
    """Yield the record of an entry, if it is one of a resource."""
    name = entry.removeprefix(_EXISTING)
    if part := parts.find(name):
        yield ResourceRecord(
            name=name, type=part.type.name, id=id, needs=[*part.needs], existing=name != entry
        )


def _of_terraform(data: str, encoding: str) -> Iterator[tuple[str, str]]:
    """Yield the ids of the resources in a state of Terraform, version 4. Raises DecodeError."""
    try:
        text = b64decode(data, validate=True) if encoding == "base64" else data
        resources = json.loads(text).get("resources") or ()
        managed = [resource for resource in resources if resource.get("mode") == "managed"]
        found = [
            (f"{resource['type']}.{resource['name']}", instance["attributes"])
            for resource in managed
            for instance in resource["instances"]
        ]
        zones = {  # those of the subnets, by their numbers
            key.rpartition("_z")[2]: str(attributes["availability_zone"])
            for key, attributes in found
            if "availability_zone" in attributes
        }
        for key, attributes in found:
            if name := _name_of(key, zones):
                yield name, str(attributes["id"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DecodeError(f"data: not a state of Terraform: {type(error).__name__}") from error


def _name_of(key: str, zones: Mapping[str, str]) -> str:
    """Return the name of the part for a resource of Terraform, or ""."""
    head, _, number = key.rpartition("_z")
    of_zone = _OF_TERRAFORM_ZONE.get(f"{head}_z")
    if of_zone and number in zones:
        return parts.in_zone(zones[number], of_zone)
    return _OF_TERRAFORM.get(key, "")
