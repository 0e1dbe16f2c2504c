# The public names of the package, for type checkers and for `__init__.py`.

from generic.library.webhooks.admission import ConfigAdmission as ConfigAdmission
from generic.library.webhooks.controlplane import (
    BACKUP_PROVIDER as BACKUP_PROVIDER,
    CLOUD_PROVIDER_CONFIG as CLOUD_PROVIDER_CONFIG,
    KERNEL_SETTINGS as KERNEL_SETTINGS,
    KUBELET_CONFIG as KUBELET_CONFIG,
    KUBELET_UNIT as KUBELET_UNIT,
    OF_NODES as OF_NODES,
    OF_USER_DATA as OF_USER_DATA,
    SEED_PROVIDER as SEED_PROVIDER,
    SHOOT_PROVIDER as SHOOT_PROVIDER,
    ControlPlaneMutator as ControlPlaneMutator,
    machine_sidecar as machine_sidecar,
    machine_sidecar_policy as machine_sidecar_policy,
)
from generic.library.webhooks.edits import (
    SystemdUnit as SystemdUnit,
    UnitOption as UnitOption,
    add_to_flag as add_to_flag,
    ensure as ensure,
    ensure_file as ensure_file,
    ensure_flag as ensure_flag,
    find_file as find_file,
    remove as remove,
    remove_flag as remove_flag,
    remove_from_flag as remove_from_flag,
    text_of as text_of,
)
from generic.library.webhooks.garden import (
    CloudProfile as CloudProfile,
    CredentialsBinding as CredentialsBinding,
    GardenBackupBucket as GardenBackupBucket,
    NamespacedCloudProfile as NamespacedCloudProfile,
    SecretBinding as SecretBinding,
    GardenSeed as GardenSeed,
    Shoot as Shoot,
    cloud_profile_status as cloud_profile_status,
    merge_machine_images as merge_machine_images,
)
from generic.library.webhooks.objects import (
    AutoscalerSpec as AutoscalerSpec,
    Container as Container,
    ContainerPolicy as ContainerPolicy,
    Deployment as Deployment,
    EnvVar as EnvVar,
    Etcd as Etcd,
    PodDNSConfig as PodDNSConfig,
    PodSpec as PodSpec,
    PodTemplate as PodTemplate,
    ResourcePolicy as ResourcePolicy,
    Secret as Secret,
    Service as Service,
    StatefulSet as StatefulSet,
    TemplateMeta as TemplateMeta,
    VerticalPodAutoscaler as VerticalPodAutoscaler,
    PodVolume as PodVolume,
    VolumeMount as VolumeMount,
    Workload as Workload,
    WorkloadSpec as WorkloadSpec,
    kubernetes_kind as kubernetes_kind,
)
from generic.library.webhooks.rules import ConfigReview as ConfigReview
from generic.library.webhooks.targets import (
    cloudprovider as cloudprovider,
    in_shoot as in_shoot,
    network as network,
    of_provider as of_provider,
    of_type as of_type,
    pod_dns as pod_dns,
    with_extension as with_extension,
)
from generic.library.webhooks.webhook import (
    READ_CLUSTER as READ_CLUSTER,
    AdmissionRequest as AdmissionRequest,
    Denied as Denied,
    WebhookTarget as WebhookTarget,
    Webhook as Webhook,
    mutates as mutates,
    validates as validates,
)
