"""providerStatus: the extension's record of cloud resources, also stored in status.state.

The shape of InfrastructureStatus follows Gardener's AWS extension; fields that a newer version of
this extension added are kept (`extra`). Both fields hold the same object: the shoot's other
extension objects read providerStatus, control plane migration transfers state to the next seed.

A status without ids means that resources may exist: it is written before the first create request.
For an object without a status no resource was ever requested, so its deletion, or force deletion,
needs no lookup in the cloud.
"""

import attrs

from actuator.codec import decode_at
from actuator.meta import KeepsUnknownFields
from actuator.v1alpha1 import ControlPlane, Worker
from extensions.aws.config import API_VERSION
from generic.library.flow import FlowStatus


@attrs.frozen(kw_only=True)
class Subnet(KeepsUnknownFields):
    """A subnet; `purpose` is the name of its field in the zone: workers, public, internal."""

    id: str
    purpose: str
    zone: str


@attrs.frozen(kw_only=True)
class SecurityGroup(KeepsUnknownFields):
    """A security group."""

    id: str
    purpose: str


@attrs.define(kw_only=True)
class Vpc(KeepsUnknownFields):
    """The VPC and its resources; an id is "" while it is unknown."""

    id: str = ""
    subnets: list[Subnet] = attrs.field(factory=list)
    security_groups: list[SecurityGroup] = attrs.field(factory=list)


@attrs.define(kw_only=True)
class Remembered(KeepsUnknownFields):
    """The fields of every providerStatus of this extension."""

    api_version: str = API_VERSION
    kind: str = ""


@attrs.define(kw_only=True)
class InfrastructureStatus(FlowStatus):
    """providerStatus of an Infrastructure; `vpc` is complete after each successful reconcile."""

    api_version: str = API_VERSION
    kind: str = "InfrastructureStatus"
    vpc: Vpc = attrs.field(factory=Vpc)


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


def network_of(obj: ControlPlane | Worker) -> Vpc:
    """Return the network that the shoot's Infrastructure reported, without an id before that.

    Raises ConfigurationError if it is not AWS's.
    """
    where = f"{obj.KIND.name} {obj.key}: spec.infrastructureProviderStatus"
    given = obj.spec.infrastructure_provider_status or {}
    return decode_at(InfrastructureStatus, given, f"{where} is no InfrastructureStatus of AWS").vpc
