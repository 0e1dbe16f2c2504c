"""The actuators on the embedded cluster and the simulated cloud, called as a manager calls them."""

from __future__ import annotations

from typing import Any

import pytest

from actuator import Actuator, ActuatorError, ConfigurationError, ErrorCode, RequeueAfter
from actuator.cluster import Cluster
from actuator.codec import encode
from actuator.errors import NotFound
from actuator.interface import Resource
from actuator.meta import Raw
from actuator.v1alpha1 import ControlPlane, Infrastructure
from extensions.aws import parts, tags
from extensions.aws.config import API_VERSION
from extensions.aws.controlplane import AwsControlPlane
from extensions.aws.infrastructure import AwsInfrastructure
from extensions.aws.seed import (
    BINDING_FINALIZER,
    BINDINGS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    TargetGroupBinding,
)
from generic.kube.crds import crd
from generic.testing.seed import install_crds
from tests.support.aws.objects import (
    REGION,
    RESOURCES,
    Call,
    control_plane,
    infrastructure,
    provider_config,
    shoot_cluster,
)
from tests.support.objects.configured import Configured
from tests.support.objects.present import present

SECRETS = Resource("v1", "secrets")


@pytest.fixture(autouse=True)
def bindings(admin) -> None:
    """The CRD of the AWS load balancer controller."""
    install_crds(admin, [crd(TargetGroupBinding)])


@pytest.fixture
def key(shoot_key):
    return shoot_key


@pytest.fixture
def cluster(namespace) -> Cluster:
    return shoot_cluster(namespace)


@pytest.fixture
def network(url) -> Any:
    return Configured(AwsInfrastructure(url))


@pytest.fixture
def plane(url) -> Any:
    return Configured(AwsControlPlane(url))


@pytest.fixture
def infra(namespace) -> Infrastructure:
    return infrastructure(namespace)


@pytest.fixture
def control(namespace) -> ControlPlane:
    return control_plane(namespace)


def vpcs(ec2, shoot) -> list[str]:
    return [
        vpc["VpcId"]
        for vpc in ec2.items("describe_vpcs", "Vpcs", Filters=tags.filters(tags.mark(shoot)))
    ]


def addresses(ec2, shoot) -> list[str]:
    found = ec2.items("describe_addresses", "Addresses", Filters=tags.filters(tags.mark(shoot)))
    return [address["AllocationId"] for address in found]


def recorded(actuator: Actuator, obj) -> list[tuple[str, str]]:
    return [
        (external_resource.type.rpartition("::")[2], external_resource.id)
        for external_resource in actuator.external_resources(obj)
    ]


def test_an_infrastructure_reports_its_network(network, call, infra, cluster, ec2, namespace):
    network.reconcile(call, infra, cluster)
    status = encode(infra.status)
    assert status["nodesCIDR"] == "10.250.0.0/16"
    assert status["networking"] == {
        "nodes": ["10.250.0.0/16"],
        "pods": ["100.96.0.0/11"],
        "services": ["100.64.0.0/13"],
    }
    assert status["providerStatus"].keys() == {"apiVersion", "kind", "ec2", "iam", "vpc"}
    nodes = f"{namespace}-nodes"
    assert status["providerStatus"]["ec2"] == {"keyName": f"{namespace}-ssh-publickey"}
    assert status["providerStatus"]["iam"] == {
        "instanceProfiles": [{"purpose": "nodes", "name": nodes}],
        "roles": [{"purpose": "nodes", "arn": f"arn:aws:iam::123456789012:role/{nodes}"}],
    }
    assert status["providerStatus"]["kind"] == "InfrastructureStatus"
    assert status["providerStatus"]["vpc"]["id"] == vpcs(ec2, namespace)[0]
    assert status["state"]["kind"] == "InfrastructureState"
    assert status["state"]["data"]["VPC"] == vpcs(ec2, namespace)[0]
    assert sorted(kind for kind, _ in recorded(network, infra)) == RESOURCES
    ids = [id for kind, id in recorded(network, infra) if kind == "EIP"]
    (address,) = ec2.request("describe_addresses", AllocationIds=ids)["Addresses"]
    assert status["egressCIDRs"] == [f"{address['PublicIp']}/32"]
    assert all(
        external_resource.id and external_resource.region == REGION
        for external_resource in network.external_resources(infra)
    )


def test_each_resource_is_saved_before_it_is_requested_and_its_id_before_the_next(
    network, call, infra, cluster, ec2, namespace
):
    seen = []

    def look(status):
        resources = status["state"]["data"]
        seen.append([bool(id) for id in resources.values()])
        assert len(recorded(network, infra)) == len(resources)

    call.on_save = look
    network.reconcile(call, infra, cluster)
    assert seen == [[True] * known + [False] for known in range(14)]
    network.reconcile(call, infra, cluster)
    assert len(seen) == 14, "nothing new is saved ahead"


@pytest.mark.parametrize("crash_at", [1, 2, 5])
def test_a_crash_at_a_save_creates_nothing_twice(
    network, call, infra, cluster, ec2, namespace, crash_at
):
    class Crash(BaseException):
        pass

    def crash(status):
        if len(call.saved) == crash_at:
            raise Crash

    call.on_save = crash
    with pytest.raises(Crash):
        network.reconcile(call, infra, cluster)
    again = infrastructure(namespace)  # nothing got into the API server
    network.reconcile(Call(call.client, namespace), again, cluster)
    assert len(vpcs(ec2, namespace)) == 1
    assert present(again.status.provider_status)["vpc"]["id"] == vpcs(ec2, namespace)[0]


def test_resources_created_before_an_error_are_in_the_status(
    network, call, infra, cluster, account, ec2, namespace
):
    def revoke(status):
        if len(call.saved) == 2:
            account.delete_policy(namespace)

    call.on_save = revoke
    with pytest.raises(ActuatorError) as error:
        network.reconcile(call, infra, cluster)
    assert error.value.codes == (ErrorCode.ERR_INFRA_UNAUTHORIZED,)
    options, vpc = network.external_resources(infra)
    assert options.type == "AWS::EC2::DHCPOptions"
    assert options.id
    assert (vpc.type, vpc.id) == ("AWS::EC2::VPC", "")
    assert vpc.tags == {**tags.mark(namespace), "Name": namespace}


def test_a_deleted_infrastructure_leaves_nothing(network, call, infra, cluster, ec2, namespace):
    network.reconcile(call, infra, cluster)
    network.delete(call, infra, cluster)
    assert vpcs(ec2, namespace) == []
    assert recorded(network, infra) == []
    network.delete(call, infra, cluster)


@pytest.mark.parametrize("kind", ["network", "plane"])
def test_an_object_never_created_is_deleted_without_secret_and_cloud(
    kind, request, admin, namespace, cluster
):
    actuator = request.getfixturevalue(kind)
    make = infrastructure if kind == "network" else control_plane
    obj = make(namespace)
    assert recorded(actuator, obj) == []
    actuator.delete(Call(admin, namespace), obj, cluster)


def test_revoked_credentials_block_the_deletion_and_nothing_is_forgotten(
    network, plane, call, infra, control, cluster, account, key, namespace
):
    network.reconcile(call, infra, cluster)
    plane.reconcile(call, control, cluster)
    before = recorded(network, infra), recorded(plane, control)
    account.set_access_key(namespace, key, active=False)
    for actuator, obj in ((network, infra), (plane, control)):
        with pytest.raises(ActuatorError, match="AuthFailure") as error:
            actuator.delete(call, obj, cluster)
        assert error.value.codes == (ErrorCode.ERR_INFRA_UNAUTHENTICATED,)
    assert (recorded(network, infra), recorded(plane, control)) == before


def test_an_invalid_configuration_never_reaches_the_cloud(network, call, namespace, cluster, ec2):
    broken = provider_config() | {"networks": {}}
    infra = infrastructure(namespace, providerConfig=broken)
    with pytest.raises(ConfigurationError, match="required field missing"):
        network.reconcile(call, infra, cluster)
    assert vpcs(ec2, namespace) == []
    assert infra.status.provider_status is None


def test_a_changed_vpc_range_is_refused_by_name(network, call, infra, namespace, cluster):
    network.reconcile(call, infra, cluster)
    networks: Raw = {"vpc": {"cidr": "10.0.0.0/16"}, "zones": []}
    networks["zones"] = [
        {
            "name": "eu-west-1a",
            "workers": "10.0.0.0/19",
            "public": "10.0.32.0/20",
            "internal": "10.0.48.0/20",
        }
    ]
    changed = infrastructure(namespace, providerConfig=provider_config(networks))
    changed.status = infra.status
    with pytest.raises(ConfigurationError, match=f"Infrastructure {namespace}/shoot: spec.prov"):
        network.reconcile(call, changed, cluster)


def test_another_seed_takes_over_by_state_alone(network, call, infra, cluster, ec2, namespace):
    network.reconcile(call, infra, cluster)
    network.migrate(call, infra, cluster)
    there = infrastructure(namespace)
    there.status.state = infra.status.state
    assert recorded(network, there) == recorded(network, infra)
    call.saved.clear()
    network.restore(call, there, cluster)
    assert there.status.provider_status == infra.status.provider_status
    assert len(vpcs(ec2, namespace)) == 1
    assert call.saved == []


@pytest.mark.parametrize("state", [{"vpc": []}, {"data": {"VPC": 1}}, {"data": "{"}])
def test_a_state_that_is_not_ours_is_an_error_and_everything_may_exist(
    network, call, infra, cluster, state
):
    infra.status.state = state
    for operation in (network.restore, network.delete):
        with pytest.raises(ActuatorError, match="is no InfrastructureState"):
            operation(call, infra, cluster)
    types = {type.name.rpartition("::")[2] for type in parts.TYPES}
    assert sorted(recorded(network, infra)) == sorted((type, "") for type in types)


def test_a_control_plane_has_an_address_a_configuration_and_a_binding(
    plane, call, control, cluster, ec2, namespace
):
    plane.reconcile(call, control, cluster)
    (id,) = addresses(ec2, namespace)
    assert control.status.provider_status["allocationId"] == id
    assert control.status.provider_status["publicIP"]
    assert recorded(plane, control) == [("EIP", id)]
    config = call.client.get(CONFIG_MAPS, "cloud-provider-config", namespace)
    assert f"KubernetesClusterID={namespace}\n" in config["data"]["cloudprovider.conf"]
    binding = call.client.get(BINDINGS, "kube-apiserver", namespace)
    assert binding["metadata"]["finalizers"] == [BINDING_FINALIZER]


def test_rotated_credentials_and_a_changed_configuration_roll_the_cloud_controller_manager(
    plane, call, control, cluster, namespace
):
    def annotations():
        plane.reconcile(call, control, cluster)
        found = call.client.get(DEPLOYMENTS, "cloud-controller-manager", namespace)
        return found["spec"]["template"]["metadata"]["annotations"]

    first = annotations()
    secret = "checksum/secret-cloudprovider"
    config = "checksum/configmap-cloud-provider-config"
    assert first.keys() == {secret, config}
    rotated = {"stringData": {"unread": "changed"}}
    call.client.patch(SECRETS, control.spec.secret_ref.name, namespace, rotated)
    second = annotations()
    assert (second[secret] != first[secret], second[config] == first[config]) == (True, True)
    gates = {"cloudControllerManager": {"featureGates": {"New": True}}}
    config_of_shoot = {"apiVersion": API_VERSION, "kind": "ControlPlaneConfig", **gates}
    control = control_plane(namespace, providerConfig=config_of_shoot)
    third = annotations()
    assert (third[secret] == second[secret], third[config] != second[config]) == (True, True)


def test_the_vpc_of_the_infrastructure_gets_into_the_configuration(
    network, plane, call, infra, cluster, namespace
):
    network.reconcile(call, infra, cluster)
    reported = infra.status.provider_status
    control = control_plane(namespace, infrastructureProviderStatus=reported)
    plane.reconcile(call, control, cluster)
    config = call.client.get(CONFIG_MAPS, "cloud-provider-config", namespace)
    assert f"VPC={reported['vpc']['id']}\n" in config["data"]["cloudprovider.conf"]


def test_a_finalizer_removed_by_its_controller_is_not_added_again(
    plane, call, control, cluster, ec2, namespace
):
    plane.reconcile(call, control, cluster)
    call.client.patch(BINDINGS, "kube-apiserver", namespace, {"metadata": {"finalizers": None}})
    plane.reconcile(call, control, cluster)
    binding = call.client.get(BINDINGS, "kube-apiserver", namespace)
    assert "finalizers" not in binding["metadata"]
    assert len(addresses(ec2, namespace)) == 1


@pytest.mark.parametrize("operation", ["delete", "migrate"])
def test_a_held_binding_is_waited_for_by_name_and_never_stripped(
    plane, call, control, cluster, ec2, namespace, operation
):
    plane.reconcile(call, control, cluster)
    act = getattr(plane, operation)
    for _ in range(2):
        with pytest.raises(RequeueAfter) as waiting:
            act(call, control, cluster)
        assert str(waiting.value.cause) == (
            "Waiting for the deletion of targetgroupbindings.elbv2.k8s.aws kube-apiserver "
            f"(held by {BINDING_FINALIZER})"
        )
        assert isinstance(waiting.value.cause, ActuatorError)
        assert waiting.value.cause.codes == (ErrorCode.ERR_CLEANUP_CLUSTER_RESOURCES,)
    assert len(addresses(ec2, namespace)) == (1 if operation == "migrate" else 0)
    call.client.patch(BINDINGS, "kube-apiserver", namespace, {"metadata": {"finalizers": None}})
    act(call, control, cluster)
    with pytest.raises(NotFound):
        call.client.get(CONFIG_MAPS, "cloud-provider-config", namespace)


def test_a_forced_deletion_strips_the_binding_and_needs_no_cloud(
    plane, call, control, cluster, account, key, namespace, ec2
):
    plane.reconcile(call, control, cluster)
    account.set_access_key(namespace, key, active=False)
    plane.force_delete(call, control, cluster)
    assert call.stripped == [BINDING_FINALIZER]
    for resource, name in ((BINDINGS, "kube-apiserver"), (CONFIG_MAPS, "cloud-provider-config")):
        with pytest.raises(NotFound):
            call.client.get(resource, name, namespace)
    assert recorded(plane, control) == [("EIP", addresses(ec2, namespace)[0])]


def test_an_object_of_another_owner_is_not_taken_over(plane, call, control, cluster, namespace):
    foreign = {"name": "cloud-provider-config", "namespace": namespace}
    call.client.create(
        CONFIG_MAPS,
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": foreign, "data": {"a": "b"}},
    )
    with pytest.raises(ActuatorError, match=r"configmaps .*cloud-provider-config exists without"):
        plane.reconcile(call, control, cluster)
    assert call.client.get(CONFIG_MAPS, "cloud-provider-config", namespace)["data"] == {"a": "b"}


SECRET_FAULTS = {
    "no access key": ({"accessKeyID": None}, "has no data key accessKeyID; add it"),
    "no secret key": ({"secretAccessKey": None}, "has no data key secretAccessKey; add it"),
    "empty": ({"accessKeyID": ""}, "has no data key accessKeyID; add it"),
    "newline": ({"secretAccessKey": "cGxhbnRlZAo="}, "data key secretAccessKey: no plain text"),
    "binary": ({"secretAccessKey": "/+7d"}, "data key secretAccessKey: no plain text"),
}


@pytest.mark.parametrize("fault", SECRET_FAULTS)
def test_a_broken_secret_is_a_configuration_problem_that_does_not_show_it(
    network, call, infra, cluster, namespace, fault
):
    change, said = SECRET_FAULTS[fault]
    call.client.patch(SECRETS, "cloudprovider", namespace, {"data": change})
    with pytest.raises(ConfigurationError, match=r"Infrastructure .*: spec.secretRef") as error:
        network.reconcile(call, infra, cluster)
    assert f"Secret {namespace}/cloudprovider" in error.value.message
    assert said in error.value.message
    assert "planted" not in error.value.message
    assert "cGxh" not in error.value.message


def test_a_missing_secret_is_a_configuration_problem(network, call, infra, cluster, namespace):
    call.client.delete(SECRETS, "cloudprovider", namespace)
    with pytest.raises(ConfigurationError, match="does not exist; create it with the data keys"):
        network.reconcile(call, infra, cluster)
