"""Worker: the machines of a shoot, pool by pool (Gardener documentation, "Worker")."""

from typing import Annotated, ClassVar

import attrs

from actuator.meta import (
    Base64,
    DefaultStatus,
    KeepsUnknownFields,
    Kind,
    Object,
    Raw,
    Schema,
    Trigger,
)
from actuator.v1alpha1.shared import AGE, REGION, STATUS, TYPE, RegionalSpec, Required

IntOrPercent = int | str


@attrs.frozen(kw_only=True)
class MachineImage(KeepsUnknownFields):
    """An operating system and its version."""

    name: Required[str] = ""
    version: Required[str] = ""


@attrs.frozen(kw_only=True)
class Taint(KeepsUnknownFields):
    """corev1.Taint."""

    key: Required[str] = ""
    value: str | None = None
    effect: Required[str] = ""
    time_added: Annotated[str | None, Schema(format="date-time")] = None


@attrs.frozen(kw_only=True)
class Volume(KeepsUnknownFields):
    """The boot disk of a machine."""

    name: str | None = None
    type: str | None = None
    size: Required[str] = ""
    encrypted: bool | None = None


@attrs.frozen(kw_only=True)
class DataVolume(Volume):
    """An additional disk of a machine."""

    name: Required[str] = ""


@attrs.frozen(kw_only=True)
class UserDataSecretRef(KeepsUnknownFields):
    """corev1.SecretKeySelector of the user data of new machines."""

    name: Annotated[str, Schema(default="")] = ""
    key: Required[str] = ""
    optional: bool | None = None


@attrs.frozen(kw_only=True)
class MachineControllerManagerSettings(KeepsUnknownFields):
    """Settings of the machine-controller-manager for a pool. Durations are like "10m"."""

    machine_drain_timeout: str | None = None
    machine_health_timeout: str | None = None
    machine_creation_timeout: str | None = None
    max_evict_retries: Annotated[int | None, Schema(format="int32")] = None
    node_conditions: list[str] = attrs.field(factory=list)
    in_place_update_timeout: str | None = None
    disable_health_timeout: bool | None = None
    auto_preserve_failed_machine_max: Annotated[int | None, Schema(format="int32")] = None
    machine_preserve_timeout: str | None = None


@attrs.frozen(kw_only=True)
class NodeTemplate(KeepsUnknownFields):
    """The resources of a future node of the pool, for scaling up from zero."""

    capacity: Required[dict[str, int | str]] = attrs.field(factory=dict)
    virtual_capacity: dict[str, int | str] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class ClusterAutoscalerOptions(KeepsUnknownFields):
    """Settings of the cluster-autoscaler for the pool."""

    scale_down_utilization_threshold: str | None = None
    scale_down_gpu_utilization_threshold: str | None = None
    scale_down_unneeded_time: str | None = None
    scale_down_unready_time: str | None = None
    max_node_provision_time: str | None = None


@attrs.frozen(kw_only=True)
class WorkerPool(KeepsUnknownFields):
    """A pool of identical machines."""

    name: Required[str] = ""
    machine_type: Required[str] = ""
    machine_image: MachineImage | None = None
    minimum: Annotated[int, Schema(format="int32", required=True)] = 0
    maximum: Annotated[int, Schema(format="int32", required=True)] = 0
    max_surge: Required[IntOrPercent] = 0
    max_unavailable: Required[IntOrPercent] = 0
    annotations: dict[str, str] = attrs.field(factory=dict)
    labels: dict[str, str] = attrs.field(factory=dict)
    taints: list[Taint] = attrs.field(factory=list)
    node_agent_secret_name: str | None = None
    user_data_secret_ref: Required[UserDataSecretRef] = attrs.field(factory=UserDataSecretRef)
    provider_config: Raw | None = None
    volume: Volume | None = None
    data_volumes: list[DataVolume] = attrs.field(factory=list)
    kubelet_data_volume_name: str | None = None
    zones: list[str] = attrs.field(factory=list)
    machine_controller_manager: MachineControllerManagerSettings | None = None
    kubernetes_version: str | None = None
    kubelet_config: Raw | None = None
    node_template: NodeTemplate | None = None
    architecture: str | None = None
    cluster_autoscaler: ClusterAutoscalerOptions | None = None
    priority: Annotated[int | None, Schema(format="int32")] = None
    update_strategy: str | None = None


@attrs.frozen(kw_only=True)
class WorkerSpec(RegionalSpec):
    """The specification that gardenlet writes."""

    infrastructure_provider_status: Raw | None = None
    ssh_public_key: Base64 | None = attrs.field(default=None, metadata={"wire": "sshPublicKey"})
    pools: Required[list[WorkerPool]] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class MachineDeploymentStatus(KeepsUnknownFields):
    """A MachineDeployment of a pool, as configured for the cluster-autoscaler."""

    name: Required[str] = ""
    minimum: Annotated[int, Schema(format="int32", required=True)] = 0
    maximum: Annotated[int, Schema(format="int32", required=True)] = 0
    priority: Annotated[int | None, Schema(format="int32")] = None
    auto_preserve_failed_machine_max: Annotated[int | None, Schema(format="int32")] = None


@attrs.frozen(kw_only=True)
class InPlaceUpdatesWorkerStatus(KeepsUnknownFields):
    """The current hash of each pool that is updated in place."""

    worker_pool_to_hash_map: dict[str, str] = attrs.field(factory=dict)


@attrs.define(kw_only=True)
class WorkerStatus(DefaultStatus):
    """The status that the extension reports; gardenlet writes `state`."""

    OWNS_STATE: ClassVar[bool] = False

    machine_deployments: list[MachineDeploymentStatus] = attrs.field(factory=list)
    machine_deployments_last_update_time: Annotated[str | None, Schema(format="date-time")] = None
    in_place_updates: InPlaceUpdatesWorkerStatus | None = None


@attrs.define(kw_only=True)
class Worker(Object):
    """The machines of a shoot."""

    KIND: ClassVar[Kind] = Kind(
        name="Worker",
        timeout=1200.0,
        triggers=(Trigger.CLUSTER,),
        columns=(TYPE, REGION, STATUS, AGE),
    )

    spec: Required[WorkerSpec] = attrs.field(factory=WorkerSpec)
    status: WorkerStatus = attrs.field(factory=WorkerStatus)
