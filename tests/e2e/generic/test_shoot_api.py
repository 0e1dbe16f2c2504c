"""A shoot with an API server: its life, in two seeds that share the simulated shoots."""

from contextlib import ExitStack

import pytest

from actuator import Resource
from actuator.errors import NotFound, ShootUnreachable, Unavailable
from actuator.v1alpha1 import KINDS, Extension
from generic.kube.crds import crd
from generic.kube.remote import Remote
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.testing.assertions import assert_rehearsal
from generic.testing.drill.seeds import running_seed
from generic.testing.drill.shoots import extension_object
from generic.testing.garden import SHOOT, Garden, GardenletFlows, SeedShoot
from generic.testing.rehearsal import RehearsedShoot
from generic.testing.shootapi import ShootServers
from tests.support.cluster.harness import connected, eventually
from tests.support.drills.shoot_api_rehearsal import CONFIG_MAPS, Inside, InsideRehearsal

SECRETS = Resource("v1", "secrets")
ID = "shoot--dev--one"
SHOOT_ONE = SeedShoot(technical_id=ID, name="one", project="dev", region="r", labels={SHOOT: ID})
EXTENSION = extension_object(
    Extension, RehearsedShoot(technical_id=ID, type="inside", labels={SHOOT: ID}), "x", {}
)


@pytest.fixture(scope="module")
def servers():
    with ShootServers() as started:
        yield started


@pytest.fixture(scope="module")
def seeds(servers):
    """Clients of two seeds, each with a manager under its generated Role."""
    with ExitStack() as stack:
        admins = []
        for name in ("source", "destination"):
            seed = stack.enter_context(running_seed([*map(crd, KINDS)], servers, print))
            manager = Manager(Options(metrics_bind_address="0", health_bind_address="0"))
            manager.add(Inside(), type="inside")
            stack.enter_context(connected(seed.environment, seed.admin, manager, name))
            manager.start()
            assert manager.wait_synced(60)
            admins.append(seed.admin)
        yield admins


@pytest.fixture
def flows(seeds):
    """gardenlet, in each seed."""
    kinds = [Extension.KIND]
    return [GardenletFlows(Garden(admin), SHOOT_ONE, kinds, patience=60.0) for admin in seeds]


def uid(client, name):
    return client.get(CONFIG_MAPS, name, "kube-system")["metadata"]["uid"]


def secret(seed):
    return seed.get(SECRETS, "gardener-internal", ID)["data"]


def test_the_life_of_a_shoot_with_an_api_server(servers, seeds, flows):
    source, destination = flows
    source.create([EXTENSION])
    eventually(lambda: uid(servers.client(ID), "managed"))
    inside = {name: uid(servers.client(ID), name) for name in ("managed", "own")}
    assert uid(Remote(seeds[0]).shoot(ID), "own") == inside["own"]
    source.reconcile([EXTENSION], hibernated=True)
    eventually(lambda: not answers(servers))
    source.reconcile([EXTENSION])
    eventually(lambda: answers(servers))

    before = secret(seeds[0])
    state = source.migrate()
    destination.restore([EXTENSION], state)
    assert secret(seeds[1]) == before
    assert {name: uid(Remote(seeds[1]).shoot(ID), name) for name in inside} == inside

    destination.delete([EXTENSION])
    eventually(lambda: has_ended(servers))


def test_a_force_deletion_ends_the_api_server_and_the_next_shoot_is_empty(servers, seeds, flows):
    flow = flows[0]
    flow.create([EXTENSION])
    eventually(lambda: uid(servers.client(ID), "managed"))
    old = uid(servers.client(ID), "managed")
    flow.force_delete()
    eventually(lambda: has_ended(servers))
    with pytest.raises(ShootUnreachable):
        Remote(seeds[0]).shoot(ID)
    flow.create([EXTENSION])
    eventually(lambda: uid(servers.client(ID), "managed"))
    assert uid(servers.client(ID), "managed") != old
    flow.delete([EXTENSION])
    eventually(lambda: has_ended(servers))


def test_an_object_that_leaves_the_manifests_leaves_the_shoot(servers, flows, monkeypatch):
    flow = flows[0]
    flow.create([EXTENSION])
    eventually(lambda: uid(servers.client(ID), "managed"))
    monkeypatch.setattr(Inside, "manifests", lambda *_: [])
    flow.reconcile([EXTENSION])
    eventually(lambda: not holds(servers, "managed"))
    assert holds(servers, "own")
    flow.delete([EXTENSION])
    eventually(lambda: has_ended(servers))


@pytest.mark.parametrize("scenario", ["refused", "migration"])
def test_drills_use_the_api_servers_and_the_fields_of_the_cluster(scenario):
    assert_rehearsal(InsideRehearsal, scenario, shoots=1)


def answers(servers):
    try:
        return bool(servers.client(ID).within(1.0).send("GET", "/readyz"))
    except Unavailable:
        return False


def has_ended(servers):
    try:
        servers.client(ID)
    except Unavailable as error:
        return str(error) == f"shoot {ID} has no API server"
    return False


def holds(servers, name):
    try:
        return bool(uid(servers.client(ID), name))
    except NotFound:
        return False
