"""AwsBackupEntry: a shoot's backups under a prefix of a bucket, asked for by a BackupEntry.

The shoot's etcd writes them, with credentials that `generic` hands to it. Deletion takes what is
under the entry's own prefix, old versions included, and leaves the bucket, which is a
BackupBucket's.

Never forced: a BackupEntry outlives its shoot. migrate leaves the backups alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from actuator import Cluster, Context, ExternalResource, FieldProblem
from actuator.v1alpha1 import BackupEntry
from extensions.aws.account import OnAws
from extensions.aws.bucket import OBJECTS, Bucket, objects_id
from extensions.aws.config import refuse_provider_config
from generic.library.backupentry import GenericBackupEntry


class AwsBackupEntry(OnAws, GenericBackupEntry):
    """What is under `<name>/` in the bucket."""

    def validate(self, ctx: Context, obj: BackupEntry, cluster: Cluster) -> Iterator[FieldProblem]:
        """No providerConfig."""
        yield from refuse_provider_config(obj.spec.provider_config)

    def etcd_secret_data(
        self, ctx: Context, entry: BackupEntry, data: dict[str, bytes]
    ) -> dict[str, bytes]:
        """The credentials, and the bucket's region (etcd-backup-restore documentation, "S3")."""
        return {**data, "region": entry.spec.region.encode()}

    def delete_entry(self, ctx: Context, entry: BackupEntry) -> None:
        """Afterwards nothing is under the prefix; a bucket that is gone is success."""
        spec = entry.spec
        cloud = self._open(ctx, entry, spec.secret_ref, spec.region, "s3")
        Bucket(cloud, spec.bucket_name).delete_objects(_prefix(entry))

    def external_resources(self, obj: BackupEntry) -> Iterable[ExternalResource]:
        """All under the prefix, as one thing."""
        bucket, prefix = obj.spec.bucket_name, _prefix(obj)
        yield ExternalResource(
            type=OBJECTS,
            id=objects_id(bucket, prefix),
            tags={"bucket": bucket, "prefix": prefix},
            region=obj.spec.region,
        )


def _prefix(obj: BackupEntry) -> str:
    """With the slash: "a--1/" has nothing of "a--10/"."""
    return f"{obj.metadata.name}/"
