"""The AWS sample: actuators for all kinds of objects of a Gardener AWS extension.

    actuator run extensions.aws:extension
    actuator drill extensions.aws.rehearsal:AwsRehearsal
    actuator drill extensions.aws.full_rehearsal:AwsFullRehearsal

Read in this order: the actuators (`infrastructure`, `controlplane`, `worker`, `dnsrecord`,
`bastion`, `backupbucket`, `backupentry`) and `account` (their common base); `config`,
`status`, `state`, `seed` (data in Kubernetes), `machineclass`; `ec2`, `parts`, `resources`, `vpc`,
`network`, `securitygroups`, `host`, `records`, `bucket`, `tags` (resources in the cloud); `cloud`,
`errors` (the client), `policy` (its permissions); `verification` (orphaned resources); `webhooks`
(components of Gardener); `admission` (Shoots and CloudProfiles in the garden). `rehearsal`,
`full_rehearsal`, `manifests`, `inventory`, `simulator` and `simulated_…` are for drills.
"""

import generic
from extensions.aws.backupbucket import AwsBackupBucket
from extensions.aws.backupentry import AwsBackupEntry
from extensions.aws.bastion import AwsBastion
from extensions.aws.controlplane import AwsControlPlane
from extensions.aws.dnsrecord import AwsDnsRecord
from extensions.aws.infrastructure import AwsInfrastructure
from extensions.aws.webhooks import AwsMutator
from extensions.aws.worker import AwsWorker


def extension(manager: generic.Manager) -> None:
    """Add the sample's actuators and webhooks to a manager.

    They use AWS, or the endpoint in botocore's variable AWS_ENDPOINT_URL.
    """
    manager.add(AwsInfrastructure(), type="aws")
    manager.add(AwsControlPlane(), type="aws")
    manager.add(AwsWorker(), type="aws")
    manager.add(AwsBastion(), type="aws")
    manager.add(AwsDnsRecord(), type="aws-route53")
    manager.add(AwsBackupBucket(), type="aws")
    manager.add(AwsBackupEntry(), type="aws")
    manager.add_webhooks(*AwsMutator().webhooks())
