"""BackupBucket and BackupEntry on (simulated) S3: created once, emptied; those of others stay."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from actuator import ActuatorError, Cluster, ConfigurationError, ErrorCode
from actuator.codec import encode
from actuator.errors import NotFound
from actuator.interface import Resource, resource_of
from actuator.v1alpha1 import BackupBucket, BackupEntry
from extensions.aws.backupbucket import AwsBackupBucket
from extensions.aws.backupentry import AwsBackupEntry
from extensions.aws.bucket import Bucket, BucketState
from extensions.aws.cloud import GLOBAL
from extensions.aws.errors import CloudError
from extensions.aws.tags import as_list, bucket_mark
from tests.support.aws.objects import REGION, Call, backup_bucket, backup_entry
from tests.support.objects.configured import Configured

NO_CLUSTER = Cluster()
SECRETS = Resource("v1", "secrets")
ENTRIES = resource_of(BackupEntry.KIND)


class Crash(BaseException):
    pass


@pytest.fixture
def buckets(url) -> Any:
    return Configured(AwsBackupBucket(url))


@pytest.fixture
def wanted(namespace) -> BackupBucket:
    return backup_bucket(namespace)


@pytest.fixture
def bucket(s3, namespace) -> Bucket:
    """The same bucket as administrator."""
    return Bucket(s3, namespace, REGION)


def put(s3, bucket: str, *keys: str) -> None:
    for key in keys:
        s3.request("put_object", Bucket=bucket, Key=key, Body=b"x")


def keys(s3, bucket: str) -> list[str]:
    answer = s3.request("list_object_versions", Bucket=bucket)
    return [
        version["Key"]
        for version in (*answer.get("Versions", ()), *answer.get("DeleteMarkers", ()))
    ]


def may(action: str) -> dict:
    statement = {"Effect": "Allow", "Action": action, "Resource": "*"}
    deny = {"Effect": "Deny", "Action": "s3:DeleteObject", "Resource": "*"}
    return {"Version": "2012-10-17", "Statement": [statement, deny]}


def make_foreign(s3, name: str) -> None:
    where = {"LocationConstraint": REGION}
    s3.request("create_bucket", Bucket=name, CreateBucketConfiguration=where)
    tagging = {"TagSet": as_list({"team": "other"})}
    s3.request("put_bucket_tagging", Bucket=name, Tagging=tagging)


def test_a_bucket_is_made_once_in_its_region_and_with_our_mark(
    buckets, call, wanted, bucket, s3, namespace
):
    buckets.reconcile(call, wanted, NO_CLUSTER)
    buckets.reconcile(call, wanted, NO_CLUSTER)
    assert bucket.look() is BucketState.OURS
    where = s3.request("get_bucket_location", Bucket=namespace)
    assert where["LocationConstraint"] == REGION
    assert wanted.status.provider_status == wanted.status.state
    assert wanted.status.provider_status["bucket"] == namespace
    (left,) = buckets.external_resources(wanted)
    assert (left.type, left.id, left.region) == ("AWS::S3::Bucket", namespace, REGION)
    assert left.tags == bucket_mark(namespace)
    assert len(call.saved) == 1, "saved ahead of the creation, and never again"


def test_the_region_that_s3_must_not_hear_is_left_out(buckets, call, namespace, account):
    buckets.reconcile(call, backup_bucket(namespace, region=GLOBAL), NO_CLUSTER)
    assert Bucket(account.service("s3", GLOBAL), namespace, GLOBAL).look() is BucketState.OURS


def test_a_crash_before_the_creation_leaves_only_a_status(buckets, call, wanted, bucket):
    def crash(status):
        raise Crash

    call.on_save = crash
    with pytest.raises(Crash):
        buckets.reconcile(call, wanted, NO_CLUSTER)
    assert bucket.look() is BucketState.NOTHING
    call.on_save = lambda status: None
    buckets.reconcile(call, wanted, NO_CLUSTER)
    assert bucket.look() is BucketState.OURS


@pytest.mark.parametrize("then", ["reconcile", "delete"])
def test_a_bucket_that_a_crash_left_without_mark_is_taken_up(
    buckets, call, wanted, bucket, then, monkeypatch
):
    def crash(bucket):
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(Bucket, "mark", crash)
        with pytest.raises(Crash):
            buckets.reconcile(call, wanted, NO_CLUSTER)
    assert bucket.look() is BucketState.UNMARKED
    getattr(buckets, then)(call, wanted, NO_CLUSTER)
    assert bucket.look() is (BucketState.OURS if then == "reconcile" else BucketState.NOTHING)


@pytest.mark.parametrize("tagged", [True, False])
def test_a_bucket_of_another_owner_is_an_error_and_stays(
    buckets, call, wanted, s3, namespace, tagged
):
    make_foreign(s3, namespace)
    if not tagged:
        s3.request("delete_bucket_tagging", Bucket=namespace)
    put(s3, namespace, "theirs")
    with pytest.raises(ConfigurationError, match=f"BackupBucket {namespace}: metadata.name: there"):
        buckets.reconcile(call, wanted, NO_CLUSTER)
    assert list(buckets.external_resources(wanted)) == []
    buckets.delete(call, wanted, NO_CLUSTER)
    assert keys(s3, namespace) == ["theirs"]


def test_a_bucket_that_lost_its_mark_is_neither_taken_up_nor_deleted(
    buckets, call, wanted, s3, namespace
):
    buckets.reconcile(call, wanted, NO_CLUSTER)
    put(s3, namespace, "entry/backup")
    s3.request("delete_bucket_tagging", Bucket=namespace)
    with pytest.raises(ConfigurationError, match="a bucket without tags"):
        buckets.reconcile(call, wanted, NO_CLUSTER)
    with pytest.raises(ActuatorError, match="has lost its tag; put it back") as error:
        buckets.delete(call, wanted, NO_CLUSTER)
    assert error.value.codes == (ErrorCode.ERR_INFRA_DEPENDENCIES,)
    assert keys(s3, namespace) == ["entry/backup"]


def test_a_name_that_another_account_has_leaves_nothing_to_delete(
    buckets, call, wanted, monkeypatch
):
    def taken(bucket):
        raise CloudError("create_bucket", "BucketAlreadyExists", "Taken.")

    monkeypatch.setattr(Bucket, "create", taken)
    with pytest.raises(CloudError) as error:
        buckets.reconcile(call, wanted, NO_CLUSTER)
    assert error.value.codes == (ErrorCode.ERR_CONFIGURATION_PROBLEM,)
    assert list(buckets.external_resources(wanted)) == []


def test_a_deleted_bucket_goes_with_everything_in_it(buckets, call, wanted, bucket, s3, namespace):
    buckets.reconcile(call, wanted, NO_CLUSTER)
    versioning = {"Status": "Enabled"}
    s3.request("put_bucket_versioning", Bucket=namespace, VersioningConfiguration=versioning)
    put(s3, namespace, "a/1", "a/1", "b/2")
    s3.request("delete_object", Bucket=namespace, Key="b/2")
    assert len(keys(s3, namespace)) == 4
    buckets.delete(call, wanted, NO_CLUSTER)
    assert bucket.look() is BucketState.NOTHING
    assert list(buckets.external_resources(wanted)) == []
    buckets.delete(call, wanted, NO_CLUSTER)


def test_a_bucket_is_deleted_once_no_entry_of_the_seed_has_backups_in_it(
    buckets, call, wanted, bucket, s3, namespace
):
    """Gardener documentation, "BackupBucket": "if there isn't any `BackupEntry`"."""
    buckets.reconcile(call, wanted, NO_CLUSTER)
    put(s3, namespace, "shoot--1--uid/etcd-main/1")
    entry = f"shoot--{namespace}--uid"
    call.client.create(ENTRIES, encode(backup_entry(namespace, entry)))
    other = backup_entry(namespace, f"other-{entry}", bucketName="another")
    call.client.create(ENTRIES, encode(other))
    with pytest.raises(ActuatorError, match=f"BackupEntry {entry} has backups in it") as error:
        buckets.delete(call, wanted, NO_CLUSTER)
    assert error.value.codes == (ErrorCode.ERR_RETRYABLE_INFRA_DEPENDENCIES,)
    assert keys(s3, namespace) == ["shoot--1--uid/etcd-main/1"]
    call.client.delete(ENTRIES, entry)
    buckets.delete(call, wanted, NO_CLUSTER)
    assert bucket.look() is BucketState.NOTHING
    call.client.delete(ENTRIES, f"other-{entry}")


def test_backups_that_the_bucket_retains_keep_the_entry_until_they_may_be_deleted(
    entries, call, s3, namespace
):
    """Gardener documentation, "Immutable Backup Buckets", "Manage deletion lifecycle"."""
    where = {"LocationConstraint": REGION}
    locked = {"CreateBucketConfiguration": where, "ObjectLockEnabledForBucket": True}
    s3.request("create_bucket", Bucket=namespace, **locked)
    held = {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": "2999-01-01T00:00:00Z"}
    key = "shoot--1--uid/1"
    s3.request("put_object", Bucket=namespace, Key=key, Body=b"x", **held)
    entry = backup_entry(namespace, "shoot--1--uid")
    with pytest.raises(CloudError, match=key):
        entries.delete(call, entry, NO_CLUSTER)
    assert keys(s3, namespace) == [key]
    ended = {"Mode": "GOVERNANCE", "RetainUntilDate": "2001-01-01T00:00:00Z"}
    s3.request(
        "put_object_retention",
        Bucket=namespace,
        Key=key,
        Retention=ended,
        BypassGovernanceRetention=True,
    )
    entries.delete(call, entry, NO_CLUSTER)
    assert keys(s3, namespace) == []


def test_an_object_never_reconciled_is_deleted_without_secret_and_cloud(buckets, admin, namespace):
    buckets.delete(Call(admin, namespace), backup_bucket(namespace), NO_CLUSTER)


def test_revoked_credentials_have_their_code_and_nothing_is_forgotten(
    buckets, call, wanted, account, namespace
):
    buckets.reconcile(call, wanted, NO_CLUSTER)
    account.delete_policy(namespace)
    with pytest.raises(CloudError, match="AccessDenied") as error:
        buckets.delete(call, wanted, NO_CLUSTER)
    assert error.value.codes == (ErrorCode.ERR_INFRA_UNAUTHORIZED,)
    assert len(list(buckets.external_resources(wanted))) == 1


@pytest.mark.parametrize("name", ["Bucket", "a_b", "ab", "-abc"])
def test_a_name_that_s3_does_not_take_is_a_problem(buckets, call, name):
    (problem,) = buckets.validate(call, backup_bucket(name), NO_CLUSTER)
    assert problem.field == "metadata.name"


def test_a_provider_config_is_a_problem(buckets, call, namespace):
    odd = backup_bucket(namespace, providerConfig={"kind": "Nonsense"})
    (problem,) = buckets.validate(call, odd, NO_CLUSTER)
    assert str(problem).startswith("spec.providerConfig: there is nothing to configure")
    assert list(buckets.validate(call, backup_bucket(namespace), NO_CLUSTER)) == []


def test_all_objects_below_a_prefix_are_deleted_and_no_others(s3, bucket, namespace):
    make_foreign(s3, namespace)
    versioning = {"Status": "Enabled"}
    s3.request("put_bucket_versioning", Bucket=namespace, VersioningConfiguration=versioning)
    put(s3, namespace, "shoot--1/etcd/1", "shoot--1/etcd/1", "shoot--1/2", "shoot--10/1", "other")
    bucket.delete_objects("shoot--1/")
    assert sorted(keys(s3, namespace)) == ["other", "shoot--10/1"]
    Bucket(s3, f"{namespace}-absent").delete_objects("shoot--1/")


def test_more_than_one_request_can_delete_is_deleted(s3, bucket, namespace, monkeypatch):
    monkeypatch.setattr("extensions.aws.bucket._AT_ONCE", 2)
    make_foreign(s3, namespace)
    put(s3, namespace, *(f"entry/{number}" for number in range(5)))
    bucket.delete_objects("entry/")
    assert keys(s3, namespace) == []


def test_an_object_that_s3_keeps_is_an_error(clouds, account, s3, namespace, shoot_key):
    make_foreign(s3, namespace)
    put(s3, namespace, "entry/1")
    account.put_policy(namespace, may("s3:ListBucketVersions"))
    seen = clouds.open(shoot_key, REGION, lambda: None, "s3")
    with pytest.raises(CloudError, match="AccessDenied: entry/1") as error:
        Bucket(seen, namespace).delete_objects("entry/")
    assert error.value.codes == (ErrorCode.ERR_INFRA_UNAUTHORIZED,)


@pytest.fixture
def entries(url) -> Any:
    return Configured(AwsBackupEntry(url))


def test_a_deleted_entry_takes_its_own_backups_and_no_others(entries, call, s3, namespace):
    make_foreign(s3, namespace)
    entry = backup_entry(namespace, "shoot--1--uid")
    entries.reconcile(call, entry, NO_CLUSTER)
    put(s3, namespace, "shoot--1--uid/etcd-main/1", "shoot--1--uid2/etcd-main/1")
    (left,) = entries.external_resources(entry)
    assert left.id == f"{namespace}/shoot--1--uid/"
    entries.migrate(call, entry, NO_CLUSTER)
    assert len(keys(s3, namespace)) == 2
    for _ in range(2):
        entries.delete(call, entry, NO_CLUSTER)
        assert keys(s3, namespace) == ["shoot--1--uid2/etcd-main/1"]


def test_the_source_of_a_migration_takes_the_same_folder_of_its_own_bucket(
    entries, call, s3, namespace
):
    """Gardener documentation, "Control Plane Migration": "make sure to manually clean up the source
    backup directory" is for a deletion that was not possible."""
    make_foreign(s3, namespace)
    put(s3, namespace, "shoot--1--uid/etcd-main/1", "source-shoot--1--uid/other")
    source = backup_entry(namespace, "source-shoot--1--uid")
    (left,) = entries.external_resources(source)
    assert left.id == f"{namespace}/shoot--1--uid/"
    entries.delete(call, source, NO_CLUSTER)
    assert keys(s3, namespace) == ["source-shoot--1--uid/other"]


def test_etcd_gets_the_credentials_with_bucket_and_region(entries, call, shoot_key, namespace):
    entry = backup_entry(namespace, f"{namespace}--uid", bucketName="bucket")
    entries.reconcile(call, entry, NO_CLUSTER)
    data = call.client.get(SECRETS, "etcd-backup", namespace)["data"]
    assert {key: base64.b64decode(value).decode() for key, value in data.items()} == {
        "accessKeyID": shoot_key.access_key_id,
        "secretAccessKey": shoot_key.secret_access_key,
        "bucketName": "bucket",
        "region": REGION,
    }
    entries.delete(call, entry, NO_CLUSTER)
    with pytest.raises(NotFound):
        call.client.get(SECRETS, "etcd-backup", namespace)


def test_an_entry_whose_bucket_is_gone_is_gone(entries, call, namespace):
    entries.delete(call, backup_entry(namespace, "shoot--1--uid"), NO_CLUSTER)


def test_revoked_credentials_keep_an_entry_with_their_code(
    entries, call, account, shoot_key, s3, namespace
):
    make_foreign(s3, namespace)
    account.set_access_key(namespace, shoot_key, active=False)
    with pytest.raises(CloudError, match="InvalidAccessKeyId") as error:
        entries.delete(call, backup_entry(namespace, "shoot--1--uid"), NO_CLUSTER)
    assert error.value.codes == (ErrorCode.ERR_INFRA_UNAUTHENTICATED,)


def test_an_entry_takes_no_provider_config(entries, call, namespace):
    odd = backup_entry(namespace, "shoot--1--uid", providerConfig={"kind": "Nonsense"})
    assert [item.field for item in entries.validate(call, odd, NO_CLUSTER)] == [
        "spec.providerConfig"
    ]
