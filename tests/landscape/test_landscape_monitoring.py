"""gardenlet's own Prometheus objects select the objects for monitoring of an extension.

They are accepted by the CRDs of the Prometheus operator that gardenlet installs, and applied by the
real gardener-resource-manager.
"""

from __future__ import annotations

import json
import re
import secrets
from pathlib import Path

import pytest

from actuator import Resource
from actuator.errors import AlreadyExists, RequeueAfter
from actuator.interface import CONFIG_MAPS
from generic.kube.client import connect
from generic.kube.clock import SystemClock
from generic.kube.clusters import NAMESPACES
from generic.library import managedresources
from generic.library.managedresources import ManagedResource, wait_until_healthy
from generic.library.managedresources.kind import SEED_CLASS
from generic.testing.drill.landscape.world import INSTALLATIONS
from generic.testing.seed import install_crds
from tests.support.cluster.harness import eventually
from tests.support.landscape.chart import GARDENLET, rendered
from tests.support.landscape.resource_manager import running_resource_manager
from tests.support.pages.commands import run_command

pytest_plugins = ["generic.tools.landscape_fixtures"]
pytestmark = pytest.mark.timeout(1800)

GARDEN = "garden"
EXTENSION = "extension-local"
GROUP = "monitoring.coreos.com"
PROMETHEUSES = Resource(f"{GROUP}/v1", "prometheuses")
POD_MONITORS = Resource(f"{GROUP}/v1", "podmonitors")
RULES = Resource(f"{GROUP}/v1", "prometheusrules")
SCRAPE_CONFIGS = Resource(f"{GROUP}/v1alpha1", "scrapeconfigs")
SERVICE_MONITORS = Resource(f"{GROUP}/v1", "servicemonitors")
DEPLOYMENTS = Resource("apps/v1", "deployments")
SELECTORS = {
    RULES: "ruleSelector",
    SCRAPE_CONFIGS: "scrapeConfigSelector",
    SERVICE_MONITORS: "serviceMonitorSelector",
}
MONITORING = {"PrometheusRule": RULES, "ScrapeConfig": SCRAPE_CONFIGS}
RECORDED = Path(__file__).parents[1] / "recorded"
EXPECTED = {
    ("prometheusrules", "seed"),
    ("prometheusrules", "aggregate"),
    ("scrapeconfigs", "aggregate"),
}
SECONDS = 120.0


@pytest.fixture
def seed(landscape, shared_shoot):
    """A client for the seed, where a Shoot needs the extension."""
    return landscape.landscape.seeds[0].client


@pytest.fixture
def namespace(landscape, seed):
    """The namespace of the installed extension."""
    garden = landscape.landscape.garden.client
    (name,) = (
        obj["metadata"]["name"]
        for obj in garden.list(INSTALLATIONS)
        if obj["spec"]["registrationRef"]["name"] == EXTENSION
    )
    return f"extension-{name}"


def selecting(prometheuses, resource, obj):
    """The names of the Prometheus objects that select an object of any namespace."""
    field = SELECTORS[resource]
    for prometheus in prometheuses:
        spec = prometheus["spec"]
        labels = spec[field]["matchLabels"]
        everywhere = spec[field.replace("Selector", "NamespaceSelector")] == {}
        if everywhere and labels.items() <= obj["metadata"]["labels"].items():
            yield prometheus["metadata"]["name"]


def test_gardenlets_prometheus_objects_select_those_of_an_extension(seed, namespace):
    def found():
        prometheuses = seed.list(PROMETHEUSES, GARDEN)
        return {
            (resource.plural, name)
            for resource in SELECTORS
            for obj in seed.list(resource, namespace)
            for name in selecting(prometheuses, resource, obj)
        }

    assert eventually(lambda: found() == EXPECTED, SECONDS)


def test_gardenlets_pod_monitor_scrapes_the_pods_of_an_extension(seed, namespace):
    deployment = seed.get(DEPLOYMENTS, EXTENSION, namespace)
    annotations = deployment["spec"]["template"]["metadata"]["annotations"]
    words = [annotations[f"prometheus.io/{word}"] for word in ("scrape", "port")]
    monitor = seed.get(POD_MONITORS, "seed-extensions", GARDEN)
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    keep = endpoint["relabelings"][0]
    assert keep["action"] == "keep"
    assert re.fullmatch(keep["regex"], ";".join([namespace, *words]))


def test_dashboards_of_an_extension_are_beside_those_of_plutono(seed, namespace):
    labels = {"dashboard.monitoring.gardener.cloud/seed": "true"}
    found = {
        obj["metadata"]["name"]
        for obj in seed.list(CONFIG_MAPS, GARDEN)
        if labels.items() <= (obj["metadata"].get("labels") or {}).items()
    }
    assert "plutono-dashboards" in found, "gardenlet's own"
    assert any(name.startswith(f"{EXTENSION}-") for name in found)


@pytest.fixture
def managed(environment, tmp_path):
    """Deploys the objects of a chart as gardenlet does, and returns a client and the objects."""
    client = connect(environment.kubeconfig)
    lines = (RECORDED / "monitoring_crds.jsonl").read_text().splitlines()
    install_crds(client, [ManagedResource, *map(json.loads, lines)])
    name = f"extension-{secrets.token_hex(5)}"
    client.create(NAMESPACES, {"metadata": {"name": name}})
    try:
        client.create(NAMESPACES, {"metadata": {"name": GARDEN}})
    except AlreadyExists:
        pass
    run_command("chart", "extensions.networkfilter:extension", "--output", tmp_path)
    chart = tmp_path / "extension-networkfilter"
    objects = rendered(chart, name, GARDENLET, monitoring={"flavour": "auto"})
    objects = [obj for obj in objects if obj["kind"] in ("ConfigMap", *MONITORING)]
    with running_resource_manager(environment, environment, SEED_CLASS):
        managedresources.deploy_for_seed(client, "extension", name, objects)
        yield client, name, objects
        managedresources.delete(client, "extension", name)


def test_a_resource_manager_applies_the_objects_for_monitoring(managed):
    client, namespace, objects = managed

    def is_healthy():
        try:
            wait_until_healthy(client, SystemClock(), "extension", namespace=namespace)
        except RequeueAfter:
            return False
        return True

    assert eventually(is_healthy, SECONDS)
    for obj in objects:
        meta = obj["metadata"]
        resource = MONITORING.get(obj["kind"], CONFIG_MAPS)
        found = client.get(resource, meta["name"], meta["namespace"])
        assert found["metadata"]["labels"].items() >= meta["labels"].items()
        for part in ("spec", "data"):
            assert found.get(part) == obj.get(part)
