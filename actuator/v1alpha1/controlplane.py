"""ControlPlane: the provider's part of a shoot's control plane ("ControlPlane" in the docs)."""

from typing import ClassVar

import attrs

from actuator.meta import DefaultStatus, Kind, Object, Raw, Trigger
from actuator.v1alpha1.shared import AGE, STATUS, TYPE, RegionalSpec, Required


@attrs.frozen(kw_only=True)
class ControlPlaneSpec(RegionalSpec):
    """The specification that gardenlet writes."""

    infrastructure_provider_status: Raw | None = None


@attrs.define(kw_only=True)
class ControlPlane(Object):
    """The provider's part of a shoot's control plane."""

    KIND: ClassVar[Kind] = Kind(
        name="ControlPlane",
        short_names=("cp",),
        triggers=(Trigger.CLUSTER,),
        columns=(TYPE, STATUS, AGE),
    )

    spec: Required[ControlPlaneSpec] = attrs.field(factory=ControlPlaneSpec)
    status: DefaultStatus = attrs.field(factory=DefaultStatus)
