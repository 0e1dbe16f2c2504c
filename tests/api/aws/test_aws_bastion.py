"""Bastion on (simulated) EC2: an instance in the shoot's network, made once, deleted whole."""

from __future__ import annotations

import base64
from contextlib import suppress
from typing import Any

import pytest

from actuator import ActuatorError, ConfigurationError, ErrorCode, RequeueAfter
from extensions.aws.bastion import AwsBastion
from extensions.aws.cloud import Cloud
from extensions.aws.config import API_VERSION
from extensions.aws.host import Host
from extensions.aws.infrastructure import AwsInfrastructure
from extensions.aws.tags import as_dict, bastion_mark, filters
from tests.support.aws.objects import (
    REGION,
    Call,
    bastion,
    infrastructure,
    provider_config,
    shoot_cluster,
)
from tests.support.objects.configured import Configured
from tests.support.objects.present import present

AMI = "ami-12c6146b"
IMAGES = [
    {
        "name": "gardenlinux",
        "versions": [
            {"version": "1.0.0", "regions": [{"name": "us-east-1", "ami": "ami-0"}]},
            {"version": "2.0.0", "regions": [{"name": REGION, "ami": AMI, "odd": 1}]},
        ],
    }
]


@pytest.fixture
def bastions(url) -> Any:
    return Configured(AwsBastion(url))


@pytest.fixture
def cluster(namespace):
    return shoot_cluster(namespace, IMAGES)


@pytest.fixture
def network(url, call, namespace, cluster) -> dict:
    """The shoot's network, as its Infrastructure reports it."""
    infra = infrastructure(namespace)
    Configured(AwsInfrastructure(url)).reconcile(call, infra, cluster)
    call.saved.clear()
    return present(infra.status.provider_status)["vpc"]


def instances(ec2, namespace) -> list[dict]:
    by_tag = filters(bastion_mark(namespace, "shoot"))
    found = ec2.items("describe_instances", "Reservations", Filters=by_tag)
    every = [instance for reservation in found for instance in reservation["Instances"]]
    return [item for item in every if item["State"]["Name"] != "terminated"]


def groups(ec2, namespace) -> list[dict]:
    by_tag = filters(bastion_mark(namespace, "shoot"))
    return ec2.items("describe_security_groups", "SecurityGroups", Filters=by_tag)


def ranges(ec2, namespace) -> set[tuple[str, int]]:
    (group,) = groups(ec2, namespace)
    return {
        (ip_range.get("CidrIp") or ip_range["CidrIpv6"], rule["FromPort"])
        for rule in group["IpPermissions"]
        for ip_range in (*rule["IpRanges"], *rule["Ipv6Ranges"])
    }


def patiently(act, *given) -> None:
    """As often as it asks for another look."""
    said: list[str] = []
    for _ in range(5):
        try:
            return act(*given)
        except RequeueAfter as later:
            said.append(str(later))
    raise AssertionError(f"it never ends: {said}")


def reconcile(bastions, *given) -> None:
    patiently(bastions.reconcile, *given)


def delete(bastions, *given) -> None:
    patiently(bastions.delete, *given)


def test_a_bastion_runs_in_the_shoots_public_subnet_and_is_made_once(
    bastions, call, network, cluster, ec2, namespace
):
    obj = bastion(namespace, "198.51.100.0/24", "2001:db8::/64")
    reconcile(bastions, call, obj, cluster)
    reconcile(bastions, call, obj, cluster)
    (instance,) = instances(ec2, namespace)
    public = next(subnet for subnet in network["subnets"] if subnet["purpose"] == "public")
    assert instance["SubnetId"] == public["id"]
    assert (instance["ImageId"], instance["InstanceType"]) == (AMI, "t3.micro")
    assert as_dict(instance)["Name"] == f"{namespace}-bastion-shoot"
    (group,) = groups(ec2, namespace)
    inside = {group["GroupId"] for group in instance["NetworkInterfaces"][0]["Groups"]}
    assert inside == {group["GroupId"], network["securityGroups"][0]["id"]}
    assert ranges(ec2, namespace) == {("198.51.100.0/24", 22), ("2001:db8::/64", 22)}
    assert present(obj.status.ingress).ip == instance["PublicIpAddress"]
    assert obj.status.provider_status == obj.status.state
    left = [
        (external_resource.type, external_resource.id, external_resource.region)
        for external_resource in bastions.external_resources(obj)
    ]
    assert left == [
        ("AWS::EC2::Instance", instance["InstanceId"], REGION),
        ("AWS::EC2::SecurityGroup", group["GroupId"], REGION),
    ]
    assert len(call.saved) == 1


def test_it_runs_the_user_data(bastions, call, network, cluster, ec2, namespace):
    reconcile(bastions, call, bastion(namespace), cluster)
    (instance,) = instances(ec2, namespace)
    answer = ec2.request(
        "describe_instance_attribute", InstanceId=instance["InstanceId"], Attribute="userData"
    )
    assert base64.b64decode(answer["UserData"]["Value"]) == b"#!/bin/sh\n"


def test_image_and_machine_type_can_be_configured(bastions, call, network, ec2, namespace):
    config = {"apiVersion": API_VERSION, "kind": "BastionConfig"}
    config |= {"ami": "ami-1812c061", "machineType": "t3.small"}
    obj = bastion(namespace, providerConfig=config)
    reconcile(bastions, call, obj, shoot_cluster(namespace))
    (instance,) = instances(ec2, namespace)
    assert (instance["ImageId"], instance["InstanceType"]) == ("ami-1812c061", "t3.small")


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (None, r"the CloudProfile has no AMI of machine image"),
        ({"kind": "Nonsense"}, r"set apiVersion .* and kind BastionConfig"),
        ({"nonsense": True}, r"spec.providerConfig: .*nonsense"),
    ],
)
def test_a_bastion_that_cannot_work_is_a_configuration_problem(
    bastions, call, network, ec2, namespace, config, said
):
    obj = bastion(namespace, providerConfig=config) if config else bastion(namespace)
    with pytest.raises(ConfigurationError, match=f"(?i)Bastion {namespace}/shoot: .*{said}"):
        bastions.reconcile(call, obj, shoot_cluster(namespace))
    assert list(bastions.external_resources(obj)) == []


def test_ranges_no_longer_requested_are_removed(bastions, call, network, cluster, ec2, namespace):
    reconcile(bastions, call, bastion(namespace, "198.51.100.0/24", "192.0.2.0/24"), cluster)
    reconcile(bastions, call, bastion(namespace, "192.0.2.0/24", "203.0.113.7/32"), cluster)
    assert ranges(ec2, namespace) == {("192.0.2.0/24", 22), ("203.0.113.7/32", 22)}


def test_ranges_are_let_in_once_and_as_ec2_writes_them(
    bastions, call, network, cluster, ec2, namespace, monkeypatch
):
    given = ("192.0.2.7/24", "192.0.2.0/24", "2001:DB8:0::1/64", "2001:db8::/64")
    obj = bastion(namespace, *given)
    reconcile(bastions, call, obj, cluster)
    assert ranges(ec2, namespace) == {("192.0.2.0/24", 22), ("2001:db8::/64", 22)}
    requests = []
    request = Cloud.request

    def recorded(cloud, operation, *arguments, **parameters):
        requests.append(operation)
        return request(cloud, operation, *arguments, **parameters)

    monkeypatch.setattr(Cloud, "request", recorded)
    reconcile(bastions, call, obj, cluster)
    assert not [name for name in requests if "ingress" in name], "the same ranges are no change"


def test_without_a_network_the_error_names_the_infrastructure(
    bastions, call, cluster, namespace, ec2
):
    obj = bastion(namespace)
    with pytest.raises(ActuatorError, match="its Infrastructure has to be ready first") as error:
        bastions.reconcile(call, obj, cluster)
    assert error.value.codes == (ErrorCode.ERR_RETRYABLE_INFRA_DEPENDENCIES,)
    assert list(bastions.external_resources(obj)) == []


def test_a_crash_after_the_creation_creates_nothing_twice(
    bastions, call, network, cluster, ec2, namespace, monkeypatch
):
    class Crash(BaseException):
        pass

    ensure = Host.ensure_instance

    def crash(*given):
        ensure(*given)
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(Host, "ensure_instance", crash)
        with pytest.raises(Crash):
            bastions.reconcile(call, bastion(namespace), cluster)
    again = bastion(namespace)  # only what was saved got into the API server
    again.status.provider_status = call.saved[0]["providerStatus"]
    by_tag = list(bastions.external_resources(again))
    assert {(resource.id, tuple(resource.tags)) for resource in by_tag} == {
        ("", tuple(bastion_mark(namespace, "shoot")))
    }
    reconcile(bastions, call, again, cluster)
    assert len(instances(ec2, namespace)) == len(groups(ec2, namespace)) == 1


def test_a_deleted_bastion_leaves_nothing_and_the_network_alone(
    bastions, call, network, cluster, ec2, namespace
):
    obj = bastion(namespace)
    reconcile(bastions, call, obj, cluster)
    delete(bastions, call, obj, cluster)
    assert instances(ec2, namespace) == groups(ec2, namespace) == []
    assert list(bastions.external_resources(obj)) == []
    delete(bastions, call, obj, cluster)
    nodes = network["securityGroups"][0]["id"]
    assert ec2.request("describe_security_groups", GroupIds=[nodes])["SecurityGroups"]


def test_another_bastion_is_not_touched(bastions, call, network, cluster, ec2, namespace):
    other = bastion(namespace)
    reconcile(bastions, call, other, cluster)
    raw = bastion(namespace)
    mine = type(raw)(metadata=type(raw.metadata)(name="mine", namespace=namespace), spec=raw.spec)
    reconcile(bastions, call, mine, cluster)
    delete(bastions, call, mine, cluster)
    assert len(instances(ec2, namespace)) == 1


def test_an_instance_that_is_still_running_is_waited_for(
    bastions, call, network, cluster, namespace, monkeypatch
):
    obj = bastion(namespace)
    reconcile(bastions, call, obj, cluster)
    still = present(obj.status.provider_status)["instanceId"]
    monkeypatch.setattr(Host, "terminate", lambda host: [still])
    with pytest.raises(RequeueAfter, match=f"Waiting for instance {still} to terminate"):
        bastions.delete(call, obj, cluster)


def test_an_object_never_created_is_deleted_without_secret_and_cloud(bastions, admin, namespace):
    bastions.delete(Call(admin, namespace), bastion(namespace), shoot_cluster(namespace))


def test_a_forced_deletion_needs_no_cloud_and_forgets_nothing(
    bastions, call, network, cluster, account, ec2, namespace
):
    obj = bastion(namespace)
    reconcile(bastions, call, obj, cluster)
    account.delete_policy(namespace)
    with pytest.raises(ActuatorError) as error:
        bastions.delete(call, obj, cluster)
    assert error.value.codes == (ErrorCode.ERR_INFRA_UNAUTHORIZED,)
    bastions.force_delete(call, obj, cluster)
    assert {external_resource.id for external_resource in bastions.external_resources(obj)} == {
        instances(ec2, namespace)[0]["InstanceId"],
        groups(ec2, namespace)[0]["GroupId"],
    }


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (
            {"cidr": "anywhere"},
            "spec.ingress[0].ipBlock.cidr: expected a range such as 203.0.113.0/24 or ",
        ),
        (
            {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]},
            "spec.ingress[0].ipBlock.except: ranges cannot be excluded; list the ranges to allow",
        ),
    ],
)
def test_ranges_that_cannot_be_let_in_are_problems(bastions, call, namespace, block, said):
    odd = bastion(namespace, ingress=[{"ipBlock": block}])
    (problem,) = bastions.validate(call, odd, shoot_cluster(namespace))
    assert str(problem).startswith(said)
    assert list(bastions.validate(call, bastion(namespace), shoot_cluster(namespace))) == []


def test_an_infrastructure_that_goes_takes_no_bastion_with_it(
    bastions, url, call, network, cluster, ec2, namespace
):
    reconcile(bastions, call, bastion(namespace), cluster)
    infra = infrastructure(namespace, providerConfig=provider_config())
    infra.status.state = {"vpc": network}
    with suppress(ActuatorError):  # AWS refuses as long as the instance is in the network
        Configured(AwsInfrastructure(url)).delete(call, infra, cluster)
    assert len(instances(ec2, namespace)) == len(groups(ec2, namespace)) == 1
