"""ControlPlane: the provider's part of a shoot's control plane ("ControlPlane" in the docs)."""

from __future__ import annotations

from typing import Annotated, ClassVar

import attrs

from actuator.meta import (
    Column,
    DefaultSpec,
    DefaultStatus,
    Kind,
    Object,
    Raw,
    Schema,
    SecretReference,
)

__all__ = ["ControlPlane", "ControlPlaneSpec"]


@attrs.frozen(kw_only=True)
class ControlPlaneSpec(DefaultSpec):
    """What gardenlet asks for."""

    infrastructure_provider_status: Raw | None = None
    region: Annotated[str, Schema(required=True)] = ""
    secret_ref: Annotated[SecretReference, Schema(required=True)] = attrs.field(
        factory=SecretReference
    )


@attrs.define(kw_only=True)
class ControlPlane(Object):
    """The provider's part of a shoot's control plane."""

    KIND: ClassVar[Kind] = Kind(
        name="ControlPlane",
        plural="controlplanes",
        short_names=("cp",),
        finalizer="extensions.gardener.cloud/controlplane",
        columns=(
            Column("Type", ".spec.type"),
            Column("Status", ".status.lastOperation.state"),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
    )

    spec: Annotated[ControlPlaneSpec, Schema(required=True)] = attrs.field(factory=ControlPlaneSpec)
    status: DefaultStatus = attrs.field(factory=DefaultStatus)
