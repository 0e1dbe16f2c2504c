"""The objects for monitoring of a chart, read by the real Prometheus operator.

A real Prometheus runs with the configuration that it generates, finds the pods at the API server,
and scrapes real managers that run from the chart. Simulated are the Pods and EndpointSlices, which
have the addresses of these managers: no kubelet runs.
"""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pytest
import yaml

from actuator import Resource
from actuator.v1alpha1 import KINDS, Cluster
from generic.kube.client import connect
from generic.kube.clusters import NAMESPACES
from generic.testing.envtest import Environment
from generic.testing.garden import resource_of_manifest
from generic.testing.seed import install
from generic.tools.packaging.monitoring import rules_of
from hack.observe.__main__ import ask
from tests.support.cluster.harness import eventually
from tests.support.landscape import chart as charts
from tests.support.landscape.chart import GARDENLET, OPERATOR, deployment_of, rendered
from tests.support.landscape.pods import PODS
from tests.support.monitoring.operator import (
    PROMETHEUSES,
    checked,
    generated,
    prometheus_object,
    running_operator,
    running_prometheus,
)
from tests.support.pages.commands import run_command

RECORDED = Path(__file__).parents[1] / "recorded"
FACTS = yaml.safe_load((RECORDED / "gardener_monitoring.yaml").read_text())
NAME = "extension-certificate"
GARDEN = "garden"
RELEASE = {"release": "kube-prometheus-stack"}
"""The label in docs/monitoring.md."""
POD_MONITORS = Resource("monitoring.coreos.com/v1", "podmonitors")
SLICES = Resource("discovery.k8s.io/v1", "endpointslices")
FEDERATED = FACTS["service"]
NAMESPACE = "extension-x7k2p"
"""Gardener's prefix, which its PodMonitor requires."""
SCRAPED = {
    "seed": [("podMonitor", GARDEN, "seed-extensions")],
    "aggregate": [("scrapeConfig", NAMESPACE, f"aggregate-{NAME}")],
}
"""By Prometheus: the objects that it scrapes by, each once; the others have none."""
RULES = {
    rules.name: sorted(
        rule.get("alert") or rule["record"]
        for group in rules.spec["groups"]
        for rule in group["rules"]
    )
    for rules in rules_of(NAME)
}
TARGETS = f'seed:actuator_targets:count{{extension="{NAME}"}}'
SECONDS = 60.0
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A cluster with the operator, where CRDs of Gardener are installed."""
    with Environment(print) as environment:
        install(environment, [*KINDS, Cluster])
        client = connect(environment.kubeconfig)
        client.create(NAMESPACES, {"metadata": {"name": GARDEN}})
        with running_operator(environment, tmp_path_factory.mktemp("operator")):
            yield environment


@pytest.fixture(scope="module")
def client(cluster):
    return connect(cluster.kubeconfig)


@pytest.fixture
def installed(cluster, client, tmp_path):
    """Install a chart in a new namespace; return its objects."""
    run_command("chart", "extensions.certificate:extension", "--output", tmp_path)
    kept = []

    def call(namespace, gardener, monitoring):
        client.create(NAMESPACES, {"metadata": {"name": namespace}})
        kept.extend(rendered(tmp_path / NAME, namespace, gardener, monitoring=monitoring))
        charts.install(client, kept)
        return kept

    yield call
    charts.remove(client, kept)


def deploy(client, obj):
    """Apply an object that has its kind."""
    client.apply(resource_of_manifest(obj), obj, field_manager="test")


def deploy_pod(client, objects, name, address):
    """Create the Pod of a manager, as its Deployment does; its address is that of the manager."""
    deployment = deployment_of(objects)
    namespace = deployment["metadata"]["namespace"]
    host, _, port = address.rpartition(":")
    template = deployment["spec"]["template"]
    meta = {**template["metadata"], "name": name, "namespace": namespace}
    if "prometheus.io/port" in meta.get("annotations", {}):
        meta["annotations"] = {**meta["annotations"], "prometheus.io/port": port}
    spec = {**template["spec"], "nodeName": "node"}
    spec.pop("priorityClassName", None)
    client.create(PODS, {"metadata": meta, "spec": spec})
    status = {"phase": "Running", "podIP": host, "podIPs": [{"ip": host}]}
    client.patch(PODS, name, namespace, {"status": status}, subresource="status")


def deploy_slice(client, objects, name, address):
    """Create the EndpointSlice of a manager for the Service of its chart."""
    (service,) = (obj for obj in objects if obj["kind"] == "Service")
    meta = service["metadata"]
    host, _, port = address.rpartition(":")
    labels = {**meta["labels"], "kubernetes.io/service-name": meta["name"]}
    pod = {"kind": "Pod", "name": name, "namespace": meta["namespace"]}
    manifest = {
        "metadata": {"name": name, "namespace": meta["namespace"], "labels": labels},
        "addressType": "FQDN",  # an IP address of a slice may not be that of the loopback device
        "ports": [{"name": "metrics", "port": int(port), "protocol": "TCP"}],
        "endpoints": [{"addresses": [host], "conditions": {"ready": True}, "targetRef": pod}],
    }
    client.create(SLICES, manifest)


def wait_generated(client, namespace, name, scraped, rules):
    """Return the configuration that the operator generated, once it has exactly these objects.

    Each attempt changes the Prometheus: the operator may have read it before a new namespace, and
    would read it again after minutes.
    """
    attempts = count()

    def found():
        annotation = {"tests/attempt": str(next(attempts) // 10)}
        patch = {"metadata": {"annotations": annotation}}
        client.patch(PROMETHEUSES, name, namespace, patch)
        made = generated(client, namespace, name)
        assert (name, made.scraped, made.loaded) == (name, scraped, rules)
        return made

    return eventually(found, SECONDS)


def active(address):
    """The targets of a Prometheus: address, job and health."""
    targets = ask(address, "targets", state="active")["activeTargets"]
    return [(item["labels"]["instance"], item["labels"]["job"], item["health"]) for item in targets]


def loaded(address):
    """The names of all rules of a Prometheus; each has been evaluated without an error."""
    groups = ask(address, "rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    return all(rule["health"] == "ok" for rule in rules) and sorted(rule["name"] for rule in rules)


def value(address, query):
    """The value of a query with one sample; None if it has another number of samples."""
    found = ask(address, "query", query=query)["result"]
    return float(found[0]["value"][1]) if len(found) == 1 else None


SERVED = [
    pytest.param(
        {}, {"flavour": "prometheus-operator", "labels": RELEASE}, RELEASE, "", id="plain"
    ),
    pytest.param(
        OPERATOR, {"flavour": "auto"}, FACTS["prometheuses"]["garden"], "garden-", id="garden"
    ),
]
"""Gardener's values, those for monitoring, the labels that a Prometheus selects, and the prefix."""


@pytest.mark.parametrize(("gardener", "monitoring", "labels", "prefix"), SERVED)
def test_a_service_monitor_scrapes_leader_and_standby_once_each(
    cluster, client, installed, tmp_path, gardener, monitoring, labels, prefix
):
    namespace = f"{prefix}monitored"
    objects = installed(namespace, gardener, monitoring)
    for name, selected in (("mine", labels), ("other", {"release": "another"})):
        deploy(client, prometheus_object(cluster, namespace, name, selected))
    monitors = [("serviceMonitor", namespace, f"{prefix}{NAME}")]
    rules = [f"{namespace}-{prefix}{NAME}"]
    made = wait_generated(client, namespace, "mine", monitors, rules)
    wait_generated(client, namespace, "other", [], [])
    config = made.written(tmp_path / "mine")
    checked(config)
    with (
        charts.running(cluster, objects, tmp_path / "leader.log") as leader,
        charts.running(cluster, objects, tmp_path / "standby.log") as standby,
        running_prometheus(config) as prometheus,
    ):
        for name, address in (("leader", leader), ("standby", standby)):
            deploy_pod(client, objects, name, address)
            deploy_slice(client, objects, name, address)
        expected = sorted((address, NAME, "up") for address in (leader, standby))
        assert eventually(lambda: sorted(active(prometheus)) == expected, SECONDS)
        assert eventually(lambda: loaded(prometheus) == RULES["own"], SECONDS)
        assert eventually(lambda: value(prometheus, TARGETS) == 2, SECONDS)
        assert eventually(lambda: value(prometheus, "seed:actuator_leaders:sum") == 1, SECONDS)


@pytest.fixture
def of_gardener(cluster, client, installed):
    """Install a chart as gardenlet does, with gardenlet's objects; return its objects, and the
    configurations that the operator generated for each Prometheus.
    """
    objects = installed(NAMESPACE, GARDENLET, {"flavour": "auto"})
    meta = {"name": "seed-extensions", "namespace": GARDEN, "labels": FACTS["prometheuses"]["seed"]}
    head = {"apiVersion": POD_MONITORS.api_version, "kind": "PodMonitor"}
    monitor = {**head, "metadata": meta, "spec": FACTS["pod_monitor"]}
    deploy(client, monitor)
    for name, labels in FACTS["prometheuses"].items():
        more = {"externalLabels": {"seed": "a-seed"}} if name == "aggregate" else {}
        deploy(client, prometheus_object(cluster, GARDEN, name, labels, **more))

    def selected(name):
        scraped = SCRAPED.get(name, [])
        rules = [f"{NAMESPACE}-{name}-{NAME}"] if scraped else []
        return wait_generated(client, GARDEN, name, scraped, rules)

    return objects, {name: selected(name) for name in FACTS["prometheuses"]}


def test_gardeners_prometheus_objects_scrape_once_and_federate(
    cluster, client, of_gardener, tmp_path
):
    objects, made = of_gardener
    seed_config = made["seed"].written(tmp_path / "seed")
    checked(seed_config)
    with (
        charts.running(cluster, objects, tmp_path / "manager.log") as address,
        running_prometheus(seed_config) as seed,
    ):
        deploy_pod(client, objects, "manager", address)
        config = made["aggregate"].written(tmp_path / "aggregate", {FEDERATED: seed})
        assert seed in config.read_text()
        checked(config)
        with running_prometheus(config) as aggregate:
            assert eventually(lambda: active(seed) == [(address, NAME, "up")], SECONDS)
            assert eventually(lambda: loaded(seed) == RULES["seed"], SECONDS)
            assert eventually(lambda: loaded(aggregate) == RULES["aggregate"], SECONDS)
            for prometheus in (seed, aggregate):
                assert eventually(lambda p=prometheus: value(p, TARGETS) == 1, SECONDS)
            (sample,) = ask(aggregate, "query", query="seed:actuator_leaders:sum")["result"]
            assert "prometheus" not in json.dumps(sample["metric"])
