"""Worker: machine classes for EC2, one for each pool and zone."""

from __future__ import annotations

from contextlib import suppress

import pytest
from aws_objects import REGION, Call, shoot_cluster, worker

from actuator import ConfigurationError, RequeueAfter, Resource
from actuator.v1alpha1 import Worker
from extensions.aws import tags
from extensions.aws.config import API_VERSION
from extensions.aws.machineclass import image, network_of, placement, provider_spec
from extensions.aws.worker import AwsWorker
from generic.crds import crd
from generic.machines import MACHINE_CLASSES, MACHINE_DEPLOYMENTS, MACHINE_KINDS
from generic.seed import install_crds

AMI, ARM = "ami-12c6146b", "ami-1812c061"
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
    "vpc": {
        "id": "vpc-1",
        "subnets": [
            {"id": "subnet-a", "purpose": "workers", "zone": "eu-west-1a"},
            {"id": "subnet-p", "purpose": "public", "zone": "eu-west-1a"},
            {"id": "subnet-b", "purpose": "workers", "zone": "eu-west-1b"},
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
        "userDataSecretRef": {"name": "user-data", "key": "cloud_config"},
        "zones": ["eu-west-1a", "eu-west-1b"],
    } | more


def made(namespace: str, *pools: dict, **spec: object) -> Worker:
    return worker(namespace, *pools, **({"infrastructureProviderStatus": NETWORK} | spec))


def spec_of(obj: Worker, zone: str = "eu-west-1a", cluster=None) -> dict:
    cluster = cluster or shoot_cluster(obj.metadata.namespace, IMAGES)
    place = placement(obj, 0, zone, network_of(obj))
    return provider_spec(obj, 0, place, image(obj, 0, cluster))


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
        r"spec.pools\[0\].machineImage: The CloudProfile has no AMI of machine image other 1",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_with_its_field(fault):
    obj, said = FAULTS[fault]
    with pytest.raises(ConfigurationError, match=f"Worker s/shoot: {said}"):
        spec_of(obj)


def test_a_zone_without_a_subnet_is_a_fault():
    with pytest.raises(ConfigurationError, match=r"pools\[0\].zones: .* no subnet for workers in"):
        spec_of(made("s", pool()), "eu-west-1c")


USER_DATA = {"name": "user-data", "key": "cloud_config"}


@pytest.fixture
def seed_call(admin, namespace) -> Call:
    """A Context in a namespace with the user data of machines."""
    install_crds(admin, [crd(cls) for cls in MACHINE_KINDS])
    meta = {"name": USER_DATA["name"], "namespace": namespace}
    data = {USER_DATA["key"]: "IyEvYmluL3NoCg=="}
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}
    admin.create(Resource("v1", "secrets"), manifest)
    return Call(admin, namespace)


@pytest.fixture
def workers() -> AwsWorker:
    return AwsWorker()


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
        one["metadata"]["name"]: one["spec"] for one in client.list(MACHINE_DEPLOYMENTS, namespace)
    }
    assert set(deployments) == {f"{namespace}-pool-z1", f"{namespace}-pool-z2"}
    shares = {one.name: (one.minimum, one.maximum) for one in obj.status.machine_deployments}
    assert shares == {f"{namespace}-pool-z1": (1, 3), f"{namespace}-pool-z2": (0, 2)}
    classes = {one["metadata"]["name"]: one for one in client.list(MACHINE_CLASSES, namespace)}
    first = classes[deployments[f"{namespace}-pool-z1"]["template"]["spec"]["class"]["name"]]
    assert first["provider"] == "AWS"
    assert first["providerSpec"]["ami"] == AMI
    assert first["providerSpec"]["networkInterfaces"][0]["subnetID"] == "subnet-a"
    assert first["credentialsSecretRef"] == {"name": "cloudprovider", "namespace": namespace}
    secret = client.get(Resource("v1", "secrets"), first["secretRef"]["name"], namespace)
    assert secret["data"] == {"userData": "IyEvYmluL3NoCg=="}


def test_another_disk_or_config_is_another_class_and_the_same_is_the_same(
    workers, seed_call, namespace
):
    def class_of(**more: object) -> str:
        obj = made(namespace, pool(**more))
        return workers.machine_deployments(seed_call, obj, cluster_of(namespace))[0].class_name

    config = {"apiVersion": API_VERSION, "kind": "WorkerConfig", "ami": "ami-own"}
    for agent in ({}, {"nodeAgentSecretName": "agent"}):
        names = {
            class_of(**agent),
            class_of(**agent, volume={"size": "50Gi"}),
            class_of(**agent, volume={"size": "50Gi", "encrypted": False}),
            class_of(**agent, providerConfig=config),
        }
        assert len(names) == 4
        assert class_of(**agent, maximum=9) in names


def test_missing_user_data_is_a_configuration_problem(workers, seed_call, namespace):
    obj = made(namespace, pool(userDataSecretRef={"name": "absent", "key": "k"}))
    with pytest.raises(ConfigurationError, match=f"no Secret {namespace}/absent with the data key"):
        workers.reconcile(seed_call, obj, cluster_of(namespace))


def test_machines_may_exist_once_there_are_deployments(workers, seed_call, namespace):
    obj = made(namespace, pool())
    assert list(workers.external_resources(obj)) == []
    with suppress(RequeueAfter):
        workers.reconcile(seed_call, obj, cluster_of(namespace))
    (left,) = workers.external_resources(obj)
    assert (left.type, left.id, left.tags) == ("AWS::EC2::Instance", "", tags.mark(namespace))
    assert left.tags.items() <= spec_of(made(namespace, pool()))["tags"].items()
    workers.force_delete(seed_call, obj, cluster_of(namespace))
