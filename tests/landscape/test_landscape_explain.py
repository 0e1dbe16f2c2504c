"""`actuator explain NAMESPACE/shoot/NAME` agrees with a real gardener-apiserver."""

from __future__ import annotations

import json

import pytest

from actuator.cluster import FORCE_DELETION
from actuator.errors import ApiError, NotFound
from actuator.meta import format_time
from generic.kube.clock import SystemClock
from generic.testing.landscape.garden import SHOOTS
from tests.support.cluster.harness import eventually
from tests.support.objects.garden import shoot

NAME = "explained"
NAMESPACE = "garden-dev"
HOLD = "example.org/hold"
FORCED = {"metadata": {"annotations": {FORCE_DELETION: "true"}}}
CONFIRMED = {"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}}


@pytest.fixture
def explained(garden, offered, command, tmp_path):
    """Creates a Shoot without a seed; returns a function that explains it."""
    manifest = shoot()
    manifest["metadata"] |= {"name": NAME, "finalizers": [HOLD]}
    garden.client.create(SHOOTS, manifest)
    both = ["--garden-kubeconfig", garden.cluster.kubeconfig]
    both += ["--kubeconfig", tmp_path / "missing"]

    def run(*arguments):
        return command("explain", f"{NAMESPACE}/shoot/{NAME}", *both, *arguments).stdout

    yield run
    garden.client.patch(SHOOTS, NAME, NAMESPACE, CONFIRMED)
    garden.client.delete(SHOOTS, NAME, NAMESPACE)
    garden.client.patch(SHOOTS, NAME, NAMESPACE, {"metadata": {"finalizers": None}})
    with pytest.raises(NotFound):
        garden.client.get(SHOOTS, NAME, NAMESPACE)


def test_a_pending_shoot_is_explained_with_the_answer_of_the_scheduler(garden, explained):
    eventually(lambda: garden.client.get(SHOOTS, NAME, NAMESPACE)["status"]["lastOperation"])
    text = " ".join(explained().split())
    assert text.startswith(f"Shoot {NAMESPACE}/{NAME}, uid ")
    assert "Create Pending" in text
    assert "Failed to schedule Shoot" in text
    assert "gardener-scheduler retries to find a seed" in text
    assert "no gardenlet has started with the Shoot" in text


def test_gardener_accepts_a_force_deletion_exactly_when_it_is_explained_so(garden, explained):
    def verdict():
        return json.loads(explained("-o", "json"))["shoot"]["forcing"]

    def force():
        garden.client.patch(SHOOTS, NAME, NAMESPACE, FORCED)

    assert verdict()["allowed"] is False
    assert "not being deleted" in verdict()["notAllowedBecause"]
    with pytest.raises(ApiError, match="deletionTimestamp is nil"):
        force()
    with pytest.raises(ApiError, match=r"confirmation\.gardener\.cloud/deletion"):
        garden.client.delete(SHOOTS, NAME, NAMESPACE)
    garden.client.patch(SHOOTS, NAME, NAMESPACE, CONFIRMED)
    garden.client.delete(SHOOTS, NAME, NAMESPACE)
    for codes in ([], ["ERR_INFRA_QUOTA_EXCEEDED"]):
        report(garden, codes)
        assert "has one of the codes" in verdict()["notAllowedBecause"]
        with pytest.raises(ApiError, match="does not contain one of these error codes"):
            force()
    report(garden, ["ERR_INFRA_DEPENDENCIES"])
    assert verdict()["allowed"] is True
    force()
    assert (verdict()["counts"], verdict()["allowed"]) == (True, True)


def report(garden, codes):
    """Write a last error with these codes, as gardenlet does."""
    moment = format_time(SystemClock().now())
    operation = {"type": "Delete", "state": "Error", "progress": 1, "description": "no"}
    error = {"description": "no", "taskID": "task", "codes": codes, "lastUpdateTime": moment}
    status = {"lastOperation": {**operation, "lastUpdateTime": moment}, "lastErrors": [error]}
    garden.client.patch(SHOOTS, NAME, NAMESPACE, {"status": status}, subresource="status")
