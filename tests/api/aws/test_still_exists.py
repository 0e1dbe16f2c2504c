"""Resources left in the (simulated) cloud by a force deletion: existing, gone, or unknown."""

from __future__ import annotations

import attrs
import pytest

from actuator import ActuatorError, ErrorCode, ExternalResource, RequeueAfter
from extensions.aws import iam, tags
from extensions.aws.backupbucket import AwsBackupBucket
from extensions.aws.backupentry import AwsBackupEntry
from extensions.aws.bastion import AwsBastion
from extensions.aws.controlplane import AwsControlPlane
from extensions.aws.dnsrecord import AwsDnsRecord
from extensions.aws.ec2 import INSTANCE as EC2_INSTANCE
from extensions.aws.ec2 import TYPES, Marked
from extensions.aws.infrastructure import AwsInfrastructure
from extensions.aws.seed import TargetGroupBinding
from extensions.aws.worker import AwsWorker
from generic.kube.crds import crd
from generic.testing.seed import install_crds
from tests.support.aws.objects import (
    REGION,
    backup_bucket,
    backup_entry,
    bastion,
    control_plane,
    dns_record,
    infrastructure,
    shoot_cluster,
    worker,
)
from tests.support.objects.configured import Configured

VPC = "AWS::EC2::VPC"
INSTANCE = "AWS::EC2::Instance"
BUCKET = "AWS::S3::Bucket"
READ_ONLY = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Action": [
                "ec2:Describe*",
                "iam:Get*",
                "route53:ListResourceRecordSets",
                "s3:GetBucketTagging",
                "s3:ListBucketVersions",
            ],
            "Resource": "*",
        }
    ],
}
IMAGES = [
    {
        "name": "gardenlinux",
        "versions": [{"version": "1.0.0", "regions": [{"name": REGION, "ami": "ami-12c6146b"}]}],
    }
]


@pytest.fixture
def operator(account, monkeypatch, shoot):
    """Runs the command with credentials of its own, in the environment: they may only look."""

    def is_(credentials):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", credentials.access_key_id)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", credentials.secret_access_key)

    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    is_(account.create_user(f"{shoot}-operator", READ_ONLY))
    return is_


def vpc(id="", region=REGION, **owner) -> ExternalResource:
    return ExternalResource(type=VPC, id=id, tags=owner, region=region)


def eventually_done(act, *given) -> None:
    for _ in range(5):
        try:
            act(*given)
        except RequeueAfter:
            continue
        return
    raise AssertionError(f"{act} never ends")


def resources(actuator, obj) -> list[ExternalResource]:
    return list(actuator.external_resources(obj))


def by_tags_alone(left: list[ExternalResource]) -> list[ExternalResource]:
    """As they are recorded where the ids were never stored."""
    return [attrs.evolve(resource, id="") for resource in left if resource.tags]


def answers(actuator, left: list[ExternalResource]) -> set[bool | None]:
    return {actuator.still_exists(item) for item in left}


def test_a_network_and_a_bastion_are_found_by_id_and_by_tag_until_they_are_gone(
    url, call, namespace, operator
):
    cluster = shoot_cluster(namespace, IMAGES)
    network = Configured(AwsInfrastructure(url))
    infra = infrastructure(namespace)
    hosts = Configured(AwsBastion(url))
    way_in = bastion(namespace)
    network.reconcile(call, infra, cluster)
    eventually_done(hosts.reconcile, call, way_in, cluster)
    of_network = resources(network, infra)
    of_bastion = resources(hosts, way_in)
    assert {item.type.rpartition("::")[2] for item in (*of_network, *of_bastion)} == {
        *(type.name.rpartition("::")[2] for type in (*TYPES, *iam.TYPES)),
    }
    by_id_and_tag = [*of_network, *by_tags_alone(of_network)]
    assert answers(network, by_id_and_tag) == {True}
    assert answers(hosts, [*of_bastion, *by_tags_alone(of_bastion)]) == {True}

    eventually_done(hosts.delete, call, way_in, cluster)
    assert answers(hosts, [*of_bastion, *by_tags_alone(of_bastion)]) == {False}
    assert answers(network, by_id_and_tag) == {True}
    network.delete(call, infra, cluster)
    assert answers(network, by_id_and_tag) == {False}


def test_an_address_is_found_by_id_and_by_tag_until_it_is_gone(
    url, admin, call, namespace, operator, account
):
    install_crds(admin, [crd(TargetGroupBinding)])
    actuator = Configured(AwsControlPlane(url))
    obj = control_plane(namespace)
    actuator.reconcile(call, obj, shoot_cluster(namespace))
    left = resources(actuator, obj)
    assert answers(actuator, [*left, *by_tags_alone(left)]) == {True}
    account.service("ec2", REGION).remove("release_address", AllocationId=left[0].id)
    assert answers(actuator, [*left, *by_tags_alone(left)]) == {False}


def test_a_record_and_its_comment_are_there_until_they_or_their_zone_are_gone(
    url, call, namespace, operator, route53
):
    name = f"{namespace}.test"
    zone = route53.request("create_hosted_zone", Name=name, CallerReference=name)
    zone_id = zone["HostedZone"]["Id"].rpartition("/")[2]
    actuator = Configured(AwsDnsRecord(url))
    cluster = shoot_cluster(namespace)
    obj = dns_record(namespace, name=f"*.Ingress.{name}")
    actuator.reconcile(call, obj, cluster)
    left = resources(actuator, obj)
    assert len(left) == 2
    assert answers(actuator, left) == {True}
    actuator.delete(call, obj, cluster)
    assert answers(actuator, left) == {False}
    route53.request("delete_hosted_zone", Id=zone_id)
    assert answers(actuator, left) == {False}


def test_backups_and_their_bucket_are_there_until_they_are_gone(url, call, namespace, s3, operator):
    cluster = shoot_cluster(namespace)
    buckets = Configured(AwsBackupBucket(url))
    bucket = backup_bucket(namespace)
    entries = Configured(AwsBackupEntry(url))
    entry = backup_entry(namespace, f"{namespace}--1")
    buckets.reconcile(call, bucket, cluster)
    s3.request("put_object", Bucket=namespace, Key=f"{namespace}--1/a", Body=b"x")
    s3.request("put_object", Bucket=namespace, Key=f"{namespace}--10/a", Body=b"x")
    of_bucket = resources(buckets, bucket)
    of_entry = resources(entries, entry)
    assert answers(buckets, of_bucket) | answers(entries, of_entry) == {True}
    s3.request("delete_object", Bucket=namespace, Key=f"{namespace}--1/a")
    assert answers(entries, of_entry) == {False}, "a neighbour's prefix is another one"
    buckets.delete(call, bucket, cluster)
    assert answers(buckets, of_bucket) | answers(entries, of_entry) == {False}


def test_a_bucket_with_tags_of_another_owner_is_unknown(url, namespace, s3, operator):
    where = {"LocationConstraint": REGION}
    s3.request("create_bucket", Bucket=namespace, CreateBucketConfiguration=where)
    left = ExternalResource(type=BUCKET, id=namespace, region=REGION)
    assert Configured(AwsBackupBucket(url)).still_exists(left) is True
    tagging = {"TagSet": tags.as_list({"team": "other"})}
    s3.request("put_bucket_tagging", Bucket=namespace, Tagging=tagging)
    assert Configured(AwsBackupBucket(url)).still_exists(left) is None


def test_machines_are_there_until_the_last_one_is_terminated(url, namespace, ec2, operator):
    actuator = Configured(AwsWorker(url))
    obj = worker(namespace)
    obj.status.state = {"machines": 1}
    (left,) = actuator.external_resources(obj)
    assert actuator.still_exists(left) is False
    answer = Marked(ec2, left.tags).create(
        "run_instances",
        EC2_INSTANCE,
        "machine",
        ImageId="ami-12c6146b",
        MinCount=1,
        MaxCount=1,
    )
    assert actuator.still_exists(left) is True
    ec2.request("terminate_instances", InstanceIds=[answer["Instances"][0]["InstanceId"]])
    assert actuator.still_exists(left) is False, "AWS still describes it, as terminated"


@pytest.mark.parametrize(
    "left",
    [
        pytest.param(ExternalResource(type="unknown"), id="unknown"),
        pytest.param(ExternalResource(type="AWS::IAM::User", id="u", region=REGION), id="type"),
        pytest.param(vpc(), id="neither id nor tags"),
        pytest.param(vpc("vpc-1", region=""), id="no region"),
    ],
)
def test_a_resource_that_cannot_be_looked_up_is_unknown(url, left):
    assert Configured(AwsInfrastructure(url)).still_exists(left) is None


def test_an_id_that_never_was_does_not_exist(url, operator):
    assert Configured(AwsInfrastructure(url)).still_exists(vpc("vpc-00000000000000000")) is False


def refusal(url, left=None) -> ActuatorError:
    with pytest.raises(ActuatorError) as error:
        Configured(AwsInfrastructure(url)).still_exists(left or vpc("vpc-1"))
    return error.value


def test_without_rights_it_is_an_error_and_not_gone(url, operator, account, shoot):
    nothing = {"Effect": "Deny", "Action": "*", "Resource": "*"}
    operator(account.create_user(shoot, {"Version": "2012-10-17", "Statement": [nothing]}))
    assert refusal(url).codes == (ErrorCode.ERR_INFRA_UNAUTHORIZED,)


def test_revoked_credentials_are_an_error_and_not_gone(url, operator, account, shoot):
    revoked = account.create_user(shoot, READ_ONLY)
    account.set_access_key(shoot, revoked, active=False)
    operator(revoked)
    error = refusal(url)
    assert error.codes == (ErrorCode.ERR_INFRA_UNAUTHENTICATED,)
    assert revoked.secret_access_key not in error.message


def test_missing_credentials_are_an_error_that_names_them(url, operator, monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    error = refusal(url)
    assert error.codes == (ErrorCode.ERR_INFRA_UNAUTHENTICATED,)
    assert "credentials" in error.message


def test_a_profile_that_is_not_there_is_an_error_that_names_it(url, operator, monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "nowhere")
    assert "nowhere" in refusal(url).message


def test_a_cloud_that_does_not_answer_is_an_error_and_not_gone(operator):
    error = refusal("http://127.0.0.1:1")
    assert error.codes == (ErrorCode.ERR_RETRYABLE_INFRA_DEPENDENCIES,)
