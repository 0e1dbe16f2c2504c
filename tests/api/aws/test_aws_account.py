"""The account of AWS credentials: of a shoot's Secret, and of the user who verifies Orphans."""

from typing import Any

import pytest

from extensions.aws.bastion import AwsBastion
from extensions.aws.dnsrecord import AwsDnsRecord
from extensions.aws.infrastructure import AwsInfrastructure
from generic.kube.clock import SystemClock
from generic.manager.orphans.verification import verify
from generic.reconciler.origin import DeletionOrigin
from generic.reconciler.orphans.kind import Orphan, OrphanedFrom, OrphanSpec
from tests.support.aws.objects import bastion, dns_record, infrastructure, shoot_cluster

ACCOUNT = "123456789012"


@pytest.fixture
def of_user(key, monkeypatch):
    """The credentials of the command's user, in the environment."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key.access_key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key.secret_access_key)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.mark.parametrize(
    ("actuator", "made"),
    [(AwsInfrastructure, infrastructure), (AwsBastion, bastion), (AwsDnsRecord, dns_record)],
)
def test_the_account_is_that_of_the_objects_credentials(url, call, namespace, actuator, made):
    found = actuator(url).cloud_account(call, made(namespace), shoot_cluster(namespace, []))
    assert found == ACCOUNT


def orphan(in_account):
    origin = DeletionOrigin(account=in_account)
    former = OrphanedFrom(
        api_version="extensions.gardener.cloud/v1alpha1",
        kind="Infrastructure",
        name="infra",
        uid="1",
        type="aws",
        origin=origin,
    )
    spec = OrphanSpec(
        resource_type="AWS::EC2::VPC", id="vpc-00000000000000000", region="eu-west-1", object=former
    )
    return Orphan(spec=spec)


def test_credentials_of_another_account_are_refused_and_nothing_is_recorded(url, of_user):
    from generic.manager.manager import Manager

    manager = Manager()
    manager.add(AwsInfrastructure(url), type="aws")
    writes_nothing: Any = object()
    (finding,) = verify(
        writes_nothing, [orphan("999999999999")], manager.registrations, SystemClock()
    )
    assert "the resource is in account 999999999999" in finding.problem
    assert f"belong to account {ACCOUNT}" in finding.problem
    assert finding.orphan.is_open


def test_credentials_of_the_same_account_are_asked(url, of_user):
    actuator = AwsInfrastructure(url)
    assert actuator.verifying_account() == ACCOUNT
