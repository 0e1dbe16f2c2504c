"""Bastion: a temporary machine for logins to a shoot (Gardener documentation, "Bastion")."""

from typing import Annotated, ClassVar

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
    Schema,
)
from actuator.v1alpha1.shared import AGE, LoadBalancerIngress


@attrs.frozen(kw_only=True)
class IPBlock(KeepsUnknownFields):
    """networking.k8s.io/v1 IPBlock: a range, and the ranges that are excluded from it."""

    cidr: Annotated[str, Schema(required=True)] = ""
    except_: list[str] = attrs.field(factory=list, metadata={"wire": "except"})


@attrs.frozen(kw_only=True)
class BastionIngressPolicy(KeepsUnknownFields):
    """A range from which logins are allowed."""

    ip_block: Annotated[IPBlock, Schema(required=True)] = attrs.field(factory=IPBlock)


@attrs.frozen(kw_only=True)
class BastionSpec(DefaultSpec):
    """The specification that gardenlet writes."""

    user_data: Annotated[Base64, Schema(required=True)] = attrs.field(factory=Base64)
    ingress: Annotated[list[BastionIngressPolicy], Schema(required=True)] = attrs.field(
        factory=list
    )


@attrs.define(kw_only=True)
class BastionStatus(DefaultStatus):
    """The status that the extension reports."""

    ingress: LoadBalancerIngress | None = None


@attrs.define(kw_only=True)
class Bastion(Object):
    """A machine for logins; its own annotation, literally "true", requests a force deletion."""

    KIND: ClassVar[Kind] = Kind(
        name="Bastion",
        plural="bastions",
        finalizer="extensions.gardener.cloud/bastion",
        timeout=1200.0,
        skips_failed_shoot=False,
        force_from=ForceSource.OBJECT_LITERAL,
        migratable=False,
        columns=(
            Column("IP", ".status.ingress.ip"),
            Column("Hostname", ".status.ingress.hostname"),
            AGE,
        ),
    )

    spec: Annotated[BastionSpec, Schema(required=True)] = attrs.field(factory=BastionSpec)
    status: BastionStatus = attrs.field(factory=BastionStatus)
