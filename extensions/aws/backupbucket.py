"""AwsBackupBucket: the bucket for a seed's backups, requested by a BackupBucket.

Flow of reconcile: look up the bucket → if there is none, save a status (from then on a bucket may
exist), create the bucket, then tag it. The bucket has the object's name. Force deletion does not
apply: a BackupBucket belongs to a seed, not to a shoot.
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
)
from actuator.provider_config import refuse_config
from actuator.provider_status import read_status, write_status
from actuator.v1alpha1 import BackupBucket
from extensions.aws.account import READ_SECRETS, OnAws
from extensions.aws.bucket import BUCKET, Bucket, Found
from extensions.aws.errors import CloudError
from extensions.aws.status import BackupBucketStatus
from extensions.aws.tags import bucket_mark

_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
"""Amazon S3 user guide, "Bucket naming rules"."""


class AwsBackupBucket(OnAws, Actuator[BackupBucket]):
    """A bucket in S3."""

    permissions = (READ_SECRETS,)

    def validate(self, ctx: Context, obj: BackupBucket, cluster: Cluster) -> Iterator[FieldProblem]:
        """Require a name that S3 accepts, and no providerConfig."""
        yield from refuse_config(obj.spec)
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
        if found is Found.NOTHING:
            self._create(ctx, obj, bucket)
        elif found is Found.UNMARKED and asked_for and bucket.is_empty():
            bucket.mark()
        elif found is not Found.OURS:
            raise _not_ours(obj, found)
        write_status(obj.status, BackupBucketStatus(bucket=bucket.name))

    def delete(self, ctx: Context, obj: BackupBucket, cluster: Cluster) -> None:
        """Delete the extension's bucket with all its objects; never touch a bucket of others."""
        if read_status(BackupBucketStatus, obj.status) is None:
            return  # nothing was ever created: needs neither credentials nor cloud
        bucket = self._bucket(ctx, obj)
        found = bucket.look()
        if found is Found.OURS or (found is Found.UNMARKED and bucket.is_empty()):
            bucket.delete()
        elif found is Found.UNMARKED:
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
        cloud = self._open(ctx, obj, obj.spec.secret_ref, obj.spec.region, "s3")
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


def _not_ours(obj: BackupBucket, found: Found) -> ConfigurationError:
    return ConfigurationError(
        f"BackupBucket {obj.key}: metadata.name: there is {found.value} of that name already; "
        "create a BackupBucket with another name, or remove that bucket"
    )
