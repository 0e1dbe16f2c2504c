"""Kinds added and removed, webhooks without server, killed servers: a cluster of our own."""

import time

import pytest

from actuator import Resource
from actuator.errors import ApiError, NotFound
from actuator.interface import resource_of
from actuator.v1alpha1 import Cluster, Infrastructure, Network
from generic.kube.client import connect
from generic.kube.crds import crd
from generic.reconciler.failure import MAX_DELETION_BACKOFF_SECONDS
from generic.reconciler.orphans import RECORD_KINDS
from generic.testing.envtest import Environment
from generic.testing.seed import CRDS, install, install_crds
from hack.faults import KillableServer
from tests.support.cluster.harness import Script, Seed, eventually, running
from tests.support.objects.builders import API, cluster, infrastructure

pytestmark = pytest.mark.long  # one worker starts the cluster, and keeps it

NAMESPACES = Resource("v1", "namespaces", namespaced=False)
NETWORKS = resource_of(Network.KIND)
NETWORK_CRD = f"{NETWORKS.plural}.{NETWORKS.group}"


@pytest.fixture(scope="module")
def own():
    """An embedded cluster in which nothing is safe."""
    with Environment() as environment:
        install(environment, [Infrastructure, Network, Cluster, *RECORD_KINDS])
        yield environment


@pytest.fixture
def shoot(own):
    """A shoot namespace in it."""
    client = connect(own.kubeconfig)
    name = f"shoot--x--{time.monotonic_ns():x}"
    client.create(NAMESPACES, {"metadata": {"name": name}})
    seed = Seed(client, name)
    seed.create(cluster(name))
    return seed


@pytest.fixture
def both(own, shoot):
    """A manager for Infrastructures and Networks; the scripts of both."""
    infrastructures = Script()
    networks = Script(Network)
    parts = (own, shoot.client, shoot.namespace, infrastructures)
    with running(*parts, second=networks) as manager:
        yield manager, infrastructures, networks


def network(namespace, name="net"):
    spec = {"type": namespace, "podCIDR": "10.0.0.0/16", "serviceCIDR": "10.1.0.0/16"}
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": API, "kind": "Network", "metadata": meta, "spec": spec}


def lives(seed, name):
    """An Infrastructure that is made, becomes ready, is deleted and goes."""
    seed.create(infrastructure(seed.namespace, seed.namespace, name))
    eventually(lambda: seed.is_ready(name))
    seed.delete(name)
    eventually(lambda: seed.is_gone(name))


def reinstall(client):
    eventually(lambda: not exists(client, CRDS, NETWORK_CRD))
    install_crds(client, [crd(Network)])


def exists(client, resource, name):
    try:
        client.get(resource, name)
    except NotFound:
        return False
    return True


def test_scenario_12_a_deletion_goes_on_when_the_api_server_is_back(own, shoot, both, gate):
    """Killed in the middle of the call; 60 s would show the same, only later."""
    manager, script, _ = both
    script.on["delete"] = lambda ctx, obj, cluster: gate.wait(100) and None
    shoot.create(infrastructure(shoot.namespace, shoot.namespace))
    eventually(shoot.is_ready)
    shoot.delete()
    eventually(lambda: "delete" in script.operations())
    own.kill(KillableServer.APISERVER)
    try:
        gate.set()  # the actuator is done while nobody hears of it
        time.sleep(3)
        assert manager.check_ready()["workers"]() is None
    finally:
        own.restart(KillableServer.APISERVER)
    eventually(shoot.is_gone, 2 * MAX_DELETION_BACKOFF_SECONDS)  # it may have failed for a while
    assert script.operations() == ["reconcile", "delete"]
    lives(shoot, "after")


def test_scenarios_31_and_32_a_crd_that_is_removed_takes_its_objects_orderly_and_may_return(
    shoot, both, gate
):
    _, _, script = both
    script.on["delete"] = lambda ctx, obj, cluster: gate.wait(100) and None
    networks = shoot.of(Network, "net")
    networks.create(network(shoot.namespace))
    eventually(networks.is_ready)
    shoot.client.delete(CRDS, NETWORK_CRD)
    eventually(lambda: "delete" in script.operations("net"))
    assert exists(shoot.client, CRDS, NETWORK_CRD), "the CRD waits for its objects"
    lives(shoot, "meanwhile")
    gate.set()
    reinstall(shoot.client)
    lives(shoot, "without-networks")
    networks.create(network(shoot.namespace, "again"))
    eventually(lambda: networks.is_ready("again"))
    networks.delete("again")
    eventually(lambda: networks.is_gone("again"))
    assert script.operations("net") == ["reconcile", "delete"]


def break_conversion(client, networks):
    """A second, stored version of Networks, to be converted by a webhook that is not there."""
    name = f"old-{time.monotonic_ns():x}"
    nobodys = network(networks.namespace, f"nobodys-{name}")
    nobodys["spec"]["type"] = "nobodys"
    versions = client.get(CRDS, NETWORK_CRD)["spec"]["versions"]
    newer = {**versions[0], "name": "v1", "storage": True}
    both = [{**versions[0], "storage": False}, newer]
    client.patch(CRDS, NETWORK_CRD, "", {"spec": {"versions": both}})
    fresh = Resource(f"{NETWORKS.group}/v1", NETWORKS.plural)
    at_fresh = {"apiVersion": fresh.api_version}
    eventually(lambda: created(client, fresh, {**nobodys, **at_fresh}))
    webhook = {"clientConfig": {"url": "https://127.0.0.1:1/convert"}}
    conversion = {
        "strategy": "Webhook",
        "webhook": {**webhook, "conversionReviewVersions": ["v1"]},
    }
    client.patch(CRDS, NETWORK_CRD, "", {"spec": {"conversion": conversion}})
    eventually(lambda: not listed(client))
    # Made only now, it meets no manager halfway: in its own version it needs no conversion.
    eventually(lambda: created(client, fresh, {**network(networks.namespace, name), **at_fresh}))
    return name


def repair_conversion(client):
    patch = {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
    client.patch(CRDS, NETWORK_CRD, "", patch)
    eventually(lambda: listed(client))


def created(client, resource, manifest):
    try:
        return bool(client.create(resource, manifest))
    except ApiError:
        return False


def listed(client):
    try:
        client.list(NETWORKS)
    except ApiError:
        return False
    return True


def test_scenario_33_a_conversion_webhook_that_is_down_blocks_its_own_kind_alone(shoot, both):
    manager, _, script = both
    networks = shoot.of(Network, "net")
    name = break_conversion(shoot.client, networks)
    try:
        lives(shoot, "beside")
        time.sleep(1)
        lives(shoot, "still-beside")
        assert manager.check_ready()["informers"]() is None
    finally:
        repair_conversion(shoot.client)
    eventually(lambda: networks.is_ready(name))
    assert script.operations(name) == ["reconcile"]
    networks.delete(name)
    eventually(lambda: networks.is_gone(name))


def test_scenario_33_a_manager_that_is_started_meanwhile_serves_the_other_kinds(own, shoot):
    networks = shoot.of(Network, "net")
    name = break_conversion(shoot.client, networks)
    parts = (own, shoot.client, shoot.namespace, Script())
    with running(*parts, second=Script(Network), synced=False) as manager:
        try:
            lives(shoot, "beside")
            assert "networks" in str(manager.check_ready()["streams"]())
        finally:
            repair_conversion(shoot.client)
        eventually(lambda: networks.is_ready(name))
        networks.delete(name)
        eventually(lambda: networks.is_gone(name))
