"""Extension: any other resource of a shoot, a seed or a garden ("Extension" in the docs)."""

from typing import ClassVar

import attrs

from actuator.meta import ClusterNeed, DefaultSpec, DefaultStatus, Kind, Object, Trigger
from actuator.v1alpha1.shared import AGE, STATUS, TYPE, Required


@attrs.frozen(kw_only=True)
class ExtensionSpec(DefaultSpec):
    """The specification; the type selects the extension, providerConfig configures it."""


@attrs.define(kw_only=True)
class Extension(Object):
    """Any other extension; each has its own finalizer (`Actuator.finalizer`)."""

    KIND: ClassVar[Kind] = Kind(
        name="Extension",
        short_names=("ext",),
        cluster=ClusterNeed.IN_SHOOT_NAMESPACE,
        triggers=(Trigger.CLUSTER,),
        columns=(TYPE, STATUS, AGE),
    )

    spec: Required[ExtensionSpec] = attrs.field(factory=ExtensionSpec)
    status: DefaultStatus = attrs.field(factory=DefaultStatus)
