"""Kinds whose CRD is absent: a garden's runtime cluster, CRDs that appear later or are deleted.

Before, such a manager asked for each absent kind every five seconds, was never ready, and started
no controller at all: each of them waited for the list of Clusters.
"""

import logging
import time
import urllib.error
import urllib.request
from typing import Any

import pytest

from actuator import Resource
from actuator.errors import ApiError
from actuator.interface import resource_of
from actuator.v1alpha1 import (
    BackupBucket,
    BackupEntry,
    Cluster,
    ContainerRuntime,
    DNSRecord,
    Extension,
    Infrastructure,
    Network,
)
from generic.controller.watch import MACHINES
from generic.kube.client import connect
from generic.kube.crds import crd
from generic.kube.problems import ABSENT
from generic.reconciler.orphans import RECORD_KINDS, Orphan
from generic.testing.envtest import Environment
from generic.testing.seed import CRDS, install, install_crds
from tests.support.cluster.harness import Script, Seed, eventually, running, samples
from tests.support.drills.reports import target
from tests.support.objects.builders import API, cluster, infrastructure

pytestmark = pytest.mark.long  # one worker starts the runtime cluster, and keeps it

NAMESPACES = Resource("v1", "namespaces", namespaced=False)
KIND_ABSENT = "actuator_informer_kind_absent"


@pytest.fixture(scope="module")
def runtime():
    """A garden's runtime cluster: four kinds of Gardener's, and our Orphan."""
    with Environment() as environment:
        install(environment, [BackupBucket, BackupEntry, DNSRecord, Extension, *RECORD_KINDS])
        yield environment


@pytest.fixture
def client(runtime):
    """Its administrator; the kinds that a test adds are removed afterwards."""
    client = connect(runtime.kubeconfig)
    yield client
    for cls in (Cluster, ContainerRuntime, Infrastructure, Network):
        remove_crd(client, cls)


@pytest.fixture
def garden(client):
    """A namespace of the garden: none of a shoot, so its objects have no Cluster."""
    return new_namespace(client, "garden-")


def new_namespace(client, prefix, **labels):
    name = f"{prefix}{time.monotonic_ns():x}"
    client.create(NAMESPACES, {"metadata": {"name": name, "labels": labels}})
    return name


def obj(cls, namespace, type, called, **spec):
    meta = {"name": called, "namespace": namespace}
    spec = {"type": type, "secretRef": {"name": "s"}, **spec}
    return {"apiVersion": API, "kind": cls.KIND.name, "metadata": meta, "spec": spec}


def dns_record(namespace, type, name="record", **more):
    values = {"name": "a.example.org", "recordType": "A", "values": ["192.0.2.1"]}
    return obj(DNSRecord, namespace, type, name, **values, **more)


def network(namespace, type, name):
    cidrs = {"podCIDR": "10.0.0.0/16", "serviceCIDR": "10.1.0.0/16"}
    return obj(Network, namespace, type, name, **cidrs)


def lives(seed, manifest):
    """Whether an object is served from its creation to its end."""
    name = manifest["metadata"]["name"]
    seed.create(manifest)
    eventually(lambda: seed.is_ready(name))
    seed.delete(name)
    eventually(lambda: seed.is_gone(name))


def remove_crd(client, cls):
    name = crd(cls)["metadata"]["name"]
    if is_listed(client, CRDS, name):
        client.delete(CRDS, name)
    eventually(lambda: not is_listed(client, CRDS, name))


def is_listed(client, resource, name):
    return name in [item["metadata"]["name"] for item in client.list(resource)]


def not_ready(manager):
    """The checks that fail, with their reasons."""
    return {name: why for name, check in manager.check_ready().items() if (why := check())}


def readyz(manager):
    """Status and text of /readyz?verbose."""
    address = manager._running._servers[0].address
    try:
        with urllib.request.urlopen(f"http://{address}/readyz?verbose") as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def not_found(manager):
    """The number of requests answered with 404."""
    return sum(
        sample.value
        for family in manager.metrics.registry.collect()
        for sample in family.samples
        if sample.name == "rest_client_requests_total" and sample.labels["code"] == "404"
    )


def lines(caplog, text):
    """The resources of the log lines with that text."""
    found = [record.fields for record in caplog.records if record.message == text]
    return sorted(r for item in found for r in item.get("resources") or [item["resource"]])


def test_a_runtime_cluster_is_served_and_crds_that_appear_are_picked_up(
    runtime, client, garden, caplog
):
    caplog.set_level(logging.INFO, "generic.kube")
    records = Script(DNSRecord)
    infrastructures = Script()
    infrastructures.watches = (MACHINES,)
    shoot = new_namespace(client, "shoot--", **{"gardener.cloud/role": "shoot"})
    parts = (runtime, client, garden, records)
    classes = ("garden", "shoot")
    with running(*parts, second=infrastructures, extension_classes=classes) as manager:
        assert not_ready(manager) == {}
        expected = {"clusters": 1, "dnsrecords": 0, "infrastructures": 1, "machines": 1}
        assert samples(manager, KIND_ABSENT) == expected
        lives(Seed(client, garden, DNSRecord), dns_record(garden, garden, **{"class": "garden"}))

        waiting = Seed(client, shoot, DNSRecord, "record")
        waiting.create(dns_record(shoot, garden))
        missing = f"Cluster {shoot} not found"
        eventually(lambda: missing in waiting.status()["lastError"]["description"])

        install(runtime, [Infrastructure, Cluster])
        in_shoot = Seed(client, shoot)
        in_shoot.create(cluster(shoot))
        in_shoot.create(infrastructure(shoot, garden))
        eventually(waiting.is_ready)
        eventually(in_shoot.is_ready)
        found = expected | {"clusters": 0, "infrastructures": 0}
        assert samples(manager, KIND_ABSENT) == found
        assert not_ready(manager) == {}
        in_shoot.delete()
        waiting.delete()
        eventually(in_shoot.is_gone)
        eventually(waiting.is_gone)
    named = [str(item) for item in (resource_of(Cluster.KIND), resource_of(Infrastructure.KIND))]
    assert lines(caplog, "kind is not served") == sorted([*named, str(MACHINES.resource)])
    assert lines(caplog, "kind is served") == sorted(named)


def test_an_absent_kind_fails_readiness_only_if_controllers_names_it(runtime, client, garden):
    parts = (runtime, client, garden, Script(DNSRecord))
    options: dict[str, Any] = {
        "second": Script(ContainerRuntime),
        "health_bind_address": "127.0.0.1:0",
    }
    kind = str(resource_of(ContainerRuntime.KIND))
    with running(*parts, **options) as manager:
        status, text = readyz(manager)
        assert status == 200
        assert f"[i]{kind}: {ABSENT}\n" in text
    with running(*parts, **options, controllers=("dnsrecord",)) as manager:
        assert readyz(manager)[0] == 200
    names = ("dnsrecord", "containerruntime")
    with running(*parts, **options, controllers=names) as manager:
        status, text = readyz(manager)
        assert status == 503
        why = f"{ABSENT}, but --controllers includes containerruntime"
        both = f"{resource_of(Cluster.KIND)}: {why}; {kind}: {why}; install the CRD"
        assert f"[-]kinds failed: {both}" in text
        assert f"[i]{kind}" not in text, "named once"
        lives(Seed(client, garden, DNSRecord), dns_record(garden, garden))
        install(runtime, [Cluster, ContainerRuntime])
        eventually(lambda: readyz(manager)[0] == 200)


@pytest.mark.parametrize(
    ("names", "needing"),
    [((), ()), (("dnsrecord",), ()), (("dnsrecord", "infrastructure"), ("infrastructure",))],
)
def test_an_absent_cluster_crd_fails_readiness_if_a_named_kind_requires_clusters(
    runtime, client, garden, names, needing
):
    install(runtime, [Infrastructure])
    parts = (runtime, client, garden, Script(DNSRecord))
    with running(*parts, second=Script(), controllers=names) as manager:
        kind = str(resource_of(Cluster.KIND))
        why = f"{kind}: {ABSENT}, but --controllers includes {', '.join(needing)}; install the CRD"
        assert not_ready(manager).get("kinds", "").startswith(why if needing else "")
        assert ("kinds" in not_ready(manager)) == bool(needing)
        install(runtime, [Cluster])
        eventually(lambda: not_ready(manager) == {})


@pytest.mark.parametrize("names", [(), ("dnsrecord", "network")])
def test_a_crd_that_is_deleted_and_returns_is_followed_without_a_request_storm(
    runtime, client, garden, names
):
    install(runtime, [Network, Cluster])
    shoot = new_namespace(client, "shoot--")
    networks = Seed(client, shoot, Network, "net")
    networks.create(cluster(shoot))
    script = Script(Network)
    parts = (runtime, client, garden, Script(DNSRecord))
    with running(*parts, second=script, controllers=names) as manager:
        networks.create(network(shoot, garden, "net"))
        eventually(networks.is_ready)
        remove_crd(client, Network)
        assert script.operations("net") == ["reconcile", "delete"]
        eventually(lambda: samples(manager, KIND_ABSENT)["networks"] == 1)
        assert bool(not_ready(manager)) == bool(names)
        before = not_found(manager)
        time.sleep(10)
        assert not_found(manager) - before <= 4
        assert manager.check_ready()["informers"]() is None
        lives(Seed(client, garden, DNSRecord), dns_record(garden, garden))
        install_crds(client, [crd(Network)])
        lives(networks, network(shoot, garden, "again"))
        assert not_ready(manager) == {}
        assert samples(manager, KIND_ABSENT)["networks"] == 0


def serve(client, *, served):
    """Whether the API server serves the version of Networks that managers know."""
    name = crd(Network)["metadata"]["name"]
    version = crd(Network)["spec"]["versions"][0]
    other = {**version, "name": "v2", "storage": False}
    versions = [{**version, "served": served}, other]
    client.patch(CRDS, name, "", {"spec": {"versions": versions}})

    def is_served():
        try:
            client.list(resource_of(Network.KIND))
        except ApiError:
            return False
        return True

    eventually(lambda: is_served() == served)


def test_an_object_is_not_cleaned_up_because_its_kind_is_not_served_for_a_while(
    runtime, client, garden, gate
):
    """Before, the 404 counted as a deleted object: its infrastructure was deleted behind it."""
    install(runtime, [Network, Cluster])
    shoot = new_namespace(client, "shoot--")
    networks = Seed(client, shoot, Network, "net")
    networks.create(cluster(shoot))
    script = Script(Network, reconcile=lambda ctx, obj, cluster: gate.wait(60) and None)
    with running(runtime, client, garden, script) as manager:
        networks.create(network(shoot, garden, "net"))
        eventually(lambda: script.operations("net"))
        serve(client, served=False)
        gate.set()
        time.sleep(3)
        serve(client, served=True)
        eventually(networks.is_ready)
        assert set(script.operations("net")) == {"reconcile"}
        assert samples(manager, "actuator_finalizers_removed_externally_total") == {"Network": 0}
        networks.delete()
        eventually(networks.is_gone)


def test_without_the_crd_of_orphans_a_manager_is_not_ready_and_names_it(runtime, client, garden):
    remove_crd(client, Orphan)
    parts = (runtime, client, garden, Script(DNSRecord))
    try:
        with running(*parts) as manager:
            why = not_ready(manager)["orphans"]
            assert "/orphans: the API server does not serve this resource" in why
            assert "`actuator crds generic:Orphan`" in why
            install_crds(client, [crd(Orphan)])
            eventually(lambda: not_ready(manager) == {})
    finally:
        install_crds(client, [crd(Orphan)])


def test_a_drill_refuses_a_seed_without_the_kinds(runtime, client, drill):
    done, report = drill(*target(runtime), status=3)
    assert "has no CRD clusters.extensions.gardener.cloud" in done.stderr
    assert report is None
