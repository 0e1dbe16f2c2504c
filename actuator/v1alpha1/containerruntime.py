"""ContainerRuntime: a runtime beside containerd, on one worker pool (Gardener documentation,
"ContainerRuntime").
"""

from typing import ClassVar

import attrs

from actuator.meta import DefaultSpec, DefaultStatus, KeepsUnknownFields, Kind, Object, Trigger
from actuator.v1alpha1.shared import AGE, STATUS, TYPE, LabelSelector, Required


@attrs.frozen(kw_only=True)
class ContainerRuntimeWorkerPool(KeepsUnknownFields):
    """The pool on whose nodes the runtime is installed."""

    name: Required[str] = ""
    selector: Required[LabelSelector] = attrs.field(factory=LabelSelector)


@attrs.frozen(kw_only=True)
class ContainerRuntimeSpec(DefaultSpec):
    """The specification that gardenlet writes."""

    binary_path: Required[str] = ""
    worker_pool: Required[ContainerRuntimeWorkerPool] = attrs.field(
        factory=ContainerRuntimeWorkerPool
    )


@attrs.define(kw_only=True)
class ContainerRuntime(Object):
    """A container runtime on one worker pool."""

    KIND: ClassVar[Kind] = Kind(
        name="ContainerRuntime",
        short_names=("cr",),
        triggers=(Trigger.CLUSTER,),
        columns=(TYPE, STATUS, AGE),
    )

    spec: Required[ContainerRuntimeSpec] = attrs.field(factory=ContainerRuntimeSpec)
    status: DefaultStatus = attrs.field(factory=DefaultStatus)
