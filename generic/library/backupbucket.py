"""The Secret that an extension generates for access to the bucket of a BackupBucket.

gardenlet gives it to the BackupEntries in place of the Seed's credentials (Gardener documentation,
"BackupBucket"). An extension whose BackupEntries use these credentials needs none.
"""

from collections.abc import Mapping
from contextlib import suppress

from actuator.errors import NotFound
from actuator.interface import SECRETS, Context
from actuator.meta import Base64, SecretReference
from actuator.v1alpha1 import BackupBucket
from generic.kube.writing import write
from generic.library.lookup import find
from generic.library.manifests import manifest

__all__ = ["GENERATED_SECRET_PERMISSIONS", "delete_generated_secret", "write_generated_secret"]

GENERATED_SECRET_PERMISSIONS = (SECRETS.permission("get", "create", "patch", "delete"),)
_NAMESPACE = "backupbucket.extensions.gardener.cloud/generated-secret-namespace"


def write_generated_secret(ctx: Context, bucket: BackupBucket, data: Mapping[str, bytes]) -> None:
    """Write the Secret with this data, and refer to it in the status. Raises ApiError."""
    there = _reference(bucket)
    encoded = {key: Base64.encode_bytes(value) for key, value in data.items()}
    wanted = manifest("v1", "Secret", there.name, there.namespace, type="Opaque", data=encoded)
    write(ctx.client, SECRETS, wanted, find(ctx.client, SECRETS, there.name, there.namespace))
    bucket.status.generated_secret_ref = there


def delete_generated_secret(ctx: Context, bucket: BackupBucket) -> None:
    """Delete the Secret, also if a crash kept its reference from the status. Raises ApiError."""
    for there in filter(None, (_reference(bucket), bucket.status.generated_secret_ref)):
        with suppress(NotFound):
            ctx.client.delete(SECRETS, there.name, there.namespace)
    bucket.status.generated_secret_ref = None


def _reference(bucket: BackupBucket) -> SecretReference:
    namespace = bucket.metadata.annotations.get(_NAMESPACE, "garden")
    return SecretReference(name=f"generated-bucket-{bucket.metadata.name}", namespace=namespace)
