"""Network and address in the (simulated) cloud: made once, found again, deleted whole."""

from __future__ import annotations

import attrs
import pytest
from aws_objects import NETWORKS

from actuator import ActuatorError, ConfigurationError, ErrorCode
from extensions.aws import tags
from extensions.aws.config import Zone
from extensions.aws.network import Network
from extensions.aws.status import Vpc

CIDR = NETWORKS["vpc"]["cidr"]
ZONES = [Zone(**zone) for zone in NETWORKS["zones"]]


@pytest.fixture
def network(cloud, shoot) -> Network:
    return Network(cloud, shoot)


def marked(ec2, shoot) -> dict[str, list]:
    kinds = {
        "vpcs": ("describe_vpcs", "Vpcs"),
        "subnets": ("describe_subnets", "Subnets"),
        "groups": ("describe_security_groups", "SecurityGroups"),
        "addresses": ("describe_addresses", "Addresses"),
    }
    return {
        name: ec2.describe(operation, answer_key, tags.filters(tags.mark(shoot)))
        for name, (operation, answer_key) in kinds.items()
    }


def counts(ec2, shoot) -> dict[str, int]:
    return {name: len(found) for name, found in marked(ec2, shoot).items() if found}


def build(network: Network) -> Vpc:
    vpc = Vpc(id=network.find_vpc(CIDR, "") or network.create_vpc(CIDR))
    network.ensure_subnets(vpc, ZONES)
    network.ensure_security_group(vpc)
    return vpc


def test_a_network_is_built_once_however_often_it_is_asked_for(network, ec2, shoot):
    first, second = build(network), build(network)
    assert first == second
    assert counts(ec2, shoot) == {"vpcs": 1, "subnets": 3, "groups": 1}


def test_everything_is_tagged_with_the_shoot_and_a_name(network, ec2, shoot):
    build(network)
    names = {
        tags.as_dict(thing)["Name"] for things in marked(ec2, shoot).values() for thing in things
    }
    assert names == {
        shoot,
        f"{shoot}-workers-eu-west-1a",
        f"{shoot}-public-eu-west-1a",
        f"{shoot}-internal-eu-west-1a",
        f"{shoot}-nodes",
    }


def test_the_status_names_zone_and_purpose_of_each_subnet(network):
    vpc = build(network)
    assert [(one.zone, one.purpose) for one in vpc.subnets] == [
        ("eu-west-1a", "workers"),
        ("eu-west-1a", "public"),
        ("eu-west-1a", "internal"),
    ]


def test_a_new_zone_is_added_beside_the_old_ones(network, ec2, shoot):
    build(network)
    new = Zone(
        name="eu-west-1b",
        workers="10.250.64.0/19",
        public="10.250.96.0/20",
        internal="10.250.112.0/20",
    )
    vpc = Vpc(id=network.find_vpc(CIDR, "") or "")
    network.ensure_subnets(vpc, [*ZONES, new])
    assert len(vpc.subnets) == counts(ec2, shoot)["subnets"] == 6


def test_subnets_of_a_zone_that_is_no_longer_wanted_are_still_known(network):
    vpc = build(network)
    known = list(vpc.subnets)
    network.ensure_subnets(vpc, [])
    assert vpc.subnets == known


def test_missing_rules_are_added_and_those_of_others_stay(network, ec2):
    vpc = build(network)
    group_id = vpc.security_groups[0].id
    foreign = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22}
    ssh = foreign | {"IpRanges": [{"CidrIp": "10.0.0.0/8"}]}
    node_ports = {"IpProtocol": "tcp", "FromPort": 30000, "ToPort": 32767}
    ec2.request("authorize_security_group_ingress", GroupId=group_id, IpPermissions=[ssh])
    ec2.request(
        "revoke_security_group_ingress",
        GroupId=group_id,
        IpPermissions=[node_ports | {"IpRanges": [{"CidrIp": "0.0.0.0/0"}]}],
    )
    network.ensure_security_group(vpc)
    (group,) = ec2.request("describe_security_groups", GroupIds=[group_id])["SecurityGroups"]
    rules = {(rule["IpProtocol"], rule.get("FromPort")) for rule in group["IpPermissions"]}
    assert rules == {("-1", None), ("tcp", 22), ("tcp", 30000), ("udp", 30000)}


def test_a_second_vpc_with_the_same_mark_is_an_error_that_names_both(network, shoot):
    ids = sorted([network.create_vpc(CIDR), network.create_vpc(CIDR)])
    with pytest.raises(ActuatorError) as error:
        network.find_vpc(CIDR, "")
    assert f"More than one VPC is tagged kubernetes.io/cluster/{shoot}=1" in error.value.message
    assert f"{ids[0]}, {ids[1]}" in error.value.message
    assert error.value.codes == (ErrorCode.ERR_INFRA_DEPENDENCIES,)


def test_a_second_subnet_of_the_same_name_is_an_error(network, shoot):
    vpc = build(network)
    name = f"{shoot}-workers-eu-west-1a"
    network._create_subnet(vpc.id, "eu-west-1a", "10.250.128.0/20", name)
    with pytest.raises(ActuatorError, match=f"More than one subnet {name}"):
        network.ensure_subnets(vpc, ZONES)


def test_what_lacks_the_mark_is_not_adopted(network, ec2):
    foreign = ec2.request("create_vpc", CidrBlock=CIDR)["Vpc"]["VpcId"]
    assert network.find_vpc(CIDR, "") is None
    with pytest.raises(ActuatorError, match=f"VPC {foreign} has lost its tag"):
        network.find_vpc(CIDR, foreign)


def test_a_vpc_that_somebody_deleted_is_wanted_anew(network):
    assert network.find_vpc(CIDR, "vpc-00000000000000000") is None


def test_another_range_for_what_exists_is_a_configuration_problem(network):
    vpc = build(network)
    with pytest.raises(ConfigurationError, match=r"networks.vpc.cidr: 10.0.0.0/16 differs from"):
        network.find_vpc("10.0.0.0/16", vpc.id)
    other = attrs.evolve(ZONES[0], public="10.250.128.0/20")
    with pytest.raises(ConfigurationError, match=r"zones\[0\].public: 10.250.128.0/20 differs"):
        network.ensure_subnets(vpc, [other])


def test_deletion_goes_in_the_order_of_dependence_and_leaves_nothing(network, ec2, shoot):
    vpc = build(network)
    network.delete(vpc)
    assert vpc == Vpc()
    assert counts(ec2, shoot) == {}


def test_deletion_finds_by_tag_what_no_status_knows(network, ec2, shoot):
    build(network)
    network.delete(Vpc())
    assert counts(ec2, shoot) == {}


def test_deleting_what_is_gone_is_success(network):
    vpc = build(network)
    network.delete(attrs.evolve(vpc))
    network.delete(vpc)
    assert vpc == Vpc()


def test_deletion_takes_nothing_of_another_shoot(network, cloud, ec2, shoot):
    other = Network(cloud, f"{shoot}-2")
    build(other)
    network.delete(build(network))
    assert counts(ec2, f"{shoot}-2") == {"vpcs": 1, "subnets": 3, "groups": 1}


def test_what_somebody_put_into_the_vpc_blocks_and_the_rest_is_forgotten(network, ec2, shoot):
    vpc = build(network)
    id = vpc.id
    ec2.request("create_route_table", VpcId=id)
    with pytest.raises(ActuatorError, match="DependencyViolation") as error:
        network.delete(vpc)
    assert error.value.codes == (ErrorCode.ERR_INFRA_DEPENDENCIES,)
    assert vpc == Vpc(id=id)
    assert counts(ec2, shoot) == {"vpcs": 1}


def test_an_address_is_allocated_once_and_released(cloud, ec2, shoot):
    network = Network(cloud, shoot)
    assert network.find_address() is None
    allocated = network.allocate_address()
    assert network.find_address() == allocated
    network.release_address(allocated.allocation_id)
    network.release_address(allocated.allocation_id)
    assert counts(ec2, shoot) == {}


def test_an_address_of_unknown_id_is_released_by_its_mark(cloud, ec2, shoot):
    Network(cloud, shoot).allocate_address()
    Network(cloud, shoot).release_address("")
    assert counts(ec2, shoot) == {}


def test_two_addresses_are_an_error_that_names_both(cloud, shoot):
    network = Network(cloud, shoot)
    ids = sorted(
        [network.allocate_address().allocation_id, network.allocate_address().allocation_id]
    )
    with pytest.raises(ActuatorError, match=f"{ids[0]}, {ids[1]}"):
        network.find_address()
