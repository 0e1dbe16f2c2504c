"""The AWS infrastructure survives a kill after each request that changes something, and each save.

After every kill, what the saved status reports as external resources is what the simulated cloud
holds. What happens before such a request is the same as after the one before it.
"""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from aws_objects import REGION, Call, infrastructure, shoot_cluster

from actuator.codec import decode, encode
from actuator.meta import Raw
from actuator.v1alpha1 import Infrastructure
from extensions.aws import AwsInfrastructure
from extensions.aws.cloud import Cloud
from extensions.aws.inventory import everything

RESOURCES = ["SecurityGroup", "Subnet", "Subnet", "Subnet", "VPC"]


class Killed(BaseException):
    pass


@attrs.define
class Mortal(Call):
    """A Context whose saves persist, for a process that dies after the first change."""

    stored: Raw = attrs.field(factory=dict)

    def save(self, obj: Any) -> None:
        if (status := encode(obj.status)) != self.stored:
            self.stored = status
            raise Killed


@pytest.fixture
def mortal(call, namespace, monkeypatch) -> Mortal:
    request = Cloud.request

    def change(cloud: Cloud, operation: str, **parameters: Any) -> Raw:
        answer = request(cloud, operation, **parameters)
        if operation.startswith(("create", "delete", "authorize")):
            raise Killed
        return answer

    monkeypatch.setattr(Cloud, "request", change)
    return Mortal(call.client, namespace)


@pytest.fixture
def held(account, namespace):
    """Returns type, id and name of what the simulated cloud holds for the shoot."""
    return lambda: {
        (one.type, one.id, one.tags["Name"])
        for one in everything(account, REGION)
        if f"kubernetes.io/cluster/{namespace}" in one.tags
    }


def object_of(mortal: Mortal) -> Infrastructure:
    obj = encode(infrastructure(mortal.namespace))
    return decode(Infrastructure, {**obj, "status": mortal.stored})


def differences(actuator: AwsInfrastructure, mortal: Mortal, there: set) -> list[str]:
    """Compare what the saved status reports with what exists."""
    reported = list(actuator.external_resources(object_of(mortal)))
    by_id = {(one.type, one.id, one.tags["Name"]) for one in reported if one.id}
    by_tag = {(one.type, one.tags["Name"]) for one in reported if not one.id}
    pending = {one for one in there - by_id if (one[0], one[2]) in by_tag}
    gone = by_id - there
    unreported = [f"not reported: {one}" for one in there - by_id - pending]
    in_flight = len(gone) + len(by_tag) - len(pending)
    return unreported + ([f"do not exist: {gone} {by_tag}"] if in_flight > 1 else [])


def run_to_the_end(actuator, mortal, held, operation: str) -> int:
    """Run the operation in one process after the other; return how many died."""
    cluster = shoot_cluster(mortal.namespace)
    for deaths in range(40):
        obj = object_of(mortal)
        try:
            getattr(actuator, operation)(mortal, obj, cluster)
        except Killed:
            assert differences(actuator, mortal, held()) == []
        else:
            mortal.stored = encode(obj.status)
            return deaths
    raise AssertionError(f"{operation} does not end")


def test_no_kill_leaks_or_repeats_a_resource_and_the_status_reports_what_exists(url, mortal, held):
    actuator = AwsInfrastructure(url)
    assert run_to_the_end(actuator, mortal, held, "reconcile") == 5 + 5 + 1
    made = held()
    assert sorted(type.rpartition("::")[2] for type, _, _ in made) == RESOURCES
    assert {one.id for one in actuator.external_resources(object_of(mortal))} == {
        id for _, id, _ in made
    }
    assert run_to_the_end(actuator, mortal, held, "migrate") == 0
    assert held() == made
    assert run_to_the_end(actuator, mortal, held, "restore") == 0
    assert held() == made
    assert run_to_the_end(actuator, mortal, held, "delete") >= 5
    assert held() == set()
    assert list(actuator.external_resources(object_of(mortal))) == []


def test_a_status_that_does_not_report_what_exists_is_noticed(url, mortal, held):
    actuator = AwsInfrastructure(url)
    there = {("AWS::EC2::VPC", "vpc-1", mortal.namespace)}
    assert len(differences(actuator, mortal, there)) == 1
