"""Bastion: a temporary machine for logins to a shoot (Gardener documentation, "Bastion")."""

from typing import ClassVar

import attrs

from actuator.meta import (
    Base64,
    Column,
    DefaultSpec,
    DefaultStatus,
    ForceSource,
    KeepsUnknownFields,
    Kind,
    Object,
)
from actuator.v1alpha1.shared import AGE, LoadBalancerIngress, Required


@attrs.frozen(kw_only=True)
class IPBlock(KeepsUnknownFields):
    """networking.k8s.io/v1 IPBlock: a range, and the ranges that are excluded from it."""

    cidr: Required[str] = ""
    except_: list[str] = attrs.field(factory=list, metadata={"wire": "except"})


@attrs.frozen(kw_only=True)
class BastionIngressPolicy(KeepsUnknownFields):
    """A range from which logins are allowed."""

    ip_block: Required[IPBlock] = attrs.field(factory=IPBlock)


@attrs.frozen(kw_only=True)
class BastionSpec(DefaultSpec):
    """The specification that gardenlet writes."""

    user_data: Required[Base64] = attrs.field(factory=Base64)
    ingress: Required[list[BastionIngressPolicy]] = attrs.field(factory=list)


@attrs.define(kw_only=True)
class BastionStatus(DefaultStatus):
    """The status that the extension reports."""

    ingress: LoadBalancerIngress | None = None


@attrs.define(kw_only=True)
class Bastion(Object):
    """A machine for logins; its own annotation, literally "true", requests a force deletion."""

    KIND: ClassVar[Kind] = Kind(
        name="Bastion",
        timeout=1200.0,
        skips_failed_shoot=False,
        force_from=ForceSource.OBJECT_LITERAL,
        migratable=False,
        outcomes_are_watched=True,
        columns=(
            Column("IP", ".status.ingress.ip"),
            Column("Hostname", ".status.ingress.hostname"),
            AGE,
        ),
    )

    spec: Required[BastionSpec] = attrs.field(factory=BastionSpec)
    status: BastionStatus = attrs.field(factory=BastionStatus)
