"""The state of an Infrastructure is that of Gardener's AWS extension, in both directions."""

from __future__ import annotations

import base64
import json

import pytest

from actuator import ActuatorError
from actuator.codec import decode
from actuator.v1alpha1 import Infrastructure
from extensions.aws.config import API_VERSION
from extensions.aws.state import InfrastructureState

HEAD = {"apiVersion": API_VERSION, "kind": "InfrastructureState"}
OF_GO = {
    "DHCPOptions": "dopt-1",
    "IAMInstanceProfileName": "shoot--a--b-nodes",
    "IAMRoleARN": "arn:aws:iam::1:role/shoot--a--b-nodes",
    "IAMRoleName": "shoot--a--b-nodes",
    "InternetGateway": "igw-1",
    "KeyPair": "shoot--a--b-ssh-publickey",
    "MainRouteTable": "rtb-1",
    "MigratedFromTerraform": "true",
    "NodesSecurityGroup": "sg-1",
    "VPC": "vpc-1",
    "VPCEndpoints/s3": "vpce-1",
    "Zones/eu-west-1a/NATGateway": "nat-1",
    "Zones/eu-west-1a/NATGatewayElasticIP": "eipalloc-1",
    "Zones/eu-west-1a/Suffix": "z0",
    "Zones/eu-west-1a/SubnetPrivateUtility": "subnet-3",
    "Zones/eu-west-1a/SubnetPublicUtility": "subnet-2",
    "Zones/eu-west-1a/SubnetWorkers": "subnet-1",
    "Zones/eu-west-1a/SubnetWorkersRouteTableAssoc": "rtbassoc-1",
    "Zones/eu-west-1a/ZoneRouteTable": "rtb-2",
}
_OTHERS = ("arn:aws:iam::1:role/shoot", "rtbassoc", "true", "vpce", "z0")
IDS = {name: id for name, id in OF_GO.items() if id.partition("-")[0] not in _OTHERS}


def read(state):
    raw = {"metadata": {"name": "infra", "namespace": "shoot--a--b"}, "status": {"state": state}}
    return InfrastructureState.read(decode(Infrastructure, raw))


def terraform(*resources, encoding="base64"):
    text = json.dumps({"version": 4, "resources": list(resources)})
    data = base64.b64encode(text.encode()).decode() if encoding == "base64" else text
    return {"data": data, "encoding": encoding}


def resource(type, name, id, zone="", mode="managed"):
    attributes = {"id": id} | ({"availability_zone": zone} if zone else {})
    return {"mode": mode, "type": type, "name": name, "instances": [{"attributes": attributes}]}


def test_a_flow_state_is_written_back_as_it_was_with_the_entries_of_the_other_extension():
    stored = {**HEAD, "data": OF_GO}
    state = read(stored)
    assert state.ids == IDS
    assert state.to_stored(stored) == stored


def test_a_deleted_resource_leaves_the_flow_state():
    stored = {**HEAD, "data": OF_GO}
    state = read(stored)
    state.resources = []
    assert state.to_stored(stored)["data"].keys() == OF_GO.keys() - IDS.keys()


def test_subnets_are_deleted_before_their_routes_and_vpc():
    needs = {record.name: record.needs for record in read({"data": OF_GO}).resources}
    assert needs["Zones/eu-west-1a/SubnetWorkers"] == ["VPC", "Zones/eu-west-1a/ZoneRouteTable"]


def test_resources_of_another_owner_have_entries_that_the_other_extension_does_not_read():
    state = read({"data": {"Existing/VPC": "vpc-1", "InternetGateway": "igw-1"}})
    assert {record.name: record.existing for record in state.resources} == {
        "VPC": True,
        "InternetGateway": False,
    }
    state.resources[1].existing = True
    before = {"data": {"VPC": "vpc-1", "InternetGateway": "igw-1", "TerraformCleanedUp": "true"}}
    assert state.to_stored(before)["data"] == {
        "Existing/VPC": "vpc-1",
        "Existing/InternetGateway": "igw-1",
        "TerraformCleanedUp": "true",
    }


@pytest.mark.parametrize("encoding", ["base64", ""])
def test_a_state_of_terraform_is_read_and_replaced(encoding):
    zone = "eu-west-1a"
    stored = terraform(
        resource("aws_eip", "eip_natgw_z0", "eipalloc-1"),
        resource("aws_iam_instance_profile", "nodes", "shoot--a--b-nodes"),
        resource("aws_iam_role", "nodes", "shoot--a--b-nodes"),
        resource("aws_key_pair", "nodes", "shoot--a--b-ssh-publickey"),
        resource("aws_nat_gateway", "natgw_z0", "nat-1"),
        resource("aws_route_table", "routetable_main", "rtb-1"),
        resource("aws_route_table", "routetable_private_utility_z0", "rtb-2"),
        resource("aws_vpc_dhcp_options", "vpc_dhcp_options", "dopt-1"),
        resource("aws_vpc", "vpc", "vpc-1"),
        resource("aws_internet_gateway", "igw", "igw-1"),
        resource("aws_security_group", "nodes", "sg-1"),
        resource("aws_subnet", "nodes_z0", "subnet-1", zone),
        resource("aws_subnet", "public_utility_z0", "subnet-2", zone),
        resource("aws_subnet", "private_utility_z0", "subnet-3", zone),
        resource("aws_vpc", "vpc", "vpc-9", mode="data"),
        encoding=encoding,
    )
    state = read(stored)
    assert state.ids == IDS
    assert state.to_stored(stored) == {**HEAD, "data": IDS}


WRONG = {
    "no data": {},
    "another form": {"data": {"VPC": 1}},
    "no base64": {"data": "*", "encoding": "base64"},
    "no JSON": {"data": "{", "encoding": "none"},
    "no object": {"data": "[]", "encoding": "none"},
    "no instances": {"data": '{"resources": [{"mode": "managed"}]}', "encoding": "none"},
}


@pytest.mark.parametrize("state", WRONG.values(), ids=WRONG)
def test_another_state_is_an_error(state):
    with pytest.raises(ActuatorError, match=r"status\.state is no InfrastructureState: data: "):
        read(state)


def test_a_state_of_terraform_that_is_nested_too_deep_is_no_state():
    text = "[" * 200_000 + "]" * 200_000
    with pytest.raises(ActuatorError, match="not a state of Terraform"):
        read({"data": text, "encoding": ""})
