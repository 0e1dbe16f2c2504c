"""Network and address in the (simulated) cloud: made once, found again, deleted whole."""

from __future__ import annotations

from functools import partial

import attrs
import pytest

from actuator import ActuatorError, ConfigurationError, ErrorCode, RequeueAfter
from extensions.aws import tags
from extensions.aws.config import InfrastructureConfig, Networks, VpcConfig, Zone
from extensions.aws.controlplane import AwsControlPlane
from extensions.aws.ec2 import ELASTIC_IP, TYPES, Marked
from extensions.aws.iam import TRUST
from extensions.aws.infrastructure import AwsInfrastructure
from extensions.aws.inventory import everything
from extensions.aws.network import ShootNetwork
from extensions.aws.parts import (
    ADDRESS,
    GATEWAY,
    INTERNAL,
    NAT,
    NETWORK,
    NODES,
    OPTIONS,
    PUBLIC,
    PUBLIC_ROUTES,
    ROUTES,
    WORKERS,
    in_zone,
)
from extensions.aws.state import InfrastructureState
from generic.library.flow import Flow
from tests.support.aws.objects import (
    NETWORKS,
    PUBLIC_KEY,
    REGION,
    control_plane,
    infrastructure,
    provider_config,
    shoot_cluster,
)
from tests.support.objects.configured import Configured

CIDR = NETWORKS["vpc"]["cidr"]
ZONES = [Zone(**zone) for zone in NETWORKS["zones"]]
SECOND = Zone(
    name="eu-west-1b", workers="10.250.64.0/19", public="10.250.96.0/20", internal="10.250.112.0/20"
)
SUBNET = in_zone("eu-west-1a", WORKERS)
COUNTS = {
    "DHCPOptions": 1,
    "VPC": 1,
    "InternetGateway": 1,
    "RouteTable": 2,
    "Subnet": 3,
    "SecurityGroup": 1,
    "EIP": 1,
    "NatGateway": 1,
    "KeyPair": 1,
}
"""The resources of a network with one zone."""


@pytest.fixture
def network(cloud, shoot):
    """Returns the network as a new call sees it."""
    return lambda: ShootNetwork(cloud, shoot)


def marked(ec2, shoot) -> dict[str, list]:
    """The resources of the shoot, by the last part of their type."""
    of_shoot = Marked(ec2, tags.mark(shoot))
    return {type.name.rpartition("::")[2]: of_shoot.find(type) for type in TYPES}


def counts(ec2, shoot) -> dict[str, int]:
    return {name: len(found) for name, found in marked(ec2, shoot).items() if found}


def wanted(*zones: Zone, cidr: str = CIDR) -> Networks:
    return Networks(vpc=VpcConfig(cidr=cidr), zones=list(zones or ZONES))


def roles(account, shoot) -> list[str]:
    """Types and ids of the shoot's resources in IAM."""
    return [
        f"{item.type}/{item.id}"
        for item in everything(account, REGION)
        if tags.mark(shoot).items() <= item.tags.items() and item.type.startswith("AWS::IAM")
    ]


@pytest.fixture
def build(call, namespace, network):
    """Creates a network as its actuator does; returns the state."""

    def run(
        networks=None, state=None, of=network, key=PUBLIC_KEY, registry=True
    ) -> InfrastructureState:
        state = state or InfrastructureState()
        now = of()
        networks = networks or wanted()
        config = InfrastructureConfig(networks=networks, enable_ecr_access=registry)
        flow = Flow(now.types(), now.tasks(config, REGION, key.encode()))
        ids = flow.create(call, infrastructure(namespace), state)
        now.route_through_nat(networks, ids)
        return state

    return run


@pytest.fixture
def delete(call, namespace, network):
    def run(state: InfrastructureState) -> None:
        Flow(network().types()).delete(call, infrastructure(namespace), state)

    return run


def test_a_network_is_built_once_however_often_it_is_asked_for(build, ec2, shoot):
    first = build()
    second = build()
    assert first == second
    assert counts(ec2, shoot) == COUNTS


def test_everything_is_tagged_with_the_shoot_and_a_name(build, ec2, shoot):
    build()
    names = {
        tags.as_dict(thing)["Name"] for things in marked(ec2, shoot).values() for thing in things
    }
    assert names == {
        shoot,
        f"{shoot}-workers-eu-west-1a",
        f"{shoot}-public-eu-west-1a",
        f"{shoot}-internal-eu-west-1a",
        f"{shoot}-eip-natgw-eu-west-1a",
        f"{shoot}-natgw-eu-west-1a",
        f"{shoot}-private-eu-west-1a",
        f"{shoot}-nodes",
        f"{shoot}-ssh-publickey",
    }


def test_a_new_zone_is_added_beside_the_old_ones(build, ec2, shoot):
    build()
    state = build(wanted(*ZONES, SECOND))
    assert len(state.ids) == 20
    assert counts(ec2, shoot)["Subnet"] == 6


def test_subnets_of_a_zone_that_is_no_longer_wanted_are_deleted(build, ec2, shoot):
    state = build(wanted(*ZONES, SECOND))
    build(wanted(SECOND), state)
    assert SUBNET not in state.ids
    assert counts(ec2, shoot) == COUNTS


def node_ports(ec2, group_id) -> set[tuple[str, str]]:
    """The protocols and sources for which the group opens the node ports."""
    (group,) = ec2.request("describe_security_groups", GroupIds=[group_id])["SecurityGroups"]
    return {
        (rule["IpProtocol"], source["CidrIp"])
        for rule in group["IpPermissions"]
        if rule.get("FromPort") == 30000
        for source in rule["IpRanges"]
    }


def test_rules_of_a_zone_that_is_no_longer_wanted_are_removed_and_those_of_others_stay(build, ec2):
    state = build(wanted(*ZONES, SECOND))
    group_id = state.ids[NODES]
    both = node_ports(ec2, group_id)
    ports = {"IpProtocol": "tcp", "FromPort": 30000, "ToPort": 32767}
    outside = {("tcp", "192.168.0.0/16"), ("tcp", CIDR)}
    ranges = [{"CidrIp": cidr} for _, cidr in outside]
    ec2.request(
        "authorize_security_group_ingress",
        GroupId=group_id,
        IpPermissions=[ports | {"IpRanges": ranges}],
    )
    build(wanted(SECOND), state)
    [former] = ZONES
    gone = {
        (protocol, cidr) for protocol in ("tcp", "udp") for cidr in (former.public, former.internal)
    }
    assert node_ports(ec2, group_id) == (both - gone) | outside
    assert ("udp", SECOND.public) in both - gone


def test_a_detached_internet_gateway_is_attached_again_and_deleted_in_any_case(
    build, delete, ec2, shoot
):
    state = build()
    vpc = state.ids[NETWORK]
    gateway = {"InternetGatewayId": state.ids[GATEWAY], "VpcId": vpc}
    ec2.request("detach_internet_gateway", **gateway)
    build(state=state)
    (described,) = marked(ec2, shoot)["InternetGateway"]
    assert [attachment["VpcId"] for attachment in described["Attachments"]] == [vpc]
    ec2.request("detach_internet_gateway", **gateway)
    delete(state)
    assert counts(ec2, shoot) == {}


def test_nodes_reach_everything_through_nat_and_load_balancers_through_the_gateway(
    build, ec2, shoot
):
    """The routes, attributes and options by which AWS resolves the names of nodes."""
    ids = build().ids
    (vpc,) = marked(ec2, shoot)["VPC"]
    assert vpc["DhcpOptionsId"] == ids[OPTIONS]
    for name in ("enableDnsSupport", "enableDnsHostnames"):
        answer = ec2.request("describe_vpc_attribute", VpcId=ids[NETWORK], Attribute=name)
        assert answer[f"E{name[1:]}"]["Value"] is True
    zone = partial(in_zone, "eu-west-1a")
    tables = {table["RouteTableId"]: table for table in marked(ec2, shoot)["RouteTable"]}
    for table, target, subnets in (
        (PUBLIC_ROUTES, ("GatewayId", ids[GATEWAY]), [zone(PUBLIC)]),
        (zone(ROUTES), ("NatGatewayId", ids[zone(NAT)]), [zone(WORKERS), zone(INTERNAL)]),
    ):
        described = tables[ids[table]]
        (route,) = (one for one in described["Routes"] if one["Origin"] == "CreateRoute")
        assert target in route.items()
        found = {association["SubnetId"] for association in described["Associations"]}
        assert found == {ids[subnet] for subnet in subnets}
    (gateway,) = marked(ec2, shoot)["NatGateway"]
    assert gateway["SubnetId"] == ids[zone(PUBLIC)]
    assert gateway["NatGatewayAddresses"][0]["AllocationId"] == ids[zone(ADDRESS)]


@pytest.fixture
def existing_vpc(ec2) -> tuple[str, str]:
    """A VPC with an internet gateway, as a user makes it."""
    vpc = ec2.request("create_vpc", CidrBlock=CIDR)["Vpc"]["VpcId"]
    gateway = ec2.request("create_internet_gateway")["InternetGateway"]["InternetGatewayId"]
    ec2.request("attach_internet_gateway", VpcId=vpc, InternetGatewayId=gateway)
    ec2.request("modify_vpc_attribute", VpcId=vpc, EnableDnsHostnames={"Value": True})
    return vpc, gateway


def in_existing(vpc_id: str) -> Networks:
    return Networks(vpc=VpcConfig(id=vpc_id), zones=ZONES)


def test_an_existing_vpc_and_its_gateway_are_used_and_stay(
    build, delete, ec2, shoot, namespace, existing_vpc
):
    state = build(in_existing(existing_vpc[0]))
    assert counts(ec2, shoot) == {
        name: count
        for name, count in COUNTS.items()
        if name not in ("DHCPOptions", "VPC", "InternetGateway")
    }
    assert (state.ids[NETWORK], state.ids[GATEWAY]) == existing_vpc
    stored = InfrastructureState.from_stored(state.to_stored({}))
    reported = {one.id for one in stored.external_resources(lambda name: {})}
    assert reported == {*state.ids.values()} - {*existing_vpc}
    delete(stored)
    assert counts(ec2, shoot) == {}
    (described,) = ec2.request("describe_internet_gateways", InternetGatewayIds=existing_vpc[1:])[
        "InternetGateways"
    ]
    assert described["Attachments"][0]["VpcId"] == existing_vpc[0]


def test_an_existing_vpc_that_cannot_be_used_is_a_configuration_problem(build, ec2, existing_vpc):
    vpc, gateway = existing_vpc
    for attribute in ("EnableDnsHostnames", "EnableDnsSupport"):
        ec2.request("modify_vpc_attribute", VpcId=vpc, **{attribute: {"Value": False}})
    with pytest.raises(
        ConfigurationError, match=f"EnableDnsSupport and EnableDnsHostnames of {vpc}"
    ):
        build(in_existing(vpc))
    for attribute in ("EnableDnsSupport", "EnableDnsHostnames"):
        ec2.request("modify_vpc_attribute", VpcId=vpc, **{attribute: {"Value": True}})
    ec2.request("detach_internet_gateway", VpcId=vpc, InternetGatewayId=gateway)
    with pytest.raises(ConfigurationError, match="the existing AWS::EC2::InternetGateway is not"):
        build(in_existing(vpc))
    with pytest.raises(ConfigurationError, match="the existing AWS::EC2::VPC is not there"):
        build(in_existing("vpc-0123"))


def test_an_existing_vpc_in_a_state_of_the_other_extension_is_not_deleted(
    call, url, ec2, namespace, existing_vpc
):
    """Its entries do not tell, so the configuration does."""
    given = provider_config(NETWORKS | {"vpc": {"id": existing_vpc[0]}})
    obj = infrastructure(namespace, providerConfig=given)
    obj.status.state = {"data": {"VPC": existing_vpc[0], "InternetGateway": existing_vpc[1]}}
    actuator = AwsInfrastructure(url)
    assert list(actuator.external_resources(obj)) == []
    actuator.delete(call, obj, shoot_cluster(namespace))
    assert ec2.request("describe_vpcs", VpcIds=existing_vpc[:1])["Vpcs"]


@pytest.fixture
def nat_gateways():
    """Returns the NAT gateways of the simulated account, whose states a test can set."""
    from moto.ec2.models import ec2_backends  # moto: only for those who use it

    return lambda: ec2_backends["123456789012"][REGION].nat_gateways


def test_a_nat_gateway_is_waited_for_when_all_are_requested(build, ec2, shoot, nat_gateways):
    state = build(wanted(*ZONES, SECOND))
    gateways = [nat_gateways()[state.ids[in_zone(zone.name, NAT)]] for zone in (*ZONES, SECOND)]
    gateways[0].state = "pending"
    with pytest.raises(RequeueAfter, match=f"NAT gateway {gateways[0].id}, which is pending"):
        build(wanted(*ZONES, SECOND), state)
    gateways[0].state = "available"
    build(wanted(*ZONES, SECOND), state)
    assert counts(ec2, shoot)["NatGateway"] == 2


def test_a_failed_nat_gateway_is_replaced_and_its_route_follows(build, ec2, shoot, nat_gateways):
    state = build()
    before = dict(state.ids)
    nat = in_zone("eu-west-1a", NAT)
    nat_gateways()[before[nat]].state = "failed"
    build(state=state)
    after = dict(state.ids)
    assert after.pop(nat) != before.pop(nat)
    assert after == before, "nothing else is replaced"
    (table,) = (
        table
        for table in marked(ec2, shoot)["RouteTable"]
        if table["RouteTableId"] == after[in_zone("eu-west-1a", ROUTES)]
    )
    assert [one.get("NatGatewayId") for one in table["Routes"]][1:] == [state.ids[nat]]


def test_the_deletion_waits_until_a_nat_gateway_is_gone(
    build, delete, ec2, shoot, nat_gateways, monkeypatch
):
    from moto.ec2.models import EC2Backend

    def delete_slowly(backend, id):
        found = backend.nat_gateways[id]
        found.state = {"available": "deleting"}.get(found.state, found.state)
        return found

    monkeypatch.setattr(EC2Backend, "delete_nat_gateway", delete_slowly)
    state = build(wanted(*ZONES, SECOND))
    gateways = [nat_gateways()[state.ids[in_zone(zone.name, NAT)]] for zone in (*ZONES, SECOND)]
    for _ in range(2):
        with pytest.raises(RequeueAfter, match=r"NAT gateway .*, which is deleting"):
            delete(state)
        assert {gateway.state for gateway in gateways} == {"deleting"}, "both are requested at once"
        assert counts(ec2, shoot)["EIP"] == 2
        assert in_zone("eu-west-1a", NAT) in state.ids
        assert SUBNET not in state.ids, "nothing that needs no gateway waits"
    for gateway in gateways:
        gateway.state = "deleted"
    delete(state)
    assert counts(ec2, shoot) == {}


def test_an_existing_address_replaces_that_of_the_nat_gateway_and_stays(build, delete, ec2, shoot):
    state = build()
    own = ec2.request("allocate_address", Domain="vpc")["AllocationId"]
    networks = wanted(attrs.evolve(ZONES[0], elastic_ip_allocation_id=own))
    before = dict(state.ids)
    build(networks, state)
    changed = {name for name, id in state.ids.items() if before[name] != id}
    assert changed == {in_zone("eu-west-1a", NAT), in_zone("eu-west-1a", ADDRESS)}
    assert counts(ec2, shoot) == {name: n for name, n in COUNTS.items() if name != "EIP"}
    (gateway,) = marked(ec2, shoot)["NatGateway"]
    assert gateway["NatGatewayAddresses"][0]["AllocationId"] == own
    delete(InfrastructureState.from_stored(state.to_stored({})))
    assert ec2.request("describe_addresses", AllocationIds=[own])["Addresses"]


def test_a_changed_or_removed_key_changes_the_key_pair_alone(build, ec2, shoot):
    state = build()
    first = marked(ec2, shoot)["KeyPair"][0]["KeyPairId"]
    build(state=state, key=f"{PUBLIC_KEY.rpartition(' ')[0]} another comment")
    assert marked(ec2, shoot)["KeyPair"][0]["KeyPairId"] == first
    build(state=state, key=PUBLIC_KEY.replace("pzSk", "pzSg"))
    assert marked(ec2, shoot)["KeyPair"][0]["KeyPairId"] != first
    build(state=state, key="")
    assert counts(ec2, shoot) == {name: n for name, n in COUNTS.items() if name != "KeyPair"}


def test_nodes_have_the_permissions_of_the_configuration(build, account, shoot):
    names = {"RoleName": f"{shoot}-nodes", "PolicyName": f"{shoot}-nodes"}
    iam = account.service("iam", REGION)
    for registry in (True, False):
        build(registry=registry)
        statements = iam.request("get_role_policy", **names)["PolicyDocument"]["Statement"]
        actions = [action for statement in statements for action in statement["Action"]]
        assert "ec2:DescribeInstances" in actions
        assert ("ecr:BatchGetImage" in actions) is registry
    profile = iam.request("get_instance_profile", InstanceProfileName=f"{shoot}-nodes")
    assert [role["RoleName"] for role in profile["InstanceProfile"]["Roles"]] == [f"{shoot}-nodes"]


def test_a_role_of_another_owner_is_never_adopted(build, account, shoot):
    name = f"{shoot}-nodes"
    iam = account.service("iam", REGION)
    iam.request("create_role", RoleName=name, AssumeRolePolicyDocument=TRUST)
    with pytest.raises(ActuatorError, match="create_role: EntityAlreadyExists") as error:
        build()
    assert error.value.codes == (ErrorCode.ERR_CONFIGURATION_PROBLEM,)
    iam.request("delete_role", RoleName=name)


def test_missing_rules_are_added_and_those_of_others_stay(network, build, ec2):
    group_id = build().ids[NODES]
    foreign = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22}
    ssh = foreign | {"IpRanges": [{"CidrIp": "10.0.0.0/8"}]}
    node_ports = {"IpProtocol": "tcp", "FromPort": 30000, "ToPort": 32767}
    ec2.request("authorize_security_group_ingress", GroupId=group_id, IpPermissions=[ssh])
    ec2.request(
        "revoke_security_group_ingress",
        GroupId=group_id,
        IpPermissions=[node_ports | {"IpRanges": [{"CidrIp": "0.0.0.0/0"}]}],
    )
    build()
    (group,) = ec2.request("describe_security_groups", GroupIds=[group_id])["SecurityGroups"]
    rules = {(rule["IpProtocol"], rule.get("FromPort")) for rule in group["IpPermissions"]}
    assert rules == {("-1", None), ("tcp", 22), ("tcp", 30000), ("udp", 30000)}


def test_a_second_vpc_with_the_same_mark_is_an_error_that_names_both(network, build):
    ids = sorted(
        network().creates(NETWORK, "create_vpc", {"CidrBlock": CIDR})({}) for _ in range(2)
    )
    with pytest.raises(ActuatorError, match=r"more than one AWS::EC2::VPC") as error:
        build()
    assert f"{ids[0]}, {ids[1]}" in error.value.message
    assert error.value.codes == (ErrorCode.ERR_INFRA_DEPENDENCIES,)


def test_a_second_subnet_of_the_same_name_is_an_error(network, build):
    state = build()
    place = {"VpcId": state.ids[NETWORK], "CidrBlock": "10.250.128.0/20"}
    network().creates(SUBNET, "create_subnet", place)({})
    with pytest.raises(ActuatorError, match=f"{SUBNET}: there is more than one AWS::EC2::Subnet"):
        build()


def test_a_vpc_that_lost_its_tag_stops_the_creation(network, build, ec2):
    state = build()
    id = state.ids[NETWORK]
    (key,) = tags.mark(network().technical_id)
    ec2.request("delete_tags", Resources=[id], Tags=[{"Key": key}])
    before = dict(state.ids)
    with pytest.raises(ActuatorError, match=f"AWS::EC2::VPC {id} has lost its tag"):
        build(state=state)
    assert state.ids == before


def test_a_subnet_deleted_externally_is_created_again(network, build, ec2):
    state = build()
    old = state.ids[SUBNET]
    ec2.remove("delete_subnet", SubnetId=old)
    assert build(state=state).ids[SUBNET] != old


def test_another_range_for_an_existing_network_is_a_configuration_problem(network, build):
    build()
    with pytest.raises(ConfigurationError, match=r"networks.vpc.cidr: 10.0.0.0/16 differs from"):
        build(wanted(cidr="10.0.0.0/16"))
    other = attrs.evolve(ZONES[0], public="10.250.128.0/20")
    with pytest.raises(ConfigurationError, match=r"zones\[0\].public: 10.250.128.0/20 differs"):
        build(wanted(other))


def test_deletion_goes_in_the_order_of_dependence_and_leaves_nothing(
    build, delete, ec2, shoot, account
):
    state = build()
    assert len(roles(account, shoot)) == 2
    delete(state)
    assert state.resources == []
    assert counts(ec2, shoot) == {}
    assert roles(account, shoot) == []


def test_deleting_a_deleted_network_is_success(build, delete):
    state = build()
    again = InfrastructureState.from_stored(state.to_stored({}))
    delete(state)
    delete(again)
    assert again.resources == []


def test_deletion_takes_nothing_of_another_shoot(build, delete, cloud, ec2, shoot):
    build(of=lambda: ShootNetwork(cloud, f"{shoot}-2"))
    delete(build())
    assert counts(ec2, f"{shoot}-2") == COUNTS


def test_a_resource_of_a_user_in_the_vpc_blocks_and_deleted_ones_are_no_longer_recorded(
    build, delete, ec2, shoot
):
    state = build()
    id = state.ids[NETWORK]
    ec2.request("create_route_table", VpcId=id)
    with pytest.raises(ActuatorError, match="DependencyViolation") as error:
        delete(state)
    assert error.value.codes == (ErrorCode.ERR_INFRA_DEPENDENCIES,)
    assert state.ids == {NETWORK: id, OPTIONS: state.ids[OPTIONS]}
    assert counts(ec2, shoot) == {"VPC": 1, "DHCPOptions": 1}


@pytest.fixture
def control(namespace):
    return control_plane(namespace)


def test_an_address_is_allocated_once_and_released(url, call, control, ec2, namespace):
    plane = Configured(AwsControlPlane(url))
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
    name = tags.address_mark(namespace)[tags.NAME]
    made = [marked.create("allocate_address", ELASTIC_IP, name, Domain="vpc") for _ in range(2)]
    ids = sorted(ELASTIC_IP.ids(made))
    with pytest.raises(ActuatorError, match=f"{ids[0]}, {ids[1]}"):
        AwsControlPlane(url)._ensure_address(call, control)
