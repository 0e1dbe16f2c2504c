"""The documented fields of a Shoot (Gardener documentation, API reference of core, v1beta1).

Required are only the fields that select an extension, and the region; gardener-apiserver requires,
defaults and checks more.
"""

from typing import Any, ClassVar

import attrs

from actuator.meta import Kind, Object, Raw
from generic.library.webhooks import Shoot


@attrs.frozen(kw_only=True)
class ProfileReference:
    """A CloudProfile, or a NamespacedCloudProfile of the same namespace."""

    kind: str | None = None
    name: str


@attrs.frozen(kw_only=True)
class PoolImage:
    """The machine image of a worker pool."""

    name: str
    """The name in the CloudProfile, and the type of the OperatingSystemConfig."""
    version: str | None = None
    provider_config: Any = None


@attrs.frozen(kw_only=True)
class PoolMachine:
    """The machines of a worker pool."""

    type: str | None = None
    """A machine type of the CloudProfile."""
    image: PoolImage | None = None
    architecture: str | None = None


@attrs.frozen(kw_only=True)
class PoolRuntime:
    """A container runtime besides the one of the CRI library."""

    type: str
    provider_config: Any = None


@attrs.frozen(kw_only=True)
class Cri:
    """The CRI library of a worker pool."""

    name: str | None = None
    container_runtimes: list[PoolRuntime] | None = None


@attrs.frozen(kw_only=True)
class PoolVolume:
    """A volume of each machine."""

    name: str | None = None
    type: str | None = None
    size: str | None = None
    encrypted: bool | None = None


@attrs.frozen(kw_only=True)
class ShootPool:
    """A group of machines."""

    name: str | None = None
    machine: PoolMachine | None = None
    minimum: int | None = None
    maximum: int | None = None
    max_surge: int | str | None = None
    max_unavailable: int | str | None = None
    zones: list[str] | None = None
    volume: PoolVolume | None = None
    data_volumes: list[PoolVolume] | None = None
    kubelet_data_volume_name: str | None = None
    cri: Cri | None = None
    provider_config: Any = None
    """The configuration that the Worker gets for this pool."""
    labels: dict[str, str] | None = None
    """Labels of the nodes."""
    annotations: dict[str, str] | None = None
    """Annotations of the nodes."""
    taints: list[Raw] | None = None
    ca_bundle: str | None = attrs.field(default=None, metadata={"wire": "caBundle"})
    sysctls: dict[str, str] | None = None
    system_components: Raw | None = None
    kubernetes: Raw | None = None
    machine_controller_manager: Raw | None = None
    cluster_autoscaler: Raw | None = None
    update_strategy: str | None = None
    priority: int | None = None
    control_plane: Raw | None = None


@attrs.frozen(kw_only=True)
class Provider:
    """All that depends on the infrastructure."""

    type: str
    """The type of Infrastructure, ControlPlane and Worker."""
    infrastructure_config: Any = None
    control_plane_config: Any = None
    workers: list[ShootPool] | None = None
    workers_settings: Raw | None = None


@attrs.frozen(kw_only=True)
class Networking:
    """The network of nodes, pods and Services."""

    type: str | None = None
    """The type of the Network."""
    provider_config: Any = None
    pods: str | None = None
    nodes: str | None = None
    services: str | None = None
    ip_families: list[str] | None = None


@attrs.frozen(kw_only=True)
class ShootExtension:
    """An Extension that is enabled or disabled."""

    type: str
    provider_config: Any = None
    disabled: bool | None = None


@attrs.frozen(kw_only=True)
class Kubernetes:
    """The version and settings of the control plane; the components are fields as well."""

    version: str | None = None


@attrs.frozen(kw_only=True)
class Hibernation:
    """Whether the Shoot hibernates, and when."""

    enabled: bool | None = None
    schedules: list[Raw] | None = None


@attrs.frozen(kw_only=True)
class DnsProvider:
    """A DNS provider of the domain."""

    type: str | None = None
    """The type of the DNSRecords; "unmanaged": none."""
    secret_name: str | None = None
    primary: bool | None = None


@attrs.frozen(kw_only=True)
class Dns:
    """The domain of the API server."""

    domain: str | None = None
    providers: list[DnsProvider] | None = None


@attrs.frozen(kw_only=True)
class NamedResource:
    """A Secret or ConfigMap that configurations name."""

    name: str | None = None
    resource_ref: Raw | None = None


@attrs.frozen(kw_only=True)
class ShootSpec:
    """The wanted state."""

    provider: Provider
    region: str
    cloud_profile: ProfileReference | None = None
    cloud_profile_name: str | None = None
    """Deprecated: use cloudProfile."""
    kubernetes: Kubernetes | None = None
    networking: Networking | None = None
    extensions: list[ShootExtension] | None = None
    hibernation: Hibernation | None = None
    dns: Dns | None = None
    resources: list[NamedResource] | None = None
    secret_binding_name: str | None = None
    credentials_binding_name: str | None = None
    seed_name: str | None = None
    seed_selector: Raw | None = None
    purpose: str | None = None
    addons: Raw | None = None
    maintenance: Raw | None = None
    monitoring: Raw | None = None
    tolerations: list[Raw] | None = None
    exposure_class_name: str | None = None
    system_components: Raw | None = None
    control_plane: Raw | None = None
    scheduler_name: str | None = None
    access_restrictions: list[Raw] | None = None


@attrs.define(kw_only=True)
class DocumentedShoot(Object):
    """A Kubernetes cluster that Gardener manages."""

    KIND: ClassVar[Kind] = Shoot.KIND

    spec: ShootSpec
    status: Raw | None = None
    """Written by gardenlet."""
