"""ControlPlaneMutator: changes the components of a shoot's control plane, and its nodes.

gardenlet creates kube-apiserver and the other components without anything of the provider, which
adds its part when the API server of the seed admits them (Gardener documentation, "ControlPlane
Webhooks"). An author overrides the methods for the components to change; the API server calls no
webhook for the others.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from types import MappingProxyType
from typing import Any, ClassVar

import attrs
import yaml

from actuator.cluster import Cluster
from actuator.meta import Object, Raw
from actuator.v1alpha1 import CRIConfig, OperatingSystemConfig, Unit
from generic.kube.goyaml import GoLoader, go_yaml
from generic.library.webhooks.edits import SystemdUnit, ensure, ensure_file, find_file, text_of
from generic.library.webhooks.objects import (
    Container,
    ContainerPolicy,
    Deployment,
    Etcd,
    Service,
    StatefulSet,
    VerticalPodAutoscaler,
    VolumeMount,
)
from generic.library.webhooks.webhook import (
    READ_CLUSTER,
    AdmissionRequest,
    FailurePolicy,
    Webhook,
    mutates,
)

SHOOT_PROVIDER = "shoot.gardener.cloud/provider"
SEED_PROVIDER = "seed.gardener.cloud/provider"
BACKUP_PROVIDER = "backup.gardener.cloud/provider"
KUBELET_CONFIG = "/var/lib/kubelet/config/kubelet"
KUBELET_UNIT = "kubelet.service"
CLOUD_PROVIDER_CONFIG = "/var/lib/kubelet/cloudprovider.conf"
KERNEL_SETTINGS = "/etc/sysctl.d/99-k8s-general.conf"
OF_NODES: Mapping[str, str] = MappingProxyType({"purpose": 'object.spec.purpose == "reconcile"'})
"""Conditions for the OperatingSystemConfigs that nodes apply."""
OF_USER_DATA: Mapping[str, str] = MappingProxyType(
    {"purpose": 'object.spec.purpose == "provision"'}
)
"""Conditions for those that become user data, whose size the cloud limits."""
_POOL = "worker.gardener.cloud/pool"
_METRICS_PORT = 10259
_KUBE_SYSTEM = "kube-system"
_KUBECONFIG = "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig"

_Methods = dict[str, Callable[[Any], None]]
"""The methods of a ControlPlaneMutator by the names of the objects."""


class ControlPlaneMutator:
    """Base class; every method does nothing unless it is overridden.

    A method changes `request.new` and returns nothing. It raises `Denied`, or any other exception,
    which is a failure of the webhook.
    """

    namespace_label: ClassVar[str] = SHOOT_PROVIDER
    """The label of namespaces whose value is the provider; SEED_PROVIDER or BACKUP_PROVIDER for
    what depends on the provider of the seed or of its backups."""
    failure_policy: ClassVar[FailurePolicy] = "Fail"
    timeout_seconds: ClassVar[int] = 10

    def __init__(self, provider: str) -> None:
        """`provider` is the type of the shoot's provider, for example "aws"."""
        self.provider = provider

    def kube_apiserver(self, request: AdmissionRequest[Deployment], /) -> None:
        """Change the Deployment kube-apiserver."""

    def kube_apiserver_service(self, request: AdmissionRequest[Service], /) -> None:
        """Change the Service kube-apiserver."""

    def kube_controller_manager(self, request: AdmissionRequest[Deployment], /) -> None:
        """Change the Deployment kube-controller-manager."""

    def kube_scheduler(self, request: AdmissionRequest[Deployment], /) -> None:
        """Change the Deployment kube-scheduler."""

    def cluster_autoscaler(self, request: AdmissionRequest[Deployment], /) -> None:
        """Change the Deployment cluster-autoscaler."""

    def machine_controller_manager(self, request: AdmissionRequest[Deployment], /) -> None:
        """Change the Deployment machine-controller-manager, usually with `machine_sidecar`."""

    def machine_controller_manager_vpa(
        self, request: AdmissionRequest[VerticalPodAutoscaler], /
    ) -> None:
        """Change its VerticalPodAutoscaler, usually with `machine_sidecar_policy`."""

    def gardener_resource_manager(self, request: AdmissionRequest[Deployment], /) -> None:
        """Change the Deployment gardener-resource-manager."""

    def vpn_seed_server(self, request: AdmissionRequest[Deployment], /) -> None:
        """Change the Deployment vpn-seed-server."""

    def vpn_seed_server_stateful_set(self, request: AdmissionRequest[StatefulSet], /) -> None:
        """Change the StatefulSet vpn-seed-server of highly available control planes."""

    def etcd(self, request: AdmissionRequest[Etcd], /) -> None:
        """Change the Etcds etcd-main and etcd-events."""

    def kubelet_configuration(
        self, request: AdmissionRequest[OperatingSystemConfig], config: Raw, version: str, /
    ) -> None:
        """Change the kubelet's configuration file in place; `version` is that of the kubelet."""

    def kubelet_unit(
        self, request: AdmissionRequest[OperatingSystemConfig], unit: SystemdUnit, version: str, /
    ) -> None:
        """Change the unit kubelet.service in place."""

    def kubelet_cloud_provider_config(
        self, request: AdmissionRequest[OperatingSystemConfig], version: str, /
    ) -> str | None:
        """Return the cloud provider's configuration for the kubelet; None or "" for no file."""
        return None

    def kernel_settings(
        self, request: AdmissionRequest[OperatingSystemConfig], text: str, /
    ) -> str:
        """Return the changed text of Gardener's kernel settings; an empty one changes nothing."""
        return text

    def cri_config(
        self, request: AdmissionRequest[OperatingSystemConfig], config: CRIConfig, /
    ) -> CRIConfig:
        """Return the changed configuration of the container runtime, made by `attrs.evolve`."""
        return config

    def additional_units_and_files(
        self, request: AdmissionRequest[OperatingSystemConfig], /
    ) -> None:
        """Add to `request.new.spec.units` and `request.new.spec.files`."""

    def additional_provision_units_and_files(
        self, request: AdmissionRequest[OperatingSystemConfig], /
    ) -> None:
        """The same in the OperatingSystemConfig that becomes the user data of machines."""

    def webhooks(self) -> Sequence[Webhook]:
        """Return one webhook for each kind of which a method is overridden."""
        components = [
            self._webhook(name, cls, found)
            for name, cls, methods in self._components()
            if (found := {item: method for item, method in methods.items() if _overridden(method)})
        ]
        return [*components, *self._of_nodes()]

    def _components(self) -> Iterator[tuple[str, type[Object], _Methods]]:
        deployments: _Methods = {
            "kube-apiserver": self.kube_apiserver,
            "kube-controller-manager": self.kube_controller_manager,
            "kube-scheduler": self.kube_scheduler,
            "cluster-autoscaler": self.cluster_autoscaler,
            "machine-controller-manager": self.machine_controller_manager,
            "gardener-resource-manager": self.gardener_resource_manager,
            "vpn-seed-server": self.vpn_seed_server,
        }
        yield "deployments", Deployment, deployments
        yield "statefulsets", StatefulSet, {"vpn-seed-server": self.vpn_seed_server_stateful_set}
        yield "services", Service, {"kube-apiserver": self.kube_apiserver_service}
        name = "machine-controller-manager-vpa"
        yield "autoscalers", VerticalPodAutoscaler, {name: self.machine_controller_manager_vpa}
        yield "etcds", Etcd, {"etcd-main": self.etcd, "etcd-events": self.etcd}

    def _webhook(self, name: str, cls: type[Object], methods: _Methods) -> Webhook:
        def handle(request: AdmissionRequest[Any]) -> None:
            method = methods.get(request.new.metadata.name)
            if method is not None:
                method(request)

        return self._declare(name, cls, handle, names=list(methods))

    def _of_nodes(self) -> Iterator[Webhook]:
        methods = (
            self.kubelet_configuration,
            self.kubelet_unit,
            self.kubelet_cloud_provider_config,
            self.kernel_settings,
            self.cri_config,
            self.additional_units_and_files,
        )
        if any(_overridden(method) for method in methods):
            yield self._declare(
                "nodes", OperatingSystemConfig, self._change_nodes, conditions=OF_NODES
            )
        provision = self.additional_provision_units_and_files
        if _overridden(provision):
            yield self._declare(
                "userdata", OperatingSystemConfig, provision, conditions=OF_USER_DATA
            )

    def _declare(
        self,
        name: str,
        cls: type[Object],
        handle: Callable[[Any], None],
        *,
        names: Sequence[str] = (),
        conditions: Mapping[str, str] | None = None,
    ) -> Webhook:
        place = self.namespace_label.partition(".")[0].replace("shoot", "controlplane")
        return mutates(
            cls,
            name=f"{place}-{name}",
            failure_policy=self.failure_policy,
            namespace_labels={self.namespace_label: self.provider},
            timeout_seconds=self.timeout_seconds,
            permissions=[READ_CLUSTER],
            names=names,
            conditions=conditions or {},
        )(handle)

    def _change_nodes(self, request: AdmissionRequest[OperatingSystemConfig]) -> None:
        spec = request.new.spec
        of_kubelet = (
            self.kubelet_configuration,
            self.kubelet_unit,
            self.kubelet_cloud_provider_config,
        )
        version = _kubelet_version(request) if any(_overridden(item) for item in of_kubelet) else ""
        if (file := find_file(spec.files, KUBELET_CONFIG)) and (text := text_of(file)) is not None:
            config = yaml.load(text, Loader=GoLoader)  # noqa: S506 - a safe one
            before = deepcopy(config)
            self.kubelet_configuration(request, config, version)
            if config != before:
                ensure_file(spec.files, KUBELET_CONFIG, go_yaml(config))
        for unit in [unit for unit in spec.units if unit.name == KUBELET_UNIT and unit.content]:
            self._change_unit(request, unit, version)
        settings = find_file(spec.files, KERNEL_SETTINGS)
        if settings is not None and (text := text_of(settings)) is not None:
            changed = self.kernel_settings(request, text)
            if changed not in ("", text):  # Gardener refuses files without content
                ensure_file(spec.files, KERNEL_SETTINGS, changed)
        if provider := self.kubelet_cloud_provider_config(request, version):
            ensure_file(spec.files, CLOUD_PROVIDER_CONFIG, provider, 0o644)
        self.additional_units_and_files(request)
        if (runtime := request.new.spec.cri_config) is not None:
            changed_runtime = self.cri_config(request, runtime)
            request.new.spec = attrs.evolve(request.new.spec, cri_config=changed_runtime)

    def _change_unit(
        self, request: AdmissionRequest[OperatingSystemConfig], unit: Unit, version: str
    ) -> None:
        """Change the unit; it is rendered in any case, as Gardener's Go library does."""
        parsed = SystemdUnit.parse(unit.content or "")
        self.kubelet_unit(request, parsed, version)
        ensure(request.new.spec.units, attrs.evolve(unit, content=parsed.render()))


def _overridden(method: Callable[..., Any]) -> bool:
    own = getattr(method, "__func__", method)
    return own is not getattr(ControlPlaneMutator, own.__name__, None)


def _kubelet_version(request: AdmissionRequest[OperatingSystemConfig]) -> str:
    """Return the Kubernetes version of the worker pool, else that of the shoot."""
    cluster: Cluster = request.cluster()
    pool = request.new.metadata.labels.get(_POOL)
    provider = (cluster.shoot.get("spec") or {}).get("provider") or {}
    for worker in provider.get("workers") or ():
        if worker.get("name") == pool:
            own = (worker.get("kubernetes") or {}).get("version")
            return str(own or cluster.kubernetes_version)
    return cluster.kubernetes_version


def machine_sidecar(
    provider: str, namespace: str, image: str, cluster: Cluster | None = None
) -> Container:
    """Return the container that runs the machine controller of a provider type, such as "aws".

    It has the settings that all of Gardener's extensions use. In a self-hosted shoot, which
    `cluster` tells, gardenlet mounts no kubeconfig: in kube-system the machine controller uses the
    account of its pod; elsewhere (`gardenadm bootstrap`) there is no shoot yet. Without `cluster`,
    only kube-system counts as self-hosted.

    Source: Gardener, `pkg/component/nodemanagement/machinecontrollermanager`.
    """
    in_shoot = namespace == _KUBE_SYSTEM
    self_hosted = in_shoot or (cluster is not None and cluster.is_self_hosted)
    kubeconfig = VolumeMount(name="kubeconfig", mount_path=_KUBECONFIG, read_only=True)
    target = f"{_KUBECONFIG}/kubeconfig"
    if self_hosted:
        target = "" if in_shoot else "none"
    probe: Raw = {"httpGet": {"path": "/healthz", "port": _METRICS_PORT, "scheme": "HTTP"}}
    probe |= {"initialDelaySeconds": 30, "timeoutSeconds": 5, "periodSeconds": 10}
    probe |= {"successThreshold": 1, "failureThreshold": 3}
    port = {"name": "providermetrics", "containerPort": _METRICS_PORT, "protocol": "TCP"}
    flags = {
        "control-kubeconfig": "inClusterConfig",
        "kube-api-qps": "100",
        "kube-api-burst": "200",
        "machine-creation-timeout": "20m",
        "machine-drain-timeout": "2h",
        "machine-health-timeout": "10m",
        "machine-safety-apiserver-statuscheck-timeout": "30s",
        "machine-safety-apiserver-statuscheck-period": "1m",
        "machine-safety-orphan-vms-period": "30m",
        "namespace": namespace,
        "port": str(_METRICS_PORT),
        "target-kubeconfig": target,
        "v": "3",
    }
    return Container(
        name=_sidecar_name(provider),
        image=image,
        args=[f"--{name}={value}" for name, value in flags.items()],
        volume_mounts=[] if self_hosted else [kubeconfig],
        extra={
            "imagePullPolicy": "IfNotPresent",
            "livenessProbe": probe,
            "ports": [port],
            "resources": {"requests": {"cpu": "10m", "memory": "20Mi"}},
            "securityContext": {"allowPrivilegeEscalation": False},
        },
    )


def machine_sidecar_policy(provider: str) -> ContainerPolicy:
    """Return the policy of that container in the VerticalPodAutoscaler."""
    return ContainerPolicy(container_name=_sidecar_name(provider), controlled_values="RequestsOnly")


def _sidecar_name(provider: str) -> str:
    return f"machine-controller-manager-provider-{provider}"
