"""AwsBackupEntry: a shoot's backups under a prefix of a bucket, requested by a BackupEntry.

The shoot's etcd writes them with credentials that `generic` provides. Deletion removes the objects
under the entry's prefix, including old versions, and keeps the bucket, which belongs to a
BackupBucket.

Force deletion does not apply: a BackupEntry outlives its shoot. migrate keeps the backups.
"""

from collections.abc import Iterable

from actuator import Context, ExternalResource
from actuator.v1alpha1 import BackupEntry
from extensions.aws.account import OnAws
from extensions.aws.bucket import Bucket, objects_under
from generic.library import GenericBackupEntry, folder_of


class AwsBackupEntry(OnAws, GenericBackupEntry):
    """The objects in the entry's folder in the bucket."""

    def etcd_secret_data(
        self, ctx: Context, entry: BackupEntry, data: dict[str, bytes]
    ) -> dict[str, bytes]:
        """Add the bucket's region to the credentials (etcd-backup-restore documentation, "S3")."""
        return {**data, "region": entry.spec.region.encode()}

    def delete_entry(self, ctx: Context, entry: BackupEntry) -> None:
        """Delete all objects under the prefix; a bucket that does not exist is success."""
        spec = entry.spec
        cloud = self._open(ctx, entry, spec.region, "s3")
        Bucket(cloud, spec.bucket_name).delete_objects(_prefix(entry))

    def external_resources(self, obj: BackupEntry) -> Iterable[ExternalResource]:
        """Return all objects under the prefix, as one resource."""
        yield objects_under(obj.spec.bucket_name, _prefix(obj), obj.spec.region)


def _prefix(obj: BackupEntry) -> str:
    """Return the prefix with its slash: "a--1/" does not match "a--10/"."""
    return f"{folder_of(obj)}/"
