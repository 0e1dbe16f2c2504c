"""The generated Secret of a BackupBucket, and its deletion without credentials."""

import base64

import pytest

from actuator import ActuatorError
from actuator.errors import NotFound
from actuator.interface import Resource
from actuator.v1alpha1 import BackupBucket
from generic.library.backupbucket import (
    GENERATED_SECRET_PERMISSIONS,
    delete_generated_secret,
    write_generated_secret,
)
from tests.support.cluster.harness import Script, eventually
from tests.support.objects.contract import manifest, secret

SECRETS = Resource("v1", "secrets")
NAMESPACES = Resource("v1", "namespaces", namespaced=False)
NAMESPACE = "backupbucket.extensions.gardener.cloud/generated-secret-namespace"


class Crash(Exception):
    pass


class Buckets(Script):
    """Generates a Secret with the account's name; crashes after it as often as requested."""

    permissions = GENERATED_SECRET_PERMISSIONS
    account = {"account": b"one"}
    crashes = 0

    def reconcile(self, ctx, obj, cluster):
        write_generated_secret(ctx, obj, self.account)
        if self.crashes:
            self.crashes -= 1
            obj.status.generated_secret_ref = None
            raise Crash

    def delete(self, ctx, obj, cluster):
        delete_generated_secret(ctx, obj)


@pytest.fixture
def bucket(seed, namespace):
    return seed.of(BackupBucket, namespace)


def create(bucket, **annotations):
    bucket.client.create(SECRETS, secret(bucket.namespace))
    bucket.create(manifest(BackupBucket, bucket.namespace, bucket.name, annotations=annotations))


def generated(bucket, namespace):
    return bucket.client.get(SECRETS, f"generated-bucket-{bucket.name}", namespace)


@pytest.mark.parametrize("where", ["", "garden"])
def test_the_secret_is_in_the_namespace_that_gardenlet_asks_for_else_in_garden(
    bucket, start, namespace, where
):
    if where and all(obj["metadata"]["name"] != where for obj in bucket.client.list(NAMESPACES)):
        bucket.client.create(
            NAMESPACES,
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": where}},
        )
    start(Buckets(BackupBucket))
    create(bucket, **({} if where else {NAMESPACE: namespace}))
    eventually(bucket.is_ready)
    reference = {"name": f"generated-bucket-{bucket.name}", "namespace": where or namespace}
    assert bucket.status()["generatedSecretRef"] == reference
    data = generated(bucket, reference["namespace"])["data"]
    assert data == {"account": base64.b64encode(b"one").decode()}
    bucket.delete()
    eventually(bucket.is_gone)
    with pytest.raises(NotFound):
        generated(bucket, reference["namespace"])


def test_a_credential_that_is_replaced_leaves_nothing_of_the_former_one(bucket, start, namespace):
    actuator = Buckets(BackupBucket)
    start(actuator)
    create(bucket, **{NAMESPACE: namespace})
    eventually(bucket.is_ready)
    actuator.account = {"key": b"two"}
    bucket.ask("reconcile")
    eventually(bucket.is_ready)
    assert list(generated(bucket, namespace)["data"]) == ["key"]


def test_a_secret_whose_reference_a_crash_kept_from_the_status_is_deleted(bucket, start, namespace):
    actuator = Buckets(BackupBucket)
    actuator.crashes = 1_000
    start(actuator)
    create(bucket, **{NAMESPACE: namespace})
    eventually(lambda: generated(bucket, namespace))
    assert "generatedSecretRef" not in bucket.status()
    bucket.delete()
    eventually(bucket.is_gone)
    with pytest.raises(NotFound):
        generated(bucket, namespace)


def test_a_bucket_whose_secret_is_gone_is_not_released_without_its_actuator(bucket, start):
    """Unlike a BackupEntry (gardener, `extensions/pkg/controller/backupbucket`)."""
    calls = []

    def delete(ctx, obj, cluster):
        calls.append(obj.metadata.name)
        if len(calls) == 1:
            raise ActuatorError("cannot read the Secret")

    start(Script(BackupBucket, delete=delete))
    create(bucket)
    eventually(bucket.is_ready)
    patch = {"metadata": {"finalizers": None}}
    bucket.client.patch(SECRETS, "cloudprovider", bucket.namespace, patch)
    bucket.client.delete(SECRETS, "cloudprovider", bucket.namespace)
    bucket.delete()
    eventually(bucket.is_gone)
    assert calls == [bucket.name] * 2
