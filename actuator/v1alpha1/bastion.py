"""Bastion: a machine to log in through, for a while (Gardener documentation, "Bastion")."""

from __future__ import annotations

from typing import Annotated, ClassVar

import attrs

from actuator.meta import (
    Base64,
    Column,
    DefaultSpec,
    DefaultStatus,
    ForceSource,
    Kind,
    Object,
    Raw,
    Schema,
)
from actuator.v1alpha1.shared import AGE, LoadBalancerIngress

__all__ = ["Bastion", "BastionIngressPolicy", "BastionSpec", "BastionStatus", "IPBlock"]


@attrs.frozen(kw_only=True)
class IPBlock:
    """networking.k8s.io/v1 IPBlock: a range, and what of it is left out."""

    cidr: Annotated[str, Schema(required=True)] = ""
    except_: list[str] = attrs.field(factory=list, metadata={"wire": "except"})
    extra: Raw = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class BastionIngressPolicy:
    """From where one may log in."""

    ip_block: Annotated[IPBlock, Schema(required=True)] = attrs.field(factory=IPBlock)
    extra: Raw = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class BastionSpec(DefaultSpec):
    """What gardenlet asks for."""

    user_data: Annotated[Base64, Schema(required=True)] = attrs.field(factory=Base64)
    ingress: Annotated[list[BastionIngressPolicy], Schema(required=True)] = attrs.field(
        factory=list
    )


@attrs.define(kw_only=True)
class BastionStatus(DefaultStatus):
    """What the extension reports."""

    ingress: LoadBalancerIngress | None = None


@attrs.define(kw_only=True)
class Bastion(Object):
    """A machine to log in through; force-deleted by its own annotation, literally "true"."""

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
