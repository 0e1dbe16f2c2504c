"""The AWS infrastructure survives a kill after each request that changes something, and each save.

After every kill, the saved status reports exactly the external resources in the simulated cloud.
A kill before such a request has the same effect as one after the previous request.
"""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from actuator.codec import decode, encode
from actuator.meta import Raw
from actuator.v1alpha1 import Infrastructure
from extensions.aws.cloud import Cloud
from extensions.aws.infrastructure import AwsInfrastructure
from extensions.aws.inventory import everything
from tests.support.aws.objects import REGION, RESOURCES, Call, infrastructure, shoot_cluster
from tests.support.objects.configured import Configured

CHANGES = 12
"""Attributes, options, gateway, rules of two security groups, two routes, three associations,
a policy, a role of a profile."""
LOOKS = ("describe", "get", "list")
"""The first words of requests that change nothing."""


class Killed(BaseException):
    pass


@attrs.define
class CrashingCall(Call):
    """A Context whose saves persist, for a process that dies after the first change."""

    stored: Raw = attrs.field(factory=dict)

    def save(self, obj: Any) -> None:
        if (status := encode(obj.status)) != self.stored:
            self.stored = status
            raise Killed


@pytest.fixture
def crashing_call(call, namespace, monkeypatch) -> CrashingCall:
    request = Cloud.request
    killed_at = []  # only once: AWS deletes a key pair again and again

    def change(cloud: Cloud, operation: str, **parameters: Any) -> Raw:
        answer = request(cloud, operation, **parameters)
        sent = (operation, parameters)
        if not operation.startswith(LOOKS) and sent not in killed_at:
            killed_at.append(sent)
            raise Killed
        return answer

    monkeypatch.setattr(Cloud, "request", change)
    return CrashingCall(call.client, namespace)


@pytest.fixture
def held(account, namespace):
    """Returns type, id and name of the shoot's resources in the simulated cloud."""
    return lambda: {
        (resource.type, resource.id, resource.tags["Name"])
        for resource in everything(account, REGION)
        if f"kubernetes.io/cluster/{namespace}" in resource.tags
    }


def object_of(crashing_call: CrashingCall) -> Infrastructure:
    obj = encode(infrastructure(crashing_call.namespace))
    return decode(Infrastructure, {**obj, "status": crashing_call.stored})


def differences(actuator: Configured, crashing_call: CrashingCall, there: set) -> list[str]:
    """Compare the resources in the saved status with the existing ones."""
    reported = list(actuator.external_resources(object_of(crashing_call)))
    by_id = {
        (resource.type, resource.id, resource.tags["Name"]) for resource in reported if resource.id
    }
    by_tag = {(resource.type, resource.tags["Name"]) for resource in reported if not resource.id}
    pending = {item for item in there - by_id if (item[0], item[2]) in by_tag}
    gone = by_id - there
    unreported = [f"not reported: {item}" for item in there - by_id - pending]
    in_flight = len(gone) + len(by_tag) - len(pending)
    return unreported + ([f"do not exist: {gone} {by_tag}"] if in_flight > 1 else [])


def run_to_the_end(actuator, crashing_call, held, operation: str) -> int:
    """Run the operation in one process after the other; return how many died."""
    cluster = shoot_cluster(crashing_call.namespace)
    for deaths in range(100):
        obj = object_of(crashing_call)
        try:
            getattr(actuator, operation)(crashing_call, obj, cluster)
        except Killed:
            assert differences(actuator, crashing_call, held()) == []
        else:
            crashing_call.stored = encode(obj.status)
            return deaths
    raise AssertionError(f"{operation} does not end")


def test_no_kill_leaks_or_repeats_a_resource_and_the_status_reports_each(url, crashing_call, held):
    actuator = Configured(AwsInfrastructure(url))
    deaths = run_to_the_end(actuator, crashing_call, held, "reconcile")
    assert deaths == 2 * len(RESOURCES) + CHANGES, "a save and a request for each, and changes"
    made = held()
    assert sorted(type.rpartition("::")[2] for type, _, _ in made) == RESOURCES
    assert {
        external_resource.id
        for external_resource in actuator.external_resources(object_of(crashing_call))
    } == {id for _, id, _ in made}
    assert run_to_the_end(actuator, crashing_call, held, "migrate") == 0
    assert held() == made
    assert run_to_the_end(actuator, crashing_call, held, "restore") == 0
    assert held() == made
    assert run_to_the_end(actuator, crashing_call, held, "delete") >= len(RESOURCES)
    assert held() == set()
    assert list(actuator.external_resources(object_of(crashing_call))) == []


def test_a_status_that_does_not_report_a_resource_is_noticed(url, crashing_call, held):
    actuator = Configured(AwsInfrastructure(url))
    there = {("AWS::EC2::VPC", "vpc-1", crashing_call.namespace)}
    assert len(differences(actuator, crashing_call, there)) == 1
