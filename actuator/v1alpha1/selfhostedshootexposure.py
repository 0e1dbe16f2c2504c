"""SelfHostedShootExposure: external access to the API server of a self-hosted shoot."""

from typing import Annotated, ClassVar

import attrs

from actuator.meta import (
    Column,
    DefaultSpec,
    DefaultStatus,
    KeepsUnknownFields,
    Kind,
    Object,
    Schema,
)
from actuator.v1alpha1.shared import (
    AGE,
    STATUS,
    TYPE,
    LoadBalancerIngress,
    ObjectReference,
    Required,
)


@attrs.frozen(kw_only=True)
class NodeAddress(KeepsUnknownFields):
    """corev1.NodeAddress."""

    type: Required[str] = ""
    address: Required[str] = ""


@attrs.frozen(kw_only=True)
class ControlPlaneEndpoint(KeepsUnknownFields):
    """A node of the control plane, and its addresses."""

    node_name: Required[str] = ""
    addresses: Required[list[NodeAddress]] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class SelfHostedShootExposureSpec(DefaultSpec):
    """The specification that gardenlet writes."""

    credentials_ref: ObjectReference | None = None
    port: Annotated[int, Schema(format="int32", required=True)] = 0
    endpoints: Required[list[ControlPlaneEndpoint]] = attrs.field(factory=list)


@attrs.define(kw_only=True)
class SelfHostedShootExposureStatus(DefaultStatus):
    """The status that the extension reports; on an error, it contains partial results."""

    ingress: list[LoadBalancerIngress] = attrs.field(factory=list)


@attrs.define(kw_only=True)
class SelfHostedShootExposure(Object):
    """External access to the API server of a self-hosted shoot."""

    KIND: ClassVar[Kind] = Kind(
        name="SelfHostedShootExposure",
        short_names=("exp",),
        skips_failed_shoot=False,
        migratable=False,
        columns=(
            TYPE,
            Column("IP", ".status.ingress[0].ip"),
            Column("Hostname", ".status.ingress[0].hostname"),
            STATUS,
            AGE,
        ),
    )

    spec: Required[SelfHostedShootExposureSpec] = attrs.field(factory=SelfHostedShootExposureSpec)
    status: SelfHostedShootExposureStatus = attrs.field(factory=SelfHostedShootExposureStatus)
