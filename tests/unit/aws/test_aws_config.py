"""providerConfig: every fault is named, with its field and a way out."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from actuator import Actuator, ErrorCode
from actuator.interface import invalid
from actuator.meta import Object
from actuator.provider_config import Configurations
from extensions.aws.bastion import AwsBastion
from extensions.aws.config import (
    API_VERSION,
    BastionConfig,
    ControlPlaneConfig,
    InfrastructureConfig,
    WorkerConfig,
)
from extensions.aws.controlplane import AwsControlPlane
from extensions.aws.infrastructure import AwsInfrastructure
from extensions.aws.worker import AwsWorker
from tests.support.aws.objects import (
    NETWORKS,
    bastion,
    control_plane,
    infrastructure,
    provider_config,
    shoot_cluster,
    worker,
)
from tests.support.objects.configured import problems_of_object


def refused(actuator: Actuator[Any], obj: Object) -> str:
    """Return the message for the problems of an object; "" if it has none."""
    problems = problems_of_object(actuator, obj, shoot_cluster("shoot--a--b"))
    if not problems:
        return ""
    error = invalid(obj, problems)
    assert error.codes == (ErrorCode.ERR_CONFIGURATION_PROBLEM,)
    return error.message


def infrastructure_refused(**spec: Any) -> str:
    return refused(AwsInfrastructure(), infrastructure("shoot--a--b", **spec))


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
ACCEPTED = "(pattern [0-9.]+/(1[6-9]|2[0-8]), the first address of a range"
FAULTS: dict[str, tuple[Any, list[str]]] = {
    "missing": (
        None,
        [
            f"spec.providerConfig.apiVersion: required field missing; set {API_VERSION}",
            "spec.providerConfig.kind: required field missing; set InfrastructureConfig",
            "spec.providerConfig.networks: required field missing; set an object",
        ],
    ),
    "other version": (
        provider_config() | {"apiVersion": "aws.provider.extensions.gardener.cloud/v2"},
        ["v2 InfrastructureConfig is not supported", f"set apiVersion {API_VERSION}"],
    ),
    "other kind": (provider_config() | {"kind": "WorkerConfig"}, ["WorkerConfig", "set"]),
    "no kind": (
        {k: v for k, v in provider_config().items() if k != "kind"},
        ["kind", "required field missing"],
    ),
    "unknown field": (provider_config() | {"dualStack": {}}, ["unknown field dualStack"]),
    "unknown field of the VPC": (changed(["vpc", "ID"], "vpc-1"), ["unknown field ID"]),
    "existing and new VPC": (
        changed(["vpc", "id"], "vpc-1"),
        ["networks.vpc: set either id, of an existing VPC, or cidr, of a new one"],
    ),
    "neither VPC": (changed(["vpc"], {}), ["networks.vpc: set either id"]),
    "no id of a VPC": (changed(["vpc", "id"], "a"), ["networks.vpc.id", "vpc-[0-9a-f]+"]),
    "no id of an address": (
        changed(["zones", 0, "elasticIPAllocationID"], "192.0.2.1"),
        ["zones[0].elasticIPAllocationID", "eipalloc-[0-9a-f]+"],
    ),
    "unknown field of a zone": (changed(["zones", 0, "worker"], "x"), ["unknown field worker"]),
    "range is no text": (
        changed(["vpc", "cidr"], 10),
        ["networks.vpc.cidr: expected a string like '10.250.0.0/16' (pattern", ", got an integer"],
    ),
    "zones is no list": (
        changed(["zones"], "a"),
        ["networks.zones: expected a list (entries: at least 1), got a string"],
    ),
    "no VPC": (without(["vpc"]), ["required field missing", "networks.vpc"]),
    "no workers": (without(["zones", 0, "workers"]), ["workers", "required field missing"]),
    "no zone": (
        changed(["zones"], []),
        ["networks.zones: expected a list (entries: at least 1), got 0 entries"],
    ),
    "zone of another region": (
        changed(["zones", 0, "name"], "us-east-1a"),
        ["networks.zones[0].name: 'us-east-1a' is no zone of region eu-west-1", '"eu-west-1a"'],
    ),
    "zone is a region": (changed(["zones", 0, "name"], "eu-west-1"), ["zones[0].name"]),
    "zone twice": (
        changed(["zones"], [ZONE, ZONE]),
        ["zones[1].name: 'eu-west-1a' is a duplicate"],
    ),
    "VPC is no range": (changed(["vpc", "cidr"], "ten"), ["networks.vpc.cidr", "'ten'", ACCEPTED]),
    "VPC too large": (changed(["vpc", "cidr"], "10.0.0.0/8"), ["vpc.cidr", ACCEPTED]),
    "VPC too small": (changed(["vpc", "cidr"], "10.250.0.0/29"), ["vpc.cidr", ACCEPTED]),
    "VPC with host bits": (changed(["vpc", "cidr"], "10.250.0.1/16"), ["vpc.cidr", "first"]),
    "VPC with a netmask": (changed(["vpc", "cidr"], "10.250.0.0/255.255.0.0"), ["vpc.cidr"]),
    "VPC of IPv6": (changed(["vpc", "cidr"], "fd00::/56"), ["vpc.cidr", "'10.250.0.0/16'"]),
    "subnet is no range": (
        changed(["zones", 0, "public"], ""),
        ["networks.zones[0].public: ", "got ''"],
    ),
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
    message = infrastructure_refused(providerConfig=config)
    assert message.startswith("Infrastructure shoot--a--b/shoot: spec.providerConfig")
    for part in said:
        assert part in message


def test_all_faults_are_reported_at_once():
    config = changed(["zones", 0, "name"], 3)
    config["networks"]["vpc"]["cidr"] = "10.0.0.0/8"
    config["networks"]["zones"][0]["public"] = "x"
    message = infrastructure_refused(providerConfig=config)
    assert re.search(r"vpc.cidr.*zones\[0\].name.*zones\[0\].public", message)


@pytest.mark.parametrize("region", ["", "Europe", "eu-west-1a", "eu-west-1.evil.example/"])
def test_a_region_that_cannot_be_is_refused(region):
    assert re.search(r"spec.region: .* is no AWS region", infrastructure_refused(region=region))


def test_a_good_configuration_is_read():
    assert not infrastructure_refused()
    config = Configurations(InfrastructureConfig, infrastructure("shoot--a--b")).get()
    assert config.networks.vpc.cidr == "10.250.0.0/16"
    assert [zone.ranges()["workers"] for zone in config.networks.zones] == ["10.250.0.0/19"]


def test_the_subnets_of_an_existing_vpc_may_have_any_range():
    assert not infrastructure_refused(providerConfig=changed(["vpc"], {"id": "vpc-0a"}))


def test_a_local_zone_belongs_to_its_region():
    config = changed(["zones", 0, "name"], "eu-west-1-dub-1a")
    assert not infrastructure_refused(providerConfig=config)


def pools(*configs: Any) -> Object:
    given = [{"name": str(n), "providerConfig": config} for n, config in enumerate(configs)]
    return worker("shoot--a--b", *given)


OPTIONAL = [
    (AwsControlPlane(), ControlPlaneConfig, control_plane, "spec.providerConfig"),
    (AwsBastion(), BastionConfig, bastion, "spec.providerConfig"),
    (AwsWorker(), WorkerConfig, None, "spec.pools[1].providerConfig"),
]
kinds = pytest.mark.parametrize(("actuator", "cls", "made", "field"), OPTIONAL)


@kinds
def test_other_kinds_need_no_configuration(actuator, cls, made, field):
    obj = made("shoot--a--b") if made else pools(None, None)
    assert not refused(actuator, obj)
    assert Configurations(cls, obj).get(None if made else 0) == cls()


@kinds
def test_the_configurations_of_other_kinds_are_strict_too(actuator, cls, made, field):
    def message(config: Any) -> str:
        obj = made("shoot--a--b", providerConfig=config) if made else pools(None, config)
        return refused(actuator, obj)

    given = {"apiVersion": API_VERSION, "kind": cls.__name__}
    assert f"{field}: unknown field storage" in message(given | {"storage": {}})
    assert f"{field}: {API_VERSION} X is not supported; set" in message({"kind": "X"})
    assert f"and kind {cls.__name__}" in message({"kind": "X"})
