"""LocalExposure: a Service and its endpoints, and the ingress that follows from them."""

from __future__ import annotations

import pytest

from actuator.v1alpha1 import SelfHostedShootExposure
from extensions.local.exposure import ENDPOINT_SLICES, SERVICES, LocalExposure
from tests.support.cluster.harness import eventually
from tests.support.samples.local import assert_configuration_problem, change, error, force


@pytest.fixture(autouse=True)
def actuator(start) -> None:
    start(LocalExposure())


def endpoint(node: str, **addresses: str) -> dict:
    found = [{"type": type, "address": address} for type, address in addresses.items()]
    return {"nodeName": node, "addresses": found}


ONE = endpoint("one", Hostname="one", InternalIP="10.1.0.1", ExternalIP="192.0.2.1")
TWO = endpoint("two", InternalIP="fd00::2")
NONE = endpoint("none", Hostname="none")


def slices(seed) -> dict[str, list[str]]:
    """The addresses that the Service leads to, by family."""
    service = f"kubernetes.io/service-name={services(seed)[0]}"
    found = seed.client.list(ENDPOINT_SLICES, seed.namespace, label_selector=service)
    return {
        item["addressType"]: [a for end in item["endpoints"] for a in end["addresses"]]
        for item in found
    }


def services(seed) -> list[str]:
    return [obj["metadata"]["name"] for obj in seed.client.list(SERVICES, seed.namespace)]


def test_each_node_is_reached_by_its_best_address(deploy):
    exposure = deploy(SelfHostedShootExposure, endpoints=[ONE, TWO])
    assert exposure.status()["ingress"] == [{"ip": "192.0.2.1"}, {"ip": "fd00::2"}]
    assert services(exposure) == ["exposure-x"]
    assert slices(exposure) == {"IPv4": ["192.0.2.1"], "IPv6": ["fd00::2"]}


def test_endpoints_that_are_gone_are_not_led_to_any_more(deploy):
    exposure = deploy(SelfHostedShootExposure, endpoints=[ONE, TWO])
    change(exposure, endpoints=[TWO])
    assert exposure.status()["ingress"] == [{"ip": "fd00::2"}]
    eventually(lambda: slices(exposure) == {"IPv6": ["fd00::2"]})


def test_the_ingress_is_reported_beside_an_error(deploy):
    exposure = deploy(SelfHostedShootExposure, ready=False, endpoints=[ONE, NONE])
    last_error = error(exposure)
    assert last_error["description"].endswith(": none")
    assert last_error["codes"] == ["ERR_RETRYABLE_CONFIGURATION_PROBLEM"]
    assert exposure.status()["ingress"] == [{"ip": "192.0.2.1"}]
    assert slices(exposure) == {"IPv4": ["192.0.2.1"]}


@pytest.mark.parametrize("end", ["delete", "force"])
def test_a_deletion_forced_or_not_leaves_nothing_of_ours_and_everything_of_others(
    deploy, seed, end
):
    theirs = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "theirs", "namespace": seed.namespace},
        "spec": {"clusterIP": "None", "ports": [{"port": 1}]},
    }
    seed.client.create(SERVICES, theirs)
    exposure = deploy(SelfHostedShootExposure, endpoints=[ONE])
    if end == "force":
        force(exposure)
    exposure.delete()
    eventually(exposure.is_gone)
    assert services(seed) == ["theirs"]
    assert seed.client.list(ENDPOINT_SLICES, seed.namespace) == []


def test_a_service_of_another_owner_is_not_taken_over(deploy, seed):
    theirs = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "exposure-x", "namespace": seed.namespace},
        "spec": {"clusterIP": "None", "ports": [{"port": 1}]},
    }
    seed.client.create(SERVICES, theirs)
    exposure = deploy(SelfHostedShootExposure, ready=False, endpoints=[ONE])
    assert_configuration_problem(exposure, "exposure-x", "exists without our label")
    assert "labels" not in seed.client.get(SERVICES, "exposure-x", seed.namespace)["metadata"]


def test_an_address_that_is_none_is_named(deploy):
    wrong = endpoint("one", InternalIP="10.1.0.300")
    exposure = deploy(SelfHostedShootExposure, ready=False, endpoints=[TWO, wrong])
    assert_configuration_problem(exposure, "spec.endpoints[1].addresses", "'10.1.0.300'")
