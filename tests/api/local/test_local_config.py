"""LocalNetwork's rules, which need no cluster: each fault names its field and the way out."""

from __future__ import annotations

from typing import Any

import pytest

from actuator.codec import decode
from actuator.meta import Object
from actuator.v1alpha1 import ContainerRuntime, Network
from extensions.local.containerruntime import LocalContainerRuntime
from extensions.local.network import LocalNetwork
from extensions.local.outside import Outside
from tests.support.objects.configured import problems_of_object
from tests.support.samples.local import config, manifest


def faults(actuator: Any, cls: type[Object], **spec: Any) -> list[str]:
    obj = decode(cls, manifest(cls, "shoot--a--b", **spec))
    return [str(problem) for problem in problems_of_object(actuator, obj)]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        ({"ipFamilies": ["IPv4", "IPv6"]}, []),
        ({"podCIDR": "fd00::/56", "serviceCIDR": "fd01::/108", "ipFamilies": ["IPv6"]}, []),
        ({"podCIDR": "100.64.0.0/11"}, ["spec.serviceCIDR: 100.64.0.0/13 overlaps"]),
        ({"podCIDR": "100.96.0.1/11"}, ["spec.podCIDR: '100.96.0.1/11' is no range"]),
        ({"serviceCIDR": ""}, ["spec.serviceCIDR: '' is no range"]),
        ({"serviceCIDR": "fd01::/108"}, ["spec.serviceCIDR: fd01::/108 is not of IPv4"]),
        (
            {"ipFamilies": ["IPv6", "IPv6"]},
            ["spec.ipFamilies: a family is a duplicate", "spec.podCIDR:", "spec.serviceCIDR:"],
        ),
        (
            {"providerConfig": config("NetworkConfig", mtu=1)},
            ["spec.providerConfig.mtu: expected an integer (at least 1280, at most 9000), got 1"],
        ),
        ({"providerConfig": config("NetworkConfig", mtu=1280)}, []),
        ({"providerConfig": {"mtux": 1}}, ["spec.providerConfig: unknown field mtux"]),
    ],
)
def test_a_network_that_cannot_work_has_a_problem_for_each_reason(tmp_path, spec, expected):
    found = faults(LocalNetwork(Outside(tmp_path)), Network, **spec)
    assert len(found) == len(expected)
    assert all(fault.startswith(start) for fault, start in zip(found, expected, strict=True)), found


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        ({"binaryPath": "bin"}, ["spec.binaryPath: 'bin' is no absolute path"]),
        ({"workerPool": {"name": "a", "selector": {}}}, ["spec.workerPool.selector.matchLabels"]),
        ({"providerConfig": {"a": 1}}, ["spec.providerConfig: there is nothing to configure"]),
    ],
)
def test_a_runtime_that_cannot_work_has_a_problem_for_each_reason(spec, expected):
    found = faults(LocalContainerRuntime(), ContainerRuntime, **spec)
    assert len(found) == len(expected)
    assert all(fault.startswith(start) for fault, start in zip(found, expected, strict=True)), found
