"""Extension: anything else that a shoot, a seed or a garden wants ("Extension" in the docs)."""

from __future__ import annotations

from typing import Annotated, ClassVar

import attrs

from actuator.meta import ClusterNeed, DefaultSpec, DefaultStatus, Kind, Object, Schema
from actuator.v1alpha1.shared import AGE, STATUS, TYPE

__all__ = ["Extension", "ExtensionSpec"]


@attrs.frozen(kw_only=True)
class ExtensionSpec(DefaultSpec):
    """What gardenlet asks for: the type says what it is, providerConfig the rest."""


@attrs.define(kw_only=True)
class Extension(Object):
    """Anything else; each extension has a finalizer of its own (`Actuator.finalizer`)."""

    KIND: ClassVar[Kind] = Kind(
        name="Extension",
        plural="extensions",
        short_names=("ext",),
        finalizer="extensions.gardener.cloud/extension",
        cluster=ClusterNeed.IN_SHOOT_NAMESPACE,
        columns=(TYPE, STATUS, AGE),
    )

    spec: Annotated[ExtensionSpec, Schema(required=True)] = attrs.field(factory=ExtensionSpec)
    status: DefaultStatus = attrs.field(factory=DefaultStatus)
