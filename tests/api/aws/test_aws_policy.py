"""The policy: no right is missing, none is there for nothing."""

from __future__ import annotations

from contextlib import suppress

import pytest

from actuator import Actuator, Cluster, RequeueAfter
from extensions.aws.backupbucket import AwsBackupBucket
from extensions.aws.bastion import AwsBastion
from extensions.aws.cloud import Cloud
from extensions.aws.config import API_VERSION
from extensions.aws.controlplane import AwsControlPlane
from extensions.aws.dnsrecord import AwsDnsRecord
from extensions.aws.infrastructure import AwsInfrastructure
from extensions.aws.policy import ACTIONS
from extensions.aws.seed import TargetGroupBinding
from generic.kube.crds import crd
from generic.testing.seed import install_crds
from tests.support.aws.objects import (
    backup_bucket,
    bastion,
    control_plane,
    dns_record,
    infrastructure,
    shoot_cluster,
)
from tests.support.objects.configured import Configured

NAMED_OTHERWISE = {
    "s3:ListObjectVersions": "s3:ListBucketVersions",
    "s3:DeleteObjects": "s3:DeleteObject",
}
WITHOUT_A_REQUEST = {
    "ec2:CreateTags",
    "iam:PassRole",
    "iam:TagInstanceProfile",
    "iam:TagRole",
    "s3:DeleteObjectVersion",
}
"""They go with requests that are named otherwise."""

BASTION = {"apiVersion": API_VERSION, "kind": "BastionConfig", "ami": "ami-12c6146b"}


@pytest.fixture
def asked(monkeypatch) -> set[str]:
    """The actions of all requests to AWS."""
    found: set[str] = set()
    answer = Cloud.answer

    def note(cloud, operation, send):
        service = cloud._client().meta.service_model.service_name
        action = f"{service}:{''.join(word.capitalize() for word in operation.split('_'))}"
        found.add(NAMED_OTHERWISE.get(action, action))
        return answer(cloud, operation, send)

    monkeypatch.setattr(Cloud, "answer", note)
    return found


def patiently(actuator: Actuator, operation: str, call, obj, cluster) -> None:
    for _ in range(3):
        with suppress(RequeueAfter):
            getattr(actuator, operation)(call, obj, cluster)
            return


def damage(ec2: Cloud, ids: dict[str, str]) -> None:
    """Remove rules and a route, without `request`, which notes the actions."""
    group, table = ids["NodesSecurityGroup"], ids["Zones/eu-west-1a/ZoneRouteTable"]
    rules = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
    as_admin = ec2._client()
    as_admin.revoke_security_group_egress(GroupId=group, IpPermissions=rules)
    route = {"RouteTableId": table, "DestinationCidrBlock": "0.0.0.0/0"}
    as_admin.replace_route(**route, GatewayId=ids["InternetGateway"])


def test_it_allows_exactly_the_actions_that_are_requested(
    url, admin, call, namespace, route53, s3, ec2, asked
):
    install_crds(admin, [crd(TargetGroupBinding)])
    zone = {"Name": f"{namespace}.test", "CallerReference": namespace}
    route53._client().create_hosted_zone(**zone)
    cluster: Cluster = shoot_cluster(namespace)
    network = Configured(AwsInfrastructure(url))
    hosts = Configured(AwsBastion(url))
    infra = infrastructure(namespace)
    way_in = bastion(namespace, "192.0.2.0/24", providerConfig=BASTION)
    bucket = backup_bucket(namespace)
    steps = [
        (network, infra),
        (Configured(AwsControlPlane(url)), control_plane(namespace)),
        (Configured(AwsBackupBucket(url)), bucket),
        (Configured(AwsDnsRecord(url)), dns_record(namespace)),
        (hosts, way_in),
    ]
    for actuator, obj in steps:
        patiently(actuator, "reconcile", call, obj, cluster)
    damage(ec2, (infra.status.state or {})["data"])
    patiently(network, "reconcile", call, infra, cluster)
    s3._client().put_object(Bucket=namespace, Key="backup", Body=b"x")
    patiently(hosts, "reconcile", call, bastion(namespace, providerConfig=BASTION), cluster)
    for actuator, obj in reversed(steps):
        patiently(actuator, "delete", call, obj, cluster)
    assert asked | WITHOUT_A_REQUEST == set(ACTIONS)
