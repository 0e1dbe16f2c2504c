# The public names of the package, for type checkers and for `__init__.py`.

from actuator.cluster import Cluster as Cluster, ClusterSpec as ClusterSpec
from actuator.v1alpha1.backupbucket import (
    BackupBucket as BackupBucket,
    BackupBucketSpec as BackupBucketSpec,
    BackupBucketStatus as BackupBucketStatus,
)
from actuator.v1alpha1.backupentry import (
    BackupEntry as BackupEntry,
    BackupEntrySpec as BackupEntrySpec,
)
from actuator.v1alpha1.bastion import (
    Bastion as Bastion,
    BastionIngressPolicy as BastionIngressPolicy,
    BastionSpec as BastionSpec,
    BastionStatus as BastionStatus,
    IPBlock as IPBlock,
)
from actuator.v1alpha1.containerruntime import (
    ContainerRuntime as ContainerRuntime,
    ContainerRuntimeSpec as ContainerRuntimeSpec,
    ContainerRuntimeWorkerPool as ContainerRuntimeWorkerPool,
)
from actuator.v1alpha1.controlplane import (
    ControlPlane as ControlPlane,
    ControlPlaneSpec as ControlPlaneSpec,
)
from actuator.v1alpha1.dnsrecord import (
    DEFAULT_TTL as DEFAULT_TTL,
    DNSRecord as DNSRecord,
    DNSRecordSpec as DNSRecordSpec,
    DNSRecordStatus as DNSRecordStatus,
    DNSRecordType as DNSRecordType,
)
from actuator.v1alpha1.extension import Extension as Extension, ExtensionSpec as ExtensionSpec
from actuator.v1alpha1.infrastructure import (
    Infrastructure as Infrastructure,
    InfrastructureNetworking as InfrastructureNetworking,
    InfrastructureSpec as InfrastructureSpec,
    InfrastructureStatus as InfrastructureStatus,
)
from actuator.v1alpha1.kinds import KINDS as KINDS
from actuator.v1alpha1.network import (
    IPFamily as IPFamily,
    Network as Network,
    NetworkSpec as NetworkSpec,
    NetworkStatus as NetworkStatus,
)
from actuator.v1alpha1.operatingsystemconfig import (
    CRIConfig as CRIConfig,
    CRIName as CRIName,
    CloudConfig as CloudConfig,
    ContainerdConfig as ContainerdConfig,
    CredentialsRotation as CredentialsRotation,
    DropIn as DropIn,
    File as File,
    FileContent as FileContent,
    FileContentImageRef as FileContentImageRef,
    FileContentInline as FileContentInline,
    FileContentSecretRef as FileContentSecretRef,
    InPlaceUpdates as InPlaceUpdates,
    InPlaceUpdatesStatus as InPlaceUpdatesStatus,
    OSUpdate as OSUpdate,
    OperatingSystemConfig as OperatingSystemConfig,
    OperatingSystemConfigSpec as OperatingSystemConfigSpec,
    OperatingSystemConfigStatus as OperatingSystemConfigStatus,
    PluginConfig as PluginConfig,
    Purpose as Purpose,
    RegistryConfig as RegistryConfig,
    RegistryHost as RegistryHost,
    Rotation as Rotation,
    Unit as Unit,
)
from actuator.v1alpha1.selfhostedshootexposure import (
    ControlPlaneEndpoint as ControlPlaneEndpoint,
    NodeAddress as NodeAddress,
    SelfHostedShootExposure as SelfHostedShootExposure,
    SelfHostedShootExposureSpec as SelfHostedShootExposureSpec,
    SelfHostedShootExposureStatus as SelfHostedShootExposureStatus,
)
from actuator.v1alpha1.shared import (
    LabelSelector as LabelSelector,
    LabelSelectorRequirement as LabelSelectorRequirement,
    LoadBalancerIngress as LoadBalancerIngress,
    ObjectReference as ObjectReference,
    PortStatus as PortStatus,
)
from actuator.v1alpha1.worker import (
    ClusterAutoscalerOptions as ClusterAutoscalerOptions,
    DataVolume as DataVolume,
    InPlaceUpdatesWorkerStatus as InPlaceUpdatesWorkerStatus,
    MachineControllerManagerSettings as MachineControllerManagerSettings,
    MachineDeploymentStatus as MachineDeploymentStatus,
    MachineImage as MachineImage,
    NodeTemplate as NodeTemplate,
    Taint as Taint,
    UserDataSecretRef as UserDataSecretRef,
    Volume as Volume,
    Worker as Worker,
    WorkerPool as WorkerPool,
    WorkerSpec as WorkerSpec,
    WorkerStatus as WorkerStatus,
)
