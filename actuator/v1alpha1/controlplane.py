"""ControlPlane: the provider's part of a shoot's control plane ("ControlPlane" in the docs)."""

from typing import Annotated, ClassVar

import attrs

from actuator.meta import DefaultStatus, Kind, Object, Raw, Schema
from actuator.v1alpha1.shared import AGE, STATUS, TYPE, RegionalSpec


@attrs.frozen(kw_only=True)
class ControlPlaneSpec(RegionalSpec):
    """The specification that gardenlet writes."""

    infrastructure_provider_status: Raw | None = None


@attrs.define(kw_only=True)
class ControlPlane(Object):
    """The provider's part of a shoot's control plane."""

    KIND: ClassVar[Kind] = Kind(
        name="ControlPlane",
        plural="controlplanes",
        short_names=("cp",),
        finalizer="extensions.gardener.cloud/controlplane",
        columns=(TYPE, STATUS, AGE),
    )

    spec: Annotated[ControlPlaneSpec, Schema(required=True)] = attrs.field(factory=ControlPlaneSpec)
    status: DefaultStatus = attrs.field(factory=DefaultStatus)
