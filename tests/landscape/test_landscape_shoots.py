"""Shoots of a real gardenlet, with our extensions as its only ones; AWS is simulated by moto.

gardenlet shows an error of an Infrastructure on the Shoot after minutes, and one of a ControlPlane
after half a minute: these waits are Gardener's own. The controllers of other vendors whose
finalizers are on seed objects, such as the load balancer controller, are simulated.
"""

import pytest

from actuator.errors import NotFound
from generic.kube.clusters import NAMESPACES
from generic.reconciler.orphans import ORPHANS, SHOOT_LABEL
from generic.testing.landscape.users import is_gone, is_ready
from tests.support.cluster.harness import eventually

pytest_plugins = ["generic.tools.landscape_fixtures"]

DELETE = 420.0
FORCE = 180.0
"""Seconds on a busy machine."""


@pytest.fixture
def seed(landscape):
    return landscape.landscape.seeds[0].client


def exists(client, resource, name):
    try:
        return client.get(resource, name) is not None
    except NotFound:
        return False


def orphans(seed, technical_id):
    found = seed.list(ORPHANS, label_selector=f"{SHOOT_LABEL}={technical_id}")
    return {obj["spec"]["resourceType"] for obj in found}


def test_a_shoot_whose_credentials_are_revoked_is_force_deleted(landscape, real_shoot, seed):
    technical_id = real_shoot.view().technical_id
    assert "deletionTimestamp is nil" in real_shoot.force_delete(), "Gardener's condition"
    landscape.rehearsal.break_where_known("credentials-revoked")
    real_shoot.delete()

    def has_code(view):
        return view is not None and "ERR_INFRA_UNAUTHENTICATED" in view.codes

    assert real_shoot.wait_until(has_code, DELETE, print)
    assert real_shoot.force_delete() == ""
    assert real_shoot.wait_until(is_gone, FORCE, print)
    assert {"AWS::EC2::VPC", "AWS::EC2::Subnet"} <= orphans(seed, technical_id)
    assert not exists(seed, NAMESPACES, technical_id)
    alive = landscape.landscape.processes.alive
    eventually(lambda: [name for name in alive() if technical_id in name] == [])


def test_a_shoot_sleeps_wakes_and_is_deleted_to_its_end(landscape, real_shoot, seed):
    before = set(map(str, landscape.rehearsal.remaining_resources()))
    technical_id = real_shoot.view().technical_id
    real_shoot.hibernate(enabled=True)
    assert real_shoot.wait_until(is_ready, DELETE, print)
    alive = landscape.landscape.processes.alive()
    assert any(name.startswith(f"etcd-{technical_id}-") for name in alive)
    assert not any(technical_id in name and "kube-apiserver" in name for name in alive)
    real_shoot.hibernate(enabled=False)
    assert real_shoot.wait_until(is_ready, DELETE, print)
    assert set(map(str, landscape.rehearsal.remaining_resources())) >= before
    real_shoot.delete()
    assert real_shoot.wait_until(is_gone, DELETE, print)
    assert orphans(seed, technical_id) == set()
    left = [
        resource
        for resource in landscape.rehearsal.remaining_resources()
        if technical_id in str(resource.tags)
    ]
    assert left == []
