"""One Shoot of a real gardenlet through its life, while its pool, credentials and extension change.

The tests share the Shoot, and each leaves it ready; the last one force-deletes it. They take about
18 minutes on a quiet machine of two cores: each error of an Infrastructure takes three.
"""

from __future__ import annotations

import secrets

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from actuator import Resource
from generic.kube.clusters import NAMESPACES
from generic.testing.landscape.users import is_gone, is_ready
from tests.support.cluster.harness import eventually
from tests.support.landscape.shoots import InSeed, exists, has_failed

pytest_plugins = ["generic.tools.landscape_fixtures"]
pytestmark = pytest.mark.timeout(1800)

BASTIONS = Resource("operations.gardener.cloud/v1alpha1", "bastions")
DEPLOYMENTS = Resource("apps/v1", "deployments")
CONTROLLER_DEPLOYMENTS = Resource(
    "core.gardener.cloud/v1", "controllerdeployments", namespaced=False
)
CREDENTIALS = "credentials-revoked"
UNAUTHENTICATED = "ERR_INFRA_UNAUTHENTICATED"
AWS = "extension-aws"
NEW_TAG = "0.2.0"
SECONDS = 600.0
FORCE = 300.0
ROLL = 120.0
"""Maximum times on a busy machine."""


@pytest.fixture
def shoot(shared_shoot):
    return shared_shoot


@pytest.fixture
def seen(landscape, shoot):
    return InSeed(landscape, shoot)


def test_the_machines_of_a_pool_are_replaced_when_its_kubelets_change(shoot, seen):
    old = seen.machines()
    workers = seen.raw()["spec"]["provider"]["workers"]
    workers[0]["kubernetes"] = {"kubelet": {"systemReserved": {"memory": "200Mi"}}}
    seen.change({"provider": {"workers": workers}})
    assert shoot.wait_until(is_ready, SECONDS, print)
    assert_replaced(seen, old)


def assert_replaced(seen, old):
    """Other machines run, each with a node that is ready; no old machine or node is left."""
    new = seen.machines()
    assert new
    assert new.isdisjoint(old)
    assert eventually(lambda: seen.ready_nodes() == new)


def test_all_credentials_of_a_shoot_are_rotated(shoot, seen):
    old = seen.machines()
    before = seen.access().authorities()
    shoot.request("rotate-credentials-start")
    assert shoot.wait_until(is_ready, SECONDS, print)
    assert phases(seen) == {"Prepared"}
    assert_replaced(seen, old)
    shoot.request("rotate-credentials-complete")
    assert shoot.wait_until(is_ready, SECONDS, print)
    assert phases(seen) == {"Completed"}
    after = seen.access().authorities()
    assert after.keys() == before.keys()
    for name, authorities in after.items():
        assert authorities.newest != before[name].newest
        assert authorities.certificates == authorities.newest.key_pair.certificate
    assert seen.ready_nodes() == seen.machines()


def phases(seen):
    """The phases of the rotations that the user completes."""
    rotation = seen.raw()["status"]["credentials"]["rotation"]
    return {rotation[item]["phase"] for item in ("certificateAuthorities", "serviceAccountKey")}


@pytest.fixture
def upgraded(landscape):
    """Installs another release of the AWS extension; the first one at the end."""
    garden = landscape.landscape.garden.client
    seed = landscape.landscape.seeds[0].client

    def install(values):
        garden.patch(CONTROLLER_DEPLOYMENTS, AWS, "", {"helm": {"values": values}})

    def has_rolled():
        (found,) = (obj for obj in seed.list(DEPLOYMENTS) if obj["metadata"]["name"] == AWS)
        spec = found["spec"]
        status = found["status"]
        counts = {status[item] for item in ("replicas", "updatedReplicas", "readyReplicas")}
        seen = status["observedGeneration"] == found["metadata"]["generation"]
        image = spec["template"]["spec"]["containers"][0]["image"]
        return seen and image.endswith(NEW_TAG) and counts == {spec["replicas"]}

    install({"image": {"tag": NEW_TAG}})
    eventually(has_rolled, ROLL)
    yield
    install(None)


def test_an_extension_is_upgraded_while_a_shoot_lives(landscape, shoot, seen, request):
    processes = landscape.landscape.processes

    def managers():
        return {name for name in processes.alive() if f"_{AWS}-" in name}

    old = managers()
    request.getfixturevalue("upgraded")
    assert eventually(lambda: old.isdisjoint(managers()), ROLL)
    shoot.request("reconcile")
    assert shoot.wait_until(is_ready, SECONDS, print)
    lines = [line for name in managers() for line in processes.log(name).read_text().splitlines()]
    assert any("operation succeeded" in line and seen.id in line for line in lines)


def test_without_credentials_a_half_created_shoot_is_forced_and_a_living_one_is_retried(
    landscape, shoot
):
    landscape.rehearsal.break_where_known(CREDENTIALS)
    half = landscape.owner(f"half-{secrets.token_hex(2)}")
    half.create(landscape.installed.offer.shoot(half.name))
    shoot.request("reconcile")
    assert half.wait_until(has_failed, SECONDS, print)
    assert shoot.wait_until(has_failed, SECONDS, print)
    assert UNAUTHENTICATED in shoot.view().codes
    in_seed = InSeed(landscape, half)
    half.delete()
    assert half.force_delete() == "", "it has the code of its creation"
    assert half.wait_until(is_gone, FORCE, print)
    assert not exists(in_seed.client, NAMESPACES, in_seed.id)
    eventually(lambda: in_seed.processes() == [])
    landscape.rehearsal.repair_failure()
    shoot.request("retry")
    assert shoot.wait_until(is_ready, SECONDS, print)


def test_a_shoot_with_a_bastion_that_cannot_be_deleted_is_forced(landscape, shoot, seen):
    garden = landscape.landscape.garden.client
    name = "ssh"
    garden.create(BASTIONS, bastion(name, shoot))
    eventually(lambda: garden.get(BASTIONS, name, shoot.namespace)["status"]["ingress"]["ip"])
    landscape.rehearsal.break_where_known(CREDENTIALS)
    shoot.request("reconcile")
    assert shoot.wait_until(has_failed, SECONDS, print)
    shoot.delete()
    assert shoot.wait_until(lambda view: "still Bastions" in view.description, SECONDS, print)
    assert UNAUTHENTICATED in shoot.view().codes, "of the operation before the deletion"
    assert shoot.force_delete() == ""
    assert shoot.wait_until(is_gone, FORCE, print)
    assert not exists(garden, BASTIONS, name, shoot.namespace)
    assert {"AWS::EC2::VPC", "AWS::EC2::Instance"} <= seen.orphans()
    eventually(lambda: seen.processes() == [])


def bastion(name, shoot):
    key = Ed25519PrivateKey.generate().public_key()
    public = key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return {
        "apiVersion": BASTIONS.api_version,
        "kind": "Bastion",
        "metadata": {"name": name, "namespace": shoot.namespace},
        "spec": {
            "shootRef": {"name": shoot.name},
            "sshPublicKey": public,
            "ingress": [{"ipBlock": {"cidr": "192.0.2.7/32"}}],
        },
    }
