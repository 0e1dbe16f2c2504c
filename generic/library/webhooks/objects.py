"""The objects of Kubernetes that webhooks change: only the fields that the helpers know.

All other fields survive in `extra`. Unlike the classes of extensions.gardener.cloud, these are
mutable, because a handler changes them in place.
"""

from typing import Any, ClassVar

import attrs

from actuator.meta import KeepsUnknownFields, Kind, Object, Raw


def kubernetes_kind(
    name: str, group: str = "", version: str = "v1", *, namespaced: bool = True
) -> Kind:
    """Return a kind that has no actuator here."""
    return Kind(name=name, group=group, version=version, namespaced=namespaced, finalizer="")


@attrs.define(kw_only=True)
class EnvVar(KeepsUnknownFields):
    """corev1.EnvVar."""

    name: str = ""
    value: str | None = attrs.field(default=None, repr=False)
    value_from: Raw | None = None


@attrs.define(kw_only=True)
class VolumeMount(KeepsUnknownFields):
    """corev1.VolumeMount."""

    name: str = ""
    mount_path: str = ""
    read_only: bool | None = None


@attrs.define(kw_only=True)
class PodVolume(KeepsUnknownFields):
    """corev1.Volume; its source is in `extra`."""

    name: str = ""


@attrs.define(kw_only=True)
class Container(KeepsUnknownFields):
    """corev1.Container."""

    name: str = ""
    image: str | None = None
    command: list[str] = attrs.field(factory=list)
    args: list[str] = attrs.field(factory=list)
    env: list[EnvVar] = attrs.field(factory=list)
    volume_mounts: list[VolumeMount] = attrs.field(factory=list)

    @property
    def flags(self) -> list[str]:
        """The list that has the flags: `args`, or `command` if only that has some."""
        in_args = any(arg.startswith("-") for arg in self.args)
        in_command = any(item.startswith("-") for item in self.command)
        return self.command if in_command and not in_args else self.args


@attrs.define(kw_only=True)
class PodDNSConfig(KeepsUnknownFields):
    """corev1.PodDNSConfig."""

    nameservers: list[str] = attrs.field(factory=list)
    searches: list[str] = attrs.field(factory=list)
    options: list[Any] = attrs.field(factory=list)


@attrs.define(kw_only=True)
class PodSpec(KeepsUnknownFields):
    """corev1.PodSpec."""

    containers: list[Container] = attrs.field(factory=list)
    init_containers: list[Container] = attrs.field(factory=list)
    volumes: list[PodVolume] = attrs.field(factory=list)
    dns_policy: str | None = None
    dns_config: PodDNSConfig | None = None

    def container(self, name: str) -> Container | None:
        """Return the container of this name, or None."""
        return next((container for container in self.containers if container.name == name), None)


@attrs.define(kw_only=True)
class TemplateMeta(KeepsUnknownFields):
    """The metadata of a pod template."""

    labels: dict[str, str] = attrs.field(factory=dict)
    annotations: dict[str, str] = attrs.field(factory=dict)


@attrs.define(kw_only=True)
class PodTemplate(KeepsUnknownFields):
    """corev1.PodTemplateSpec."""

    metadata: TemplateMeta = attrs.field(factory=TemplateMeta)
    spec: PodSpec = attrs.field(factory=PodSpec)


@attrs.define(kw_only=True)
class WorkloadSpec(KeepsUnknownFields):
    """The spec of a Deployment or StatefulSet."""

    replicas: int | None = None
    template: PodTemplate = attrs.field(factory=PodTemplate)


@attrs.define(kw_only=True)
class Workload(Object):
    """Base class of objects with a pod template."""

    spec: WorkloadSpec = attrs.field(factory=WorkloadSpec)

    @property
    def pod(self) -> PodSpec:
        """The spec of its pods."""
        return self.spec.template.spec


@attrs.define(kw_only=True)
class Deployment(Workload):
    """apps/v1 Deployment."""

    KIND: ClassVar[Kind] = kubernetes_kind("Deployment", "apps")


@attrs.define(kw_only=True)
class StatefulSet(Workload):
    """apps/v1 StatefulSet."""

    KIND: ClassVar[Kind] = kubernetes_kind("StatefulSet", "apps")


@attrs.define(kw_only=True)
class Service(Object):
    """v1 Service."""

    KIND: ClassVar[Kind] = kubernetes_kind("Service")

    spec: Raw = attrs.field(factory=dict)


@attrs.define(kw_only=True)
class Secret(Object):
    """v1 Secret; values are base64 text."""

    KIND: ClassVar[Kind] = kubernetes_kind("Secret")

    data: dict[str, str] = attrs.field(factory=dict, repr=False)
    type: str = ""


@attrs.define(kw_only=True)
class ContainerPolicy(KeepsUnknownFields):
    """The policy of a VerticalPodAutoscaler for one container."""

    container_name: str = ""
    controlled_values: str | None = None

    @property
    def name(self) -> str:
        """The name of the container."""
        return self.container_name


@attrs.define(kw_only=True)
class ResourcePolicy(KeepsUnknownFields):
    """The policies of a VerticalPodAutoscaler."""

    container_policies: list[ContainerPolicy] = attrs.field(factory=list)


@attrs.define(kw_only=True)
class AutoscalerSpec(KeepsUnknownFields):
    """The spec of a VerticalPodAutoscaler."""

    resource_policy: ResourcePolicy | None = None


@attrs.define(kw_only=True)
class VerticalPodAutoscaler(Object):
    """autoscaling.k8s.io/v1 VerticalPodAutoscaler."""

    KIND: ClassVar[Kind] = kubernetes_kind("VerticalPodAutoscaler", "autoscaling.k8s.io")

    spec: AutoscalerSpec = attrs.field(factory=AutoscalerSpec)


@attrs.define(kw_only=True)
class Etcd(Object):
    """druid.gardener.cloud/v1alpha1 Etcd."""

    KIND: ClassVar[Kind] = kubernetes_kind("Etcd", "druid.gardener.cloud", "v1alpha1")

    spec: Raw = attrs.field(factory=dict)
