"""providerStatus: what the shoot's other extension objects, and users, read.

The shape of InfrastructureStatus follows Gardener's AWS extension; fields that a newer version of
this extension added are kept (`extra`). The records of an Infrastructure are in `state`. The other
kinds store the same object in status.state, which control plane migration transfers: it is written,
without ids, before the first create request. An object without it is deleted, or force-deleted,
without a lookup in the cloud: no resource was ever requested.
"""

import attrs

from actuator import KeepsUnknownFields, decode_at
from actuator.v1alpha1 import ControlPlane, Worker
from extensions.aws.config import API_VERSION

NODES = "nodes"
"""The purpose of what machines use."""


@attrs.frozen(kw_only=True)
class Subnet(KeepsUnknownFields):
    """A subnet; `purpose` is "nodes", "public" or "internal"."""

    id: str
    purpose: str
    zone: str


@attrs.frozen(kw_only=True)
class SecurityGroup(KeepsUnknownFields):
    """A security group."""

    id: str
    purpose: str


@attrs.define(kw_only=True)
class VpcStatus(KeepsUnknownFields):
    """The VPC and its resources; an id is "" while it is unknown."""

    id: str = ""
    subnets: list[Subnet] = attrs.field(factory=list)
    security_groups: list[SecurityGroup] = attrs.field(factory=list)


@attrs.define(kw_only=True)
class Ec2Status(KeepsUnknownFields):
    """The key pair of the machines; "" without one."""

    key_name: str = ""


@attrs.frozen(kw_only=True)
class InstanceProfile(KeepsUnknownFields):
    """An instance profile."""

    purpose: str
    name: str


@attrs.frozen(kw_only=True)
class Role(KeepsUnknownFields):
    """A role."""

    purpose: str
    arn: str


@attrs.define(kw_only=True)
class IamStatus(KeepsUnknownFields):
    """The permissions of machines."""

    instance_profiles: list[InstanceProfile] = attrs.field(factory=list)
    roles: list[Role] = attrs.field(factory=list)


@attrs.define(kw_only=True)
class Remembered(KeepsUnknownFields):
    """The fields of every providerStatus of this extension."""

    api_version: str = API_VERSION
    kind: str = ""


@attrs.define(kw_only=True)
class InfrastructureStatus(Remembered):
    """providerStatus of an Infrastructure, written after each successful reconcile."""

    kind: str = "InfrastructureStatus"
    ec2: Ec2Status = attrs.field(factory=Ec2Status)
    iam: IamStatus = attrs.field(factory=IamStatus)
    vpc: VpcStatus = attrs.field(factory=VpcStatus)


@attrs.define(kw_only=True)
class ControlPlaneStatus(Remembered):
    """providerStatus of a ControlPlane: its Elastic IP address."""

    kind: str = "ControlPlaneStatus"
    allocation_id: str = ""
    public_ip: str = attrs.field(default="", metadata={"wire": "publicIP"})


@attrs.define(kw_only=True)
class BackupBucketStatus(Remembered):
    """providerStatus of a BackupBucket: the bucket's name."""

    kind: str = "BackupBucketStatus"
    bucket: str = ""


@attrs.define(kw_only=True)
class BastionStatus(Remembered):
    """providerStatus of a Bastion: its instance and its security group.

    The region is the shoot's, which is not part of the Bastion.
    """

    kind: str = "BastionStatus"
    region: str = ""
    instance_id: str = ""
    security_group_id: str = ""


@attrs.define(kw_only=True)
class DNSRecordStatus(Remembered):
    """providerStatus of a DNSRecord: its hosted zone's id, since status.zone does not migrate."""

    kind: str = "DNSRecordStatus"
    zone: str = ""


def infrastructure_of(obj: ControlPlane | Worker) -> InfrastructureStatus:
    """Return what the shoot's Infrastructure reported, without ids before that.

    Raises ConfigurationError if it is not AWS's.
    """
    where = f"{obj.KIND.name} {obj.key}: spec.infrastructureProviderStatus"
    given = obj.spec.infrastructure_provider_status or {}
    return decode_at(InfrastructureStatus, given, f"{where} is no InfrastructureStatus of AWS")
