"""Infrastructure: the networks of a shoot (Gardener documentation, "Infrastructure")."""

from typing import ClassVar

import attrs

from actuator.meta import Base64, DefaultStatus, KeepsUnknownFields, Kind, Object, Trigger
from actuator.v1alpha1.shared import AGE, REGION, STATUS, TYPE, RegionalSpec, Required


@attrs.frozen(kw_only=True)
class InfrastructureSpec(RegionalSpec):
    """The specification that gardenlet writes."""

    ssh_public_key: Base64 | None = attrs.field(default=None, metadata={"wire": "sshPublicKey"})


@attrs.frozen(kw_only=True)
class InfrastructureNetworking(KeepsUnknownFields):
    """The networks that actually exist."""

    pods: list[str] = attrs.field(factory=list)
    nodes: list[str] = attrs.field(factory=list)
    services: list[str] = attrs.field(factory=list)


@attrs.define(kw_only=True)
class InfrastructureStatus(DefaultStatus):
    """The status that the extension reports."""

    nodes_cidr: str | None = attrs.field(default=None, metadata={"wire": "nodesCIDR"})
    egress_cidrs: list[str] = attrs.field(factory=list, metadata={"wire": "egressCIDRs"})
    networking: InfrastructureNetworking | None = None


@attrs.define(kw_only=True)
class Infrastructure(Object):
    """The networks of a shoot."""

    KIND: ClassVar[Kind] = Kind(
        name="Infrastructure",
        short_names=("infra",),
        timeout=1200.0,
        triggers=(Trigger.CLUSTER,),
        columns=(TYPE, REGION, STATUS, AGE),
    )

    spec: Required[InfrastructureSpec] = attrs.field(factory=InfrastructureSpec)
    status: InfrastructureStatus = attrs.field(factory=InfrastructureStatus)
