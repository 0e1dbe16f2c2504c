"""ContainerRuntime: a runtime beside containerd, on one worker pool (Gardener documentation,
"ContainerRuntime").
"""

from typing import Annotated, ClassVar

import attrs

from actuator.meta import DefaultSpec, DefaultStatus, KeepsUnknownFields, Kind, Object, Schema
from actuator.v1alpha1.shared import AGE, STATUS, TYPE, LabelSelector


@attrs.frozen(kw_only=True)
class ContainerRuntimeWorkerPool(KeepsUnknownFields):
    """The pool on whose nodes the runtime is installed."""

    name: Annotated[str, Schema(required=True)] = ""
    selector: Annotated[LabelSelector, Schema(required=True)] = attrs.field(factory=LabelSelector)


@attrs.frozen(kw_only=True)
class ContainerRuntimeSpec(DefaultSpec):
    """The specification that gardenlet writes."""

    binary_path: Annotated[str, Schema(required=True)] = ""
    worker_pool: Annotated[ContainerRuntimeWorkerPool, Schema(required=True)] = attrs.field(
        factory=ContainerRuntimeWorkerPool
    )


@attrs.define(kw_only=True)
class ContainerRuntime(Object):
    """A container runtime on one worker pool."""

    KIND: ClassVar[Kind] = Kind(
        name="ContainerRuntime",
        plural="containerruntimes",
        short_names=("cr",),
        finalizer="extensions.gardener.cloud/containerruntime",
        columns=(TYPE, STATUS, AGE),
    )

    spec: Annotated[ContainerRuntimeSpec, Schema(required=True)] = attrs.field(
        factory=ContainerRuntimeSpec
    )
    status: DefaultStatus = attrs.field(factory=DefaultStatus)
