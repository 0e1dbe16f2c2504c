"""Worker: machine classes for EC2, one for each pool and zone."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import attrs
import pytest

from actuator import ActuatorError, ConfigurationError, ErrorCode, RequeueAfter, Resource
from actuator.provider_config import Configurations
from actuator.v1alpha1 import Worker
from extensions.aws import tags
from extensions.aws.cloud import Credentials
from extensions.aws.config import API_VERSION, WorkerConfig
from extensions.aws.machineclass import access, amis, interface, provider_spec
from extensions.aws.status import infrastructure_of
from extensions.aws.worker import AwsWorker
from generic.kube.crds import crd
from generic.library.machines import (
    MACHINE_CLASSES,
    MACHINE_DEPLOYMENTS,
    MACHINE_KINDS,
    MCM_FINALIZER,
)
from generic.testing.seed import install_crds
from tests.support.aws.objects import REGION, Call, secret, shoot_cluster, worker
from tests.support.objects.configured import Configured
from tests.support.objects.present import present

AMI = "ami-12c6146b"
ARM = "ami-1812c061"
IMAGES = [
    {
        "name": "gardenlinux",
        "versions": [
            {
                "version": "1.0.0",
                "regions": [
                    {"name": "us-east-1", "ami": "ami-elsewhere"},
                    {"name": REGION, "ami": ARM, "architecture": "arm64"},
                    {"name": REGION, "ami": AMI},
                ],
            }
        ],
    }
]
NETWORK = {
    "apiVersion": API_VERSION,
    "kind": "InfrastructureStatus",
    "ec2": {"keyName": "s-ssh-publickey"},
    "iam": {"instanceProfiles": [{"purpose": "nodes", "name": "s-nodes"}], "roles": []},
    "vpc": {
        "id": "vpc-1",
        "subnets": [
            {"id": "subnet-a", "purpose": "nodes", "zone": "eu-west-1a"},
            {"id": "subnet-p", "purpose": "public", "zone": "eu-west-1a"},
            {"id": "subnet-b", "purpose": "nodes", "zone": "eu-west-1b"},
        ],
        "securityGroups": [{"id": "sg-nodes", "purpose": "nodes"}],
    },
}


def pool(name: str = "pool", **more: object) -> dict:
    return {
        "name": name,
        "machineType": "m5.large",
        "machineImage": {"name": "gardenlinux", "version": "1.0.0"},
        "minimum": 1,
        "maximum": 5,
        "maxSurge": 1,
        "maxUnavailable": 0,
        "nodeAgentSecretName": "agent",
        "userDataSecretRef": {"name": "user-data", "key": "cloud_config"},
        "zones": ["eu-west-1a", "eu-west-1b"],
    } | more


def made(namespace: str, *pools: dict, **spec: object) -> Worker:
    return worker(namespace, *pools, **({"infrastructureProviderStatus": NETWORK} | spec))


def images_of(obj: Worker, cluster) -> list[str]:
    configurations = Configurations(WorkerConfig, obj)
    configs = [configurations.get(index) for index in range(len(obj.spec.pools))]
    return amis(obj, configs, cluster)


def spec_of(obj: Worker, zone: str = "eu-west-1a", cluster=None) -> dict:
    cluster = cluster or shoot_cluster(obj.metadata.namespace, IMAGES)
    [pool] = obj.spec.pools
    place = interface(obj, pool, zone, infrastructure_of(obj).vpc)
    config = attrs.evolve(Configurations(WorkerConfig, obj).get(0), ami=images_of(obj, cluster)[0])
    spec = provider_spec(obj, pool, place, config, cluster.technical_id)
    return {**spec, **access(config, infrastructure_of(obj))}


def test_machines_stand_in_their_zone_and_carry_the_shoots_mark():
    obj = made("shoot--a--b", pool(labels={"team": "blue"}))
    for zone, subnet in (("eu-west-1a", "subnet-a"), ("eu-west-1b", "subnet-b")):
        spec = spec_of(obj, zone)
        assert spec == {
            "ami": AMI,
            "region": REGION,
            "machineType": "m5.large",
            "networkInterfaces": [{"subnetID": subnet, "securityGroupIDs": ["sg-nodes"]}],
            "tags": {
                **tags.mark("shoot--a--b"),
                "kubernetes.io/role/node": "1",
                "team": "blue",
            },
            "instanceMetadataOptions": {"httpTokens": "required"},
            "blockDevices": [],
            "keyName": "s-ssh-publickey",
            "iam": {"name": "s-nodes"},
        }


def test_disks_are_encrypted_unless_asked_otherwise_and_go_with_the_machine():
    volumes = [{"name": "a", "size": "20Gi", "encrypted": False}, {"name": "b", "size": "30Gi"}]
    obj = made("s", pool(volume={"size": "50Gi", "type": "gp3"}, dataVolumes=volumes))
    gone = {"deleteOnTermination": True}
    assert spec_of(obj)["blockDevices"] == [
        {
            "deviceName": "/root",
            "ebs": gone | {"volumeSize": 50, "encrypted": True, "volumeType": "gp3"},
        },
        {"deviceName": "/dev/sdf", "ebs": gone | {"volumeSize": 20, "encrypted": False}},
        {"deviceName": "/dev/sdg", "ebs": gone | {"volumeSize": 30, "encrypted": True}},
    ]


def test_the_image_is_the_profiles_for_region_and_architecture():
    assert spec_of(made("s", pool(architecture="arm64")))["ami"] == ARM


def test_machines_have_the_role_and_the_key_of_the_infrastructure():
    spec = spec_of(made("s", pool()))
    assert (spec["keyName"], spec["iam"]) == ("s-ssh-publickey", {"name": "s-nodes"})
    without = {name: value for name, value in NETWORK.items() if name not in ("ec2", "iam")}
    spec = spec_of(made("s", pool(), infrastructureProviderStatus=without))
    assert spec.keys().isdisjoint({"keyName", "iam"})


def test_a_pool_may_say_image_and_role_itself():
    config = {"apiVersion": API_VERSION, "kind": "WorkerConfig"}
    config |= {"ami": "ami-own", "iamInstanceProfile": "nodes"}
    spec = spec_of(made("s", pool(providerConfig=config)), cluster=shoot_cluster("s"))
    assert (spec["ami"], spec["iam"]) == ("ami-own", {"name": "nodes"})


FAULTS = {
    "no network": (
        made("s", pool(), infrastructureProviderStatus=None),
        "spec.infrastructureProviderStatus names no VPC; the Infrastructure has to be ready first",
    ),
    "odd network": (
        made("s", pool(), infrastructureProviderStatus={"vpc": []}),
        "spec.infrastructureProviderStatus is no InfrastructureStatus of AWS",
    ),
    "odd config": (
        made("s", pool(providerConfig={"kind": "Nonsense"})),
        r"spec.pools\[0\].providerConfig: .* set apiVersion .* and kind WorkerConfig",
    ),
    "unknown field": (
        made("s", pool(providerConfig={"nonsense": 1})),
        r"spec.pools\[0\].providerConfig: .*nonsense",
    ),
    "odd size": (
        made("s", pool(volume={"size": "50 GB"})),
        r"spec.pools\[0\].volume.size: '50 GB' is no size that AWS takes; write it like \"50Gi\"",
    ),
    "odd image": (
        made("s", pool(machineImage={"name": "other", "version": "1"})),
        rf"spec.pools\[0\].machineImage: other 1 amd64 in {REGION} is neither .*; add it to",
    ),
    "no image": (
        made("s", pool(machineImage=None)),
        r"spec.pools\[0\].machineImage: expected an image, got none; set it in the Shoot",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_with_its_field(fault):
    obj, said = FAULTS[fault]
    with pytest.raises(ConfigurationError, match=f"Worker s/shoot: {said}") as caught:
        spec_of(obj)
    assert caught.value.codes == (ErrorCode.ERR_CONFIGURATION_PROBLEM,)


def test_a_zone_without_a_subnet_is_a_fault():
    with pytest.raises(ConfigurationError, match=r"pools\[0\].zones: .* no subnet for workers in"):
        spec_of(made("s", pool()), "eu-west-1c")


def test_a_worker_keeps_the_images_that_it_uses_and_survives_their_removal_from_the_cloud_profile():
    obj = made("s", pool(), pool("arm", architecture="arm64"), pool("own", providerConfig=CONFIG))
    assert images_of(obj, shoot_cluster("s", IMAGES)) == [AMI, ARM, "ami-own"]
    status = present(obj.status.provider_status)
    assert (status["apiVersion"], status["kind"]) == (API_VERSION, "WorkerStatus")
    image = {"name": "gardenlinux", "version": "1.0.0"}
    arm = {**image, "ami": ARM, "architecture": "arm64"}
    assert status["machineImages"] == [{**image, "ami": AMI}, arm]
    assert images_of(obj, shoot_cluster("s")) == [AMI, ARM, "ami-own"]
    only = made("s", pool("arm", architecture="arm64"))
    only.status.provider_status = status
    assert images_of(only, shoot_cluster("s")) == [ARM]
    assert present(only.status.provider_status)["machineImages"] == [arm]


USER_DATA = {"name": "user-data", "key": "cloud_config"}


@pytest.fixture
def seed_call(admin, namespace) -> Call:
    """A Context in a namespace with the user data of machines."""
    install_crds(admin, [crd(cls) for cls in MACHINE_KINDS])
    meta = {"name": USER_DATA["name"], "namespace": namespace}
    data = {USER_DATA["key"]: "IyEvYmluL3NoCg=="}
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}
    admin.create(Resource("v1", "secrets"), manifest)
    admin.create(Resource("v1", "secrets"), secret(namespace, Credentials("key", "private")))
    return Call(admin, namespace)


@pytest.fixture
def workers() -> Configured:
    return Configured(AwsWorker())


def cluster_of(namespace: str):
    cluster = shoot_cluster(namespace, IMAGES)
    cluster.spec.shoot["spec"]["kubernetes"] = {"version": "1.33.1"}
    return cluster


def test_each_zone_has_its_class_and_its_share_of_the_pool(workers, seed_call, namespace):
    obj = made(namespace, pool())
    with suppress(RequeueAfter):  # nobody makes machines here
        workers.reconcile(seed_call, obj, cluster_of(namespace))
    client = seed_call.client
    deployments = {
        obj["metadata"]["name"]: obj["spec"] for obj in client.list(MACHINE_DEPLOYMENTS, namespace)
    }
    assert set(deployments) == {f"{namespace}-pool-z1", f"{namespace}-pool-z2"}
    status = present(obj.status.provider_status)
    assert "technicalID" not in status, "the namespace is the technical ID"
    shares = {
        machine_deployment.name: (machine_deployment.minimum, machine_deployment.maximum)
        for machine_deployment in obj.status.machine_deployments
    }
    assert shares == {f"{namespace}-pool-z1": (1, 3), f"{namespace}-pool-z2": (0, 2)}
    classes = {obj["metadata"]["name"]: obj for obj in client.list(MACHINE_CLASSES, namespace)}
    first = classes[deployments[f"{namespace}-pool-z1"]["template"]["spec"]["class"]["name"]]
    assert first["provider"] == "AWS"
    assert first["providerSpec"]["ami"] == AMI
    assert first["providerSpec"]["networkInterfaces"][0]["subnetID"] == "subnet-a"
    assert first["credentialsSecretRef"] == {"name": "cloudprovider", "namespace": namespace}
    secret = client.get(Resource("v1", "secrets"), first["secretRef"]["name"], namespace)
    assert secret["data"] == {"userData": "IyEvYmluL3NoCg=="}


@pytest.fixture
def class_of(workers, seed_call, namespace):
    """The name of the first class of a pool."""

    def name(**more: Any) -> str:
        obj = made(namespace, pool(**more))
        seed_call.configurations = Configurations(WorkerConfig, obj)
        return workers.machine_deployments(seed_call, obj, cluster_of(namespace))[0].class_name

    return name


CONFIG = {"apiVersion": API_VERSION, "kind": "WorkerConfig", "ami": "ami-own"}


def test_another_disk_or_config_is_another_class_and_the_same_is_the_same(class_of):
    names = {
        class_of(),
        class_of(volume={"size": "50Gi"}),
        class_of(volume={"size": "50Gi", "encrypted": False}),
        class_of(providerConfig=CONFIG),
        class_of(nodeAgentSecretName="other"),
    }
    assert len(names) == 5
    assert class_of(maximum=9) in names


def test_disks_and_config_change_no_class_of_a_pool_with_in_place_updates(class_of):
    given = {"updateStrategy": "AutoInPlaceUpdate", "volume": {"size": "50Gi", "encrypted": True}}
    before = class_of(**given)
    assert class_of(**given, providerConfig=CONFIG, dataVolumes=[{"name": "a", "size": "1Gi"}]) == (
        before
    )
    assert class_of(**given, machineImage={"name": "gardenlinux", "version": "1.0.0"}) == before
    assert class_of(**given, kubernetesVersion="1.34.0") != before
    assert class_of(**given | {"volume": {"size": "50Gi", "encrypted": False}}) != before


def test_a_pool_without_zones_is_a_configuration_problem(class_of, namespace):
    path = rf"Worker {namespace}/shoot: spec.pools\[0\].zones: expected at least one zone"
    with pytest.raises(ConfigurationError, match=path):
        class_of(zones=[])


def test_names_and_tags_carry_the_technical_id_where_the_namespace_differs(
    workers, seed_call, namespace
):
    obj = made(namespace, pool())
    cluster = cluster_of(namespace)
    cluster.spec.shoot["status"]["technicalID"] = "shoot--self--hosted"
    obj.status.provider_status = {"kept": 1}
    with suppress(RequeueAfter):
        workers.reconcile(seed_call, obj, cluster)
    names = {obj["metadata"]["name"] for obj in seed_call.client.list(MACHINE_CLASSES, namespace)}
    assert all(name.startswith("shoot--self--hosted-pool-z") for name in names), names
    mark = tags.mark("shoot--self--hosted")
    for item in seed_call.client.list(MACHINE_CLASSES, namespace):
        assert mark.items() <= item["providerSpec"]["tags"].items()
    (left,) = workers.external_resources(obj)
    assert left.tags == mark
    kept = {"kept": 1, "technicalID": "shoot--self--hosted"}
    assert kept.items() <= obj.status.provider_status.items()


def test_missing_user_data_is_a_configuration_problem(workers, seed_call, namespace):
    obj = made(namespace, pool(userDataSecretRef={"name": "absent", "key": "k"}))
    path = rf"Worker {namespace}/shoot: spec.pools\[0\].userDataSecretRef: there is no Secret "
    with pytest.raises(ConfigurationError, match=f"{path}{namespace}/absent with the data key k;"):
        workers.reconcile(seed_call, obj, cluster_of(namespace))


REVOKED = (
    "Cloud provider message - machine codes error: code = [Internal] message = [AuthFailure: AWS "
    "was not able to validate the provided access credentials]"
)


def test_revoked_credentials_are_a_code_in_a_deletion_that_lets_the_user_force_it(
    workers, seed_call, namespace
):
    obj = made(namespace, pool())
    cluster = cluster_of(namespace)
    client = seed_call.client
    with suppress(RequeueAfter):
        workers.reconcile(seed_call, obj, cluster)
    held = {"metadata": {"finalizers": [MCM_FINALIZER]}}
    client.patch(Resource("v1", "secrets"), "cloudprovider", namespace, held)
    name = f"{namespace}-pool-z1"
    client.patch(MACHINE_DEPLOYMENTS, name, namespace, held)
    failed = [{"name": "machine", "lastOperation": {"description": REVOKED, "type": "Delete"}}]
    status = {"status": {"failedMachines": failed}}
    client.patch(MACHINE_DEPLOYMENTS, name, namespace, status, subresource="status")
    with pytest.raises(RequeueAfter, match="Waiting for the deletion"):
        workers.delete(seed_call, obj, cluster)
    with pytest.raises(ActuatorError, match=r"machine: .*AuthFailure") as caught:
        workers.delete(seed_call, obj, cluster)
    assert caught.value.codes == (ErrorCode.ERR_INFRA_UNAUTHENTICATED,)
    assert all(code.allows_force_deletion for code in caught.value.codes)


def test_machines_may_exist_once_there_are_deployments(workers, seed_call, namespace):
    obj = made(namespace, pool())
    assert list(workers.external_resources(obj)) == []
    with suppress(RequeueAfter):
        workers.reconcile(seed_call, obj, cluster_of(namespace))
    (left,) = workers.external_resources(obj)
    assert (left.type, left.id, left.tags) == ("AWS::EC2::Instance", "", tags.mark(namespace))
    assert left.tags.items() <= spec_of(made(namespace, pool()))["tags"].items()
    workers.force_delete(seed_call, obj, cluster_of(namespace))
