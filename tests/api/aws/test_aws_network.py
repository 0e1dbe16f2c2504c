"""Network and address in the (simulated) cloud: made once, found again, deleted whole."""

from __future__ import annotations

import attrs
import pytest
from aws_objects import NETWORKS, control_plane, infrastructure

from actuator import ActuatorError, ConfigurationError, ErrorCode
from extensions.aws import AwsControlPlane, tags
from extensions.aws.config import Networks, Zone
from extensions.aws.config import Vpc as VpcConfig
from extensions.aws.ec2 import ELASTIC_IP, Marked
from extensions.aws.network import NETWORK, NODES, Network, Range, ranges
from generic.library.flow import Flow, FlowStatus

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


def wanted(*zones: Zone, cidr: str = CIDR) -> dict[str, Range]:
    return ranges(Networks(vpc=VpcConfig(cidr=cidr), zones=list(zones or ZONES)))


@pytest.fixture
def build(call, namespace):
    """Creates a network as its actuator does; returns the status."""

    def run(network: Network, wanted_ranges=None, status: FlowStatus | None = None) -> FlowStatus:
        status = status or FlowStatus()
        known = status.ids.get(NETWORK, "")
        tasks = network.tasks(wanted() if wanted_ranges is None else wanted_ranges, known)
        Flow(tasks).create(call, infrastructure(namespace), status)
        return status

    return run


@pytest.fixture
def delete(call, namespace):
    def run(network: Network, status: FlowStatus) -> None:
        recorded = dict.fromkeys((one.name for one in status.resources), Range())
        Flow(network.tasks(recorded)).delete(call, infrastructure(namespace), status)

    return run


def test_a_network_is_built_once_however_often_it_is_asked_for(network, build, ec2, shoot):
    first, second = build(network), build(network)
    assert first == second
    assert counts(ec2, shoot) == {"vpcs": 1, "subnets": 3, "groups": 1}


def test_everything_is_tagged_with_the_shoot_and_a_name(network, build, ec2, shoot):
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


def test_a_new_zone_is_added_beside_the_old_ones(network, build, ec2, shoot):
    build(network)
    new = Zone(
        name="eu-west-1b",
        workers="10.250.64.0/19",
        public="10.250.96.0/20",
        internal="10.250.112.0/20",
    )
    status = build(network, wanted(*ZONES, new))
    assert len(status.ids) == 8
    assert counts(ec2, shoot)["subnets"] == 6


def test_subnets_of_a_zone_that_is_no_longer_wanted_are_still_known(network, build):
    status = build(network)
    only_vpc = {NETWORK: wanted()[NETWORK]}
    assert build(network, only_vpc, status).ids == status.ids
    assert build(network, only_vpc).ids == status.ids, "found by tag, without a status"


def test_missing_rules_are_added_and_those_of_others_stay(network, build, ec2):
    group_id = build(network).ids[NODES]
    foreign = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22}
    ssh = foreign | {"IpRanges": [{"CidrIp": "10.0.0.0/8"}]}
    node_ports = {"IpProtocol": "tcp", "FromPort": 30000, "ToPort": 32767}
    ec2.request("authorize_security_group_ingress", GroupId=group_id, IpPermissions=[ssh])
    ec2.request(
        "revoke_security_group_ingress",
        GroupId=group_id,
        IpPermissions=[node_ports | {"IpRanges": [{"CidrIp": "0.0.0.0/0"}]}],
    )
    build(network)
    (group,) = ec2.request("describe_security_groups", GroupIds=[group_id])["SecurityGroups"]
    rules = {(rule["IpProtocol"], rule.get("FromPort")) for rule in group["IpPermissions"]}
    assert rules == {("-1", None), ("tcp", 22), ("tcp", 30000), ("udp", 30000)}


def test_a_second_vpc_with_the_same_mark_is_an_error_that_names_both(network, build):
    ids = sorted(network._create_vpc(wanted()[NETWORK]) for _ in range(2))
    with pytest.raises(ActuatorError, match="more than one AWS::EC2::VPC") as error:
        build(network)
    assert f"{ids[0]}, {ids[1]}" in error.value.message
    assert error.value.codes == (ErrorCode.ERR_INFRA_DEPENDENCIES,)


def test_a_second_subnet_of_the_same_name_is_an_error(network, build):
    status, name = build(network), "workers-eu-west-1a"
    other = attrs.evolve(wanted()[name], cidr="10.250.128.0/20")
    network._create_subnet(status.ids[NETWORK], name, other)
    with pytest.raises(ActuatorError, match=f"{name}: there is more than one AWS::EC2::Subnet"):
        build(network)


def test_a_vpc_that_lost_its_tag_stops_the_creation(network, build, ec2):
    status = build(network)
    (key,) = tags.mark(network.technical_id)
    ec2.request("delete_tags", Resources=[status.ids[NETWORK]], Tags=[{"Key": key}])
    before = attrs.evolve(status)
    with pytest.raises(ActuatorError, match=f"VPC {status.ids[NETWORK]} has lost its tag"):
        build(network, status=status)
    assert status == before


def test_what_somebody_deleted_is_created_again(network, build, ec2):
    status = build(network)
    name = "workers-eu-west-1a"
    old = status.ids[name]
    ec2.remove("delete_subnet", SubnetId=old)
    assert build(network, status=status).ids[name] != old


def test_another_range_for_what_exists_is_a_configuration_problem(network, build):
    build(network)
    with pytest.raises(ConfigurationError, match=r"networks.vpc.cidr: 10.0.0.0/16 differs from"):
        build(network, wanted(cidr="10.0.0.0/16"))
    other = attrs.evolve(ZONES[0], public="10.250.128.0/20")
    with pytest.raises(ConfigurationError, match=r"zones\[0\].public: 10.250.128.0/20 differs"):
        build(network, wanted(other))


def test_deletion_goes_in_the_order_of_dependence_and_leaves_nothing(
    network, build, delete, ec2, shoot
):
    status = build(network)
    delete(network, status)
    assert status == FlowStatus()
    assert counts(ec2, shoot) == {}


def test_deletion_finds_by_tag_what_no_status_knows(network, build, delete, ec2, shoot):
    build(network)
    delete(network, FlowStatus())
    assert counts(ec2, shoot) == {}


def test_deleting_what_is_gone_is_success(network, build, delete):
    status = build(network)
    delete(network, attrs.evolve(status))
    delete(network, status)
    assert status == FlowStatus()


def test_deletion_takes_nothing_of_another_shoot(network, build, delete, cloud, ec2, shoot):
    build(Network(cloud, f"{shoot}-2"))
    delete(network, build(network))
    assert counts(ec2, f"{shoot}-2") == {"vpcs": 1, "subnets": 3, "groups": 1}


def test_what_somebody_put_into_the_vpc_blocks_and_the_rest_is_forgotten(
    network, build, delete, ec2, shoot
):
    status = build(network)
    id = status.ids[NETWORK]
    ec2.request("create_route_table", VpcId=id)
    with pytest.raises(ActuatorError, match="DependencyViolation") as error:
        delete(network, status)
    assert error.value.codes == (ErrorCode.ERR_INFRA_DEPENDENCIES,)
    assert status.ids == {NETWORK: id}
    assert counts(ec2, shoot) == {"vpcs": 1}


@pytest.fixture
def control(namespace):
    return control_plane(namespace)


def test_an_address_is_allocated_once_and_released(url, call, control, ec2, namespace):
    plane = AwsControlPlane(url)
    plane._ensure_address(call, control)
    allocated = control.status.provider_status
    plane._ensure_address(call, control)
    assert control.status.provider_status == allocated
    assert len(call.saved) == 1
    plane._release_address(call, control, allocated["allocationId"])
    plane._release_address(call, control, allocated["allocationId"])
    assert counts(ec2, namespace) == {}


def test_an_address_of_unknown_id_is_released_by_its_mark(url, call, control, ec2, namespace):
    AwsControlPlane(url)._ensure_address(call, control)
    AwsControlPlane(url)._release_address(call, control, "")
    assert counts(ec2, namespace) == {}


def test_two_addresses_are_an_error_that_names_both(url, call, control, ec2, namespace):
    marked = Marked(ec2, tags.mark(namespace))
    made = [marked.create("allocate_address", ELASTIC_IP, "ip", Domain="vpc") for _ in range(2)]
    ids = sorted(ELASTIC_IP.ids(made))
    with pytest.raises(ActuatorError, match=f"{ids[0]}, {ids[1]}"):
        AwsControlPlane(url)._ensure_address(call, control)
