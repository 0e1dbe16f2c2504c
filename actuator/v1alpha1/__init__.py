"""The kinds of extensions.gardener.cloud/v1alpha1, one module each, and the tuple `KINDS`.

`KINDS` has the kinds that Gardener creates for extensions; Cluster only provides information to
them. A module is imported when one of its names is used: all together take 50 ms. `__init__.pyi`
declares the names for type checkers.
"""

from importlib import import_module
from typing import Any

from actuator.cluster import Cluster, ClusterSpec

_NAMES = {
    "backupbucket": "BackupBucket BackupBucketSpec BackupBucketStatus",
    "backupentry": "BackupEntry BackupEntrySpec",
    "bastion": "Bastion BastionIngressPolicy BastionSpec BastionStatus IPBlock",
    "containerruntime": "ContainerRuntime ContainerRuntimeSpec ContainerRuntimeWorkerPool",
    "controlplane": "ControlPlane ControlPlaneSpec",
    "dnsrecord": "DNSRecord DEFAULT_TTL DNSRecordSpec DNSRecordStatus DNSRecordType",
    "extension": "Extension ExtensionSpec",
    "infrastructure": (
        "Infrastructure InfrastructureNetworking InfrastructureSpec InfrastructureStatus"
    ),
    "network": "Network IPFamily NetworkSpec NetworkStatus",
    "operatingsystemconfig": (
        "OperatingSystemConfig CloudConfig ContainerdConfig CredentialsRotation CRIConfig CRIName "
        "DropIn File FileContent FileContentImageRef FileContentInline FileContentSecretRef "
        "InPlaceUpdates InPlaceUpdatesStatus OperatingSystemConfigSpec "
        "OperatingSystemConfigStatus OSUpdate PluginConfig Purpose RegistryConfig RegistryHost "
        "Rotation Unit"
    ),
    "selfhostedshootexposure": (
        "SelfHostedShootExposure ControlPlaneEndpoint NodeAddress "
        "SelfHostedShootExposureSpec SelfHostedShootExposureStatus"
    ),
    "shared": (
        "LabelSelector LabelSelectorRequirement LoadBalancerIngress ObjectReference PortStatus"
    ),
    "worker": (
        "Worker ClusterAutoscalerOptions DataVolume InPlaceUpdatesWorkerStatus "
        "MachineControllerManagerSettings MachineDeploymentStatus MachineImage "
        "NodeTemplate Taint UserDataSecretRef Volume WorkerPool WorkerSpec "
        "WorkerStatus"
    ),
}
"""The names of each module; first that of its kind."""
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}
_KINDS = [names.split()[0] for module, names in _NAMES.items() if module != "shared"]
__all__ = ["KINDS", "Cluster", "ClusterSpec", *_MODULES]  # noqa: PLE0604 - the keys are strings


def __getattr__(name: str) -> Any:
    if name == "KINDS":
        found: Any = tuple(__getattr__(kind) for kind in _KINDS)
    elif name in _MODULES:
        found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found
