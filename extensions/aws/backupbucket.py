"""AwsBackupBucket: the bucket for a seed's backups, requested by a BackupBucket.

Flow of reconcile: look up the bucket → if there is none, save a status (from then on a bucket may
exist), create the bucket, then tag it. The bucket has the object's name. It is deleted once no
BackupEntry of the seed has backups in it. Force deletion does not apply: a BackupBucket belongs to
a seed, not to a shoot.
"""

import re
from collections.abc import Iterable, Iterator

from actuator import (
    Actuator,
    ActuatorError,
    Cluster,
    ConfigurationError,
    Context,
    ErrorCode,
    ExternalResource,
    FieldProblem,
    read_status,
    resource_of,
    write_status,
)
from actuator.v1alpha1 import BackupBucket, BackupEntry
from extensions.aws.account import READ_SECRETS, OnAws
from extensions.aws.bucket import BUCKET, Bucket, BucketState
from extensions.aws.errors import CloudError
from extensions.aws.status import BackupBucketStatus
from extensions.aws.tags import bucket_mark

_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
"""Amazon S3 user guide, "Bucket naming rules"."""

_ENTRIES = resource_of(BackupEntry.KIND)


class AwsBackupBucket(OnAws, Actuator[BackupBucket]):
    """A bucket in S3."""

    permissions = (READ_SECRETS, _ENTRIES.permission("list"))

    def validate(self, ctx: Context, obj: BackupBucket, cluster: Cluster) -> Iterator[FieldProblem]:
        """Require a name that S3 accepts."""
        if not _NAME.fullmatch(obj.metadata.name):
            yield FieldProblem(
                field="metadata.name",
                detail=f"{obj.metadata.name!r} cannot name a bucket; create a BackupBucket with "
                "3 to 63 lower-case letters, digits, hyphens and dots",
            )

    def reconcile(self, ctx: Context, obj: BackupBucket, cluster: Cluster) -> None:
        """Ensure that the bucket exists with the extension's tag."""
        asked_for = read_status(BackupBucketStatus, obj.status) is not None
        bucket = self._bucket(ctx, obj)
        found = bucket.look()
        if found is BucketState.NOTHING:
            self._create(ctx, obj, bucket)
        elif found is BucketState.UNMARKED and asked_for and bucket.is_empty():
            bucket.mark()
        elif found is not BucketState.OURS:
            raise _not_ours(obj, found)
        write_status(obj.status, BackupBucketStatus(bucket=bucket.name))

    def delete(self, ctx: Context, obj: BackupBucket, cluster: Cluster) -> None:
        """Delete the extension's bucket with all its objects; never touch a bucket of others."""
        if read_status(BackupBucketStatus, obj.status) is None:
            return  # nothing was ever created: needs neither credentials nor cloud
        _check_unused(ctx, obj)
        bucket = self._bucket(ctx, obj)
        found = bucket.look()
        if found is BucketState.OURS or (found is BucketState.UNMARKED and bucket.is_empty()):
            bucket.delete()
        elif found is BucketState.UNMARKED:
            raise ActuatorError(
                f"Bucket {bucket.name} has lost its tag; put it back, or empty the bucket",
                codes=[ErrorCode.ERR_INFRA_DEPENDENCIES],
            )
        obj.status.provider_status = obj.status.state = None

    def external_resources(self, obj: BackupBucket) -> Iterable[ExternalResource]:
        """Return the bucket, once its creation was requested."""
        if obj.status.provider_status is not None or obj.status.state is not None:
            name = obj.metadata.name
            yield ExternalResource(
                type=BUCKET, id=name, tags=bucket_mark(name), region=obj.spec.region
            )

    def _bucket(self, ctx: Context, obj: BackupBucket) -> Bucket:
        cloud = self._open(ctx, obj, obj.spec.region, "s3")
        return Bucket(cloud, obj.metadata.name, obj.spec.region)

    def _create(self, ctx: Context, obj: BackupBucket, bucket: Bucket) -> None:
        write_status(obj.status, BackupBucketStatus(bucket=bucket.name))
        ctx.save(obj)
        try:
            bucket.create()
        except CloudError as error:
            if error.code == "BucketAlreadyExists":  # it belongs to another account
                obj.status.provider_status = obj.status.state = None
            raise
        bucket.mark()


def _check_unused(ctx: Context, obj: BackupBucket) -> None:
    """Raise ActuatorError while a BackupEntry of the seed has backups in the bucket."""
    for entry in ctx.client.list(_ENTRIES):
        if entry["spec"].get("bucketName") == obj.metadata.name:
            text = f"BackupEntry {entry['metadata']['name']} has backups in it; delete it first"
            codes = [ErrorCode.ERR_RETRYABLE_INFRA_DEPENDENCIES]
            raise ActuatorError(f"Bucket {obj.metadata.name}: {text}", codes=codes)


def _not_ours(obj: BackupBucket, found: BucketState) -> ConfigurationError:
    return ConfigurationError(
        f"BackupBucket {obj.key}: metadata.name: there is {found.value} of that name already; "
        "create a BackupBucket with another name, or remove that bucket"
    )
