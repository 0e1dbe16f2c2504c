# The public names of the package, for type checkers and for `__init__.py`.

from generic.kube.clock import eventual_now as eventual_now, trusted_now as trusted_now
from generic.kube.kubeconfig import (
    InlineKubeconfig as InlineKubeconfig,
    read_kubeconfig as read_kubeconfig,
)
from generic.kube.writing import write as write
from generic.library.backupbucket import (
    GENERATED_SECRET_PERMISSIONS as GENERATED_SECRET_PERMISSIONS,
    delete_generated_secret as delete_generated_secret,
    write_generated_secret as write_generated_secret,
)
from generic.library.backupentry import (
    GenericBackupEntry as GenericBackupEntry,
    folder_of as folder_of,
    technical_id_and_uid as technical_id_and_uid,
)
from generic.library.bastion import (
    Range as Range,
    ingress_problems as ingress_problems,
    ingress_ranges as ingress_ranges,
)
from generic.library.external import (
    ExternalResourceActuator as ExternalResourceActuator,
    RecordedStatus as RecordedStatus,
)
from generic.library.flow import ExternalType as ExternalType, Flow as Flow, Task as Task
from generic.library.flowstate import (
    FlowState as FlowState,
    Ids as Ids,
    ResourceRecord as ResourceRecord,
)
from generic.library.foreach import for_each as for_each
from generic.library.imagevector import (
    ImageSource as ImageSource,
    ImageVector as ImageVector,
    load_images as load_images,
)
from generic.library.lookup import find as find
from generic.library.machines import MACHINE_KINDS as MACHINE_KINDS
from generic.library.manifests import (
    MAX_NAME as MAX_NAME,
    daemon_set_manifest as daemon_set_manifest,
    deployment_manifest as deployment_manifest,
    manifest as manifest,
    manifest_of as manifest_of,
    shortened as shortened,
)
from generic.library.references import (
    make_unique as make_unique,
    with_references as with_references,
)
from generic.library.workload_identity import (
    WorkloadIdentity as WorkloadIdentity,
    read_workload_identity as read_workload_identity,
)
