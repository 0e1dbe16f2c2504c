"""The kinds that Gardener creates for extensions; Cluster only provides information to them."""

from actuator.meta import Object
from actuator.v1alpha1.backupbucket import BackupBucket
from actuator.v1alpha1.backupentry import BackupEntry
from actuator.v1alpha1.bastion import Bastion
from actuator.v1alpha1.containerruntime import ContainerRuntime
from actuator.v1alpha1.controlplane import ControlPlane
from actuator.v1alpha1.dnsrecord import DNSRecord
from actuator.v1alpha1.extension import Extension
from actuator.v1alpha1.infrastructure import Infrastructure
from actuator.v1alpha1.network import Network
from actuator.v1alpha1.operatingsystemconfig import OperatingSystemConfig
from actuator.v1alpha1.selfhostedshootexposure import SelfHostedShootExposure
from actuator.v1alpha1.worker import Worker

KINDS: tuple[type[Object], ...] = (
    BackupBucket,
    BackupEntry,
    Bastion,
    ContainerRuntime,
    ControlPlane,
    DNSRecord,
    Extension,
    Infrastructure,
    Network,
    OperatingSystemConfig,
    SelfHostedShootExposure,
    Worker,
)
