"""providerStatus: what this extension remembers of the cloud, also in status.state.

The shape of InfrastructureStatus follows Gardener's AWS extension; what a newer version of this
one wrote beside it stays (`extra`). Both fields hold the same
object: providerStatus is for the other extension objects of the shoot, state is what control
plane migration carries to the next seed.

A status without ids says that something may exist: it is written before the first request that
creates. An object without any status never asked the cloud for anything, so its deletion, and
its forced deletion, have nothing to look for there.
"""

from __future__ import annotations

from typing import TypeVar

import attrs

from actuator import ActuatorError, DefaultStatus
from actuator.codec import decode, encode
from actuator.errors import DecodeError
from actuator.meta import Raw
from extensions.aws.config import API_VERSION


@attrs.frozen(kw_only=True)
class Subnet:
    """A subnet; `purpose` is the name of its field in the zone: workers, public, internal."""

    id: str
    purpose: str
    zone: str
    extra: Raw = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class SecurityGroup:
    """A security group."""

    id: str
    purpose: str
    extra: Raw = attrs.field(factory=dict)


@attrs.define(kw_only=True)
class Vpc:
    """The VPC and what is in it; an id is "" as long as it is not known."""

    id: str = ""
    subnets: list[Subnet] = attrs.field(factory=list)
    security_groups: list[SecurityGroup] = attrs.field(factory=list)
    extra: Raw = attrs.field(factory=dict)


@attrs.define(kw_only=True)
class Remembered:
    """What every providerStatus of this extension has."""

    api_version: str = API_VERSION
    kind: str = ""
    extra: Raw = attrs.field(factory=dict)


@attrs.define(kw_only=True)
class InfrastructureStatus(Remembered):
    """providerStatus of an Infrastructure."""

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

    The region is the shoot's, which a Bastion does not say itself.
    """

    kind: str = "BastionStatus"
    region: str = ""
    instance_id: str = ""
    security_group_id: str = ""


@attrs.define(kw_only=True)
class DNSRecordStatus(Remembered):
    """providerStatus of a DNSRecord: the id of the hosted zone; status.zone does not migrate."""

    kind: str = "DNSRecordStatus"
    zone: str = ""


S = TypeVar("S", bound=Remembered)


def read_status(cls: type[S], status: DefaultStatus) -> S | None:
    """What is remembered; None where the cloud was never asked for anything.

    Raises ActuatorError where what stands there is not ours.
    """
    remembered: Raw | None = status.provider_status or status.state
    if remembered is None:
        return None
    try:
        return decode(cls, remembered)
    except DecodeError as error:
        raise ActuatorError(
            f"status.providerStatus, or status.state, is no {cls.__name__}: {error}"
        ) from error


def write_status(status: DefaultStatus, remembered: Remembered) -> None:
    """Puts what is to be remembered into the object's status."""
    status.provider_status = encode(remembered)
    status.state = encode(remembered)
