"""Simulated nodes and operators on a real API server, which is seed and shoot at the same time."""

import pytest

from actuator import Resource
from actuator.errors import NotFound
from generic.kube.clock import SystemClock
from generic.kube.clusters import NAMESPACES
from generic.kube.crds import crd
from generic.library.machines import MACHINE_KINDS, MACHINES
from generic.manager.leaderelection import LEASES
from generic.testing.envtest import Environment
from generic.testing.landscape.caches import PODS
from generic.testing.landscape.nodes import NODES, ShootNodes, is_ready
from generic.testing.landscape.operators import ADDRESS, serve_operators
from generic.testing.polling import polling
from generic.testing.seed import install_crds
from tests.support.cluster.harness import eventually

pytestmark = pytest.mark.long  # nodes and pods of a whole cluster: it is not shared

SECRETS = Resource("v1", "secrets")
SERVICES = Resource("v1", "services")
SEED = "shoot--dev--one"
SHOOT = "kube-system"
SCRIPT = "gardener-node-agent-pool"


@pytest.fixture(scope="module")
def client():
    with Environment() as environment:
        client = environment.connect()
        install_crds(client, map(crd, MACHINE_KINDS))
        client.create(NAMESPACES, {"metadata": {"name": SEED}})
        annotations = {"checksum/data-script": "abc"}
        meta = {"name": SCRIPT, "namespace": "kube-system", "annotations": annotations}
        client.create(SECRETS, {"metadata": meta})
        yield client


@pytest.fixture
def nodes(client):
    nodes = ShootNodes(client, SEED, lambda: client, 1234, "v1.36.3", SystemClock())
    with polling(nodes.poll, "nodes", every=0.1):
        yield nodes


def machine(client, name):
    labels = {"worker.gardener.cloud/gardener-node-agent-secret-name": SCRIPT}
    template = {"metadata": {"labels": labels, "annotations": {"pool": "hash"}}}
    made = {"apiVersion": MACHINES.api_version, "kind": "Machine"}
    meta = {"name": name, "namespace": SEED, "finalizers": ["example.org/mcm"]}
    client.create(MACHINES, {**made, "metadata": meta, "spec": {"nodeTemplate": template}})


def pod(client, name):
    spec = {"containers": [{"name": "c", "image": "i"}]}
    client.create(PODS, {"metadata": {"name": name, "namespace": SHOOT}, "spec": spec})


def is_gone(client, *where):
    try:
        return client.get(*where) is None
    except NotFound:
        return True


def phase(client, name):
    return client.get(PODS, name, SHOOT)["status"].get("phase")


def test_a_machine_has_a_node_that_goes_with_it_and_runs_pods(client, nodes):
    pod(client, "early")
    machine(client, "m1")
    node = eventually(lambda: client.get(NODES, "m1"))
    assert node["metadata"]["annotations"] == {"checksum/cloud-config-data": "abc", "pool": "hash"}
    eventually(lambda: is_ready(client.get(NODES, "m1")))
    assert eventually(lambda: client.get(LEASES, "m1", "kube-node-lease"))["spec"]["renewTime"]
    eventually(lambda: client.get(MACHINES, "m1", SEED)["metadata"]["labels"]["node"] == "m1")
    eventually(lambda: phase(client, "early") == "Running")

    pod(client, "late")
    eventually(lambda: phase(client, "late") == "Running")
    client.delete(PODS, "late", SHOOT)
    eventually(lambda: is_gone(client, PODS, "late", SHOOT))

    patch = {"metadata": {"annotations": {"checksum/data-script": "def"}}}
    client.patch(SECRETS, SCRIPT, "kube-system", patch)

    def checksum():
        return client.get(NODES, "m1")["metadata"]["annotations"]["checksum/cloud-config-data"]

    eventually(lambda: checksum() == "def")

    client.delete(MACHINES, "m1", SEED)
    client.patch(MACHINES, "m1", SEED, {"metadata": {"finalizers": None}})
    eventually(lambda: is_gone(client, NODES, "m1"))
    eventually(lambda: is_gone(client, PODS, "early", SHOOT))


def test_a_load_balancer_gets_an_address_and_missing_kinds_are_skipped(client):
    spec = {"type": "LoadBalancer", "ports": [{"port": 443}]}
    meta = {"name": "lb", "namespace": SEED}
    client.create(SERVICES, {"metadata": meta, "spec": spec})
    serve_operators(client, SystemClock())
    [ingress] = client.get(SERVICES, "lb", SEED)["status"]["loadBalancer"]["ingress"]
    assert ingress["ip"] == ADDRESS
