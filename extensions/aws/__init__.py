"""The AWS sample: all that Gardener asks of an AWS extension, kind by kind.

    actuator run extensions.aws:extension
    actuator drill extensions.aws.rehearsal:AwsRehearsal
    actuator drill extensions.aws.full_rehearsal:AwsFullRehearsal

Read in this order: the actuators (`infrastructure`, `controlplane`, `worker`, `dnsrecord`,
`bastion`, `backupbucket`, `backupentry`) and `account` (their common base); `config`, `profile`,
`credentials`, `status`, `seed` (what they read and write in Kubernetes), `machineclass`; `network`,
`host`, `records`, `bucket`, `tags` (what they do in the cloud); `cloud`,
`errors` (how), `policy` (with which rights); `verification` (what is left). `rehearsal`,
`full_rehearsal`, `manifests`, `inventory`, `simulator` and `simulated_iam` are for drills.
"""

from __future__ import annotations

import generic
from extensions.aws.backupbucket import AwsBackupBucket
from extensions.aws.backupentry import AwsBackupEntry
from extensions.aws.bastion import AwsBastion
from extensions.aws.controlplane import AwsControlPlane
from extensions.aws.dnsrecord import AwsDnsRecord
from extensions.aws.infrastructure import AwsInfrastructure
from extensions.aws.worker import AwsWorker

__all__ = [
    "AwsBackupBucket",
    "AwsBackupEntry",
    "AwsBastion",
    "AwsControlPlane",
    "AwsDnsRecord",
    "AwsInfrastructure",
    "AwsWorker",
    "extension",
]


def extension(manager: generic.Manager) -> None:
    """Adds the sample's actuators to a manager.

    They talk to AWS, or to what boto3's AWS_ENDPOINT_URL names.
    """
    manager.add(AwsInfrastructure(), type="aws")
    manager.add(AwsControlPlane(), type="aws")
    manager.add(AwsWorker(), type="aws")
    manager.add(AwsBastion(), type="aws")
    manager.add(AwsDnsRecord(), type="aws-route53")
    manager.add(AwsBackupBucket(), type="aws")
    manager.add(AwsBackupEntry(), type="aws")
