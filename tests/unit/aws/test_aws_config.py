"""providerConfig: every fault is named, with its field and a way out."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from aws_objects import NETWORKS, control_plane, infrastructure, provider_config

from actuator import ConfigurationError, ErrorCode
from extensions.aws.config import (
    API_VERSION,
    ControlPlaneConfig,
    infrastructure_config,
    optional_config,
)


def changed(path: list[Any], value: Any) -> Any:
    networks = copy.deepcopy(NETWORKS)
    place = networks
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return provider_config(networks)


def without(path: list[Any]) -> Any:
    config = changed(path, None)
    place = config["networks"]
    for step in path[:-1]:
        place = place[step]
    del place[path[-1]]
    return config


ZONE = NETWORKS["zones"][0]
ACCEPTED = "prefix length from 16 to 28"
FAULTS: dict[str, tuple[Any, list[str]]] = {
    "missing": (None, ["spec.providerConfig is missing", "InfrastructureConfig"]),
    "other version": (
        provider_config() | {"apiVersion": "aws.provider.extensions.gardener.cloud/v2"},
        ["v2 InfrastructureConfig is not understood", f"set apiVersion {API_VERSION}"],
    ),
    "other kind": (provider_config() | {"kind": "WorkerConfig"}, ["WorkerConfig", "set"]),
    "no kind": (
        {k: v for k, v in provider_config().items() if k != "kind"},
        ["kind", "required field missing"],
    ),
    "unknown field": (provider_config() | {"dualStack": {}}, ["unknown field dualStack"]),
    "unknown field of the VPC": (changed(["vpc", "id"], "vpc-1"), ["unknown field id"]),
    "unknown field of a zone": (changed(["zones", 0, "worker"], "x"), ["unknown field worker"]),
    "range is no text": (
        changed(["vpc", "cidr"], 10),
        ["networks.vpc.cidr: expected a string, got an integer"],
    ),
    "zones is no list": (
        changed(["zones"], "a"),
        ["networks.zones: expected a list, got a string"],
    ),
    "no VPC": (without(["vpc"]), ["required field missing", "networks.vpc"]),
    "no workers": (without(["zones", 0, "workers"]), ["workers", "required field missing"]),
    "no zone": (changed(["zones"], []), ["networks.zones: there is no zone; name at least one"]),
    "zone of another region": (
        changed(["zones", 0, "name"], "us-east-1a"),
        ["networks.zones[0].name: 'us-east-1a' is no zone of region eu-west-1", '"eu-west-1a"'],
    ),
    "zone is a region": (changed(["zones", 0, "name"], "eu-west-1"), ["zones[0].name"]),
    "zone twice": (
        changed(["zones"], [ZONE, ZONE]),
        ["zones[1].name: 'eu-west-1a' is there twice"],
    ),
    "VPC is no range": (changed(["vpc", "cidr"], "ten"), ["vpc.cidr: 'ten'", ACCEPTED]),
    "VPC too large": (changed(["vpc", "cidr"], "10.0.0.0/8"), ["vpc.cidr", ACCEPTED]),
    "VPC too small": (changed(["vpc", "cidr"], "10.250.0.0/29"), ["vpc.cidr", ACCEPTED]),
    "VPC with host bits": (changed(["vpc", "cidr"], "10.250.0.1/16"), ["vpc.cidr", "first"]),
    "VPC with a netmask": (changed(["vpc", "cidr"], "10.250.0.0/255.255.0.0"), ["vpc.cidr"]),
    "VPC of IPv6": (changed(["vpc", "cidr"], "fd00::/56"), ["vpc.cidr", "IPv4"]),
    "subnet is no range": (changed(["zones", 0, "public"], ""), ["zones[0].public: ''"]),
    "subnet outside": (
        changed(["zones", 0, "public"], "10.251.0.0/20"),
        ["zones[0].public: 10.251.0.0/20 lies outside networks.vpc.cidr 10.250.0.0/16"],
    ),
    "subnet larger than the VPC": (changed(["vpc", "cidr"], "10.250.0.0/20"), ["outside"]),
    "subnets overlap": (
        changed(["zones", 0, "internal"], "10.250.32.0/24"),
        ["zones[0].internal: 10.250.32.0/24 overlaps", "zones[0].public 10.250.32.0/20"],
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_with_its_object_and_field(fault):
    config, said = FAULTS[fault]
    with pytest.raises(ConfigurationError) as error:
        infrastructure_config(infrastructure("shoot--a--b", providerConfig=config))
    assert error.value.codes == (ErrorCode.ERR_CONFIGURATION_PROBLEM,)
    assert error.value.message.startswith("Infrastructure shoot--a--b/shoot: spec.providerConfig")
    for part in said:
        assert part in error.value.message


def test_all_faults_are_said_at_once():
    config = changed(["zones", 0, "name"], "us-east-1a")
    config["networks"]["vpc"]["cidr"] = "10.0.0.0/8"
    config["networks"]["zones"][0]["public"] = "x"
    with pytest.raises(ConfigurationError, match=r"zones\[0\].name.*vpc.cidr.*zones\[0\].public"):
        infrastructure_config(infrastructure("shoot--a--b", providerConfig=config))


@pytest.mark.parametrize("region", ["", "Europe", "eu-west-1a", "eu-west-1.evil.example/"])
def test_a_region_that_cannot_be_is_refused(region):
    with pytest.raises(ConfigurationError, match=r"spec.region: .* is no AWS region"):
        infrastructure_config(infrastructure("shoot--a--b", region=region))


def test_a_good_configuration_is_read():
    config = infrastructure_config(infrastructure("shoot--a--b"))
    assert config.networks.vpc.cidr == "10.250.0.0/16"
    assert [zone.ranges()["workers"] for zone in config.networks.zones] == ["10.250.0.0/19"]


def test_a_local_zone_belongs_to_its_region():
    config = changed(["zones", 0, "name"], "eu-west-1-dub-1a")
    assert infrastructure_config(infrastructure("shoot--a--b", providerConfig=config))


def control_plane_config(**spec: Any) -> ControlPlaneConfig:
    given = control_plane("shoot--a--b", **spec).spec.provider_config
    return optional_config(ControlPlaneConfig, given, "spec.providerConfig")


def test_a_control_plane_needs_no_configuration():
    assert control_plane_config().kind == "ControlPlaneConfig"


def test_a_control_plane_configuration_is_strict_too():
    given = {"apiVersion": API_VERSION, "kind": "ControlPlaneConfig", "storage": {}}
    with pytest.raises(ConfigurationError, match="unknown field storage"):
        control_plane_config(providerConfig=given)
    with pytest.raises(ConfigurationError, match=r"set apiVersion .* and kind ControlPlaneConfig"):
        control_plane_config(providerConfig={"kind": "X"})
