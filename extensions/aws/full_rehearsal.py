"""AwsFullRehearsal: AwsRehearsal with every kind that has resources in AWS.

    actuator drill extensions.aws.full_rehearsal:AwsFullRehearsal --scenario everything-fails

BackupBucket and BackupEntry are never force-deleted: they wait until the outside works again. The
drill's simulated machine-controller-manager creates the machines of a Worker: objects in the seed
with its finalizers, without resources in AWS.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from actuator import Actuator, Raw
from actuator.v1alpha1 import BackupEntry
from extensions.aws.backupbucket import AwsBackupBucket
from extensions.aws.backupentry import AwsBackupEntry
from extensions.aws.bastion import AwsBastion
from extensions.aws.cloud import GLOBAL
from extensions.aws.dnsrecord import AwsDnsRecord
from extensions.aws.manifests import example, shoot_part
from extensions.aws.rehearsal import AwsRehearsal
from extensions.aws.worker import AwsWorker
from generic.library import MACHINE_KINDS
from generic.testing import RehearsedShoot, ShootPart

_DOMAIN = "rehearsal.example.com"


class AwsFullRehearsal(AwsRehearsal):
    """The complete outside world of the AWS sample."""

    other_kinds = (*AwsRehearsal.other_kinds, *MACHINE_KINDS)

    def __init__(self) -> None:
        super().__init__()
        self._entries: list[Raw] = []

    def start(self, directory: Path) -> None:
        """Start the simulator, with a hosted zone for the shoots' names."""
        super().start(directory)
        route53 = self.account.service("route53", GLOBAL)
        route53.request("create_hosted_zone", Name=_DOMAIN, CallerReference=_DOMAIN)

    def actuators(self) -> Sequence[Actuator[Any]]:
        """All actuators of the extension, connected to the simulator."""
        url = self.url
        return [
            AwsBackupBucket(url),
            AwsBackupEntry(url),
            AwsDnsRecord(url),
            *super().actuators(),
            AwsWorker(),
            AwsBastion(url),
        ]

    def manifests(self, shoot: RehearsedShoot) -> Sequence[Raw]:
        """The manifests of AwsRehearsal, and backups, a DNS record, machines, a bastion."""
        others = example("others", shoot, self.credentials)
        self._entries += [other for other in others if other["kind"] == BackupEntry.KIND.name]
        return [*super().manifests(shoot), *others]

    def shoot_part(self, image: str) -> ShootPart:
        """The extension with the simulator as its AWS."""
        return shoot_part(image, self.credentials, _DOMAIN, self.url)

    def inject_failure(self, scenario: str) -> None:
        """Start the scenario, after a simulated backup of each shoot's etcd."""
        s3 = self.account.service("s3", self.region)
        made = {bucket["Name"] for bucket in s3.items("list_buckets", "Buckets")}
        for entry in self._entries:
            name = entry["metadata"]["name"]
            bucket = entry["spec"]["bucketName"]
            if bucket in made:
                s3.request("put_object", Bucket=bucket, Key=f"{name}/etcd-main/backup", Body=b"")
        super().inject_failure(scenario)
