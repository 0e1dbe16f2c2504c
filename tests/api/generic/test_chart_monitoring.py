"""The objects for monitoring in a chart: accepted by the CRDs, and read by one Prometheus each.

`recorded/gardener_monitoring.yaml` has the selectors of Gardener's Prometheus objects.
"""

import json
import re
import subprocess
from pathlib import Path

import promql_parser as promql
import pytest
import yaml

from actuator import Resource
from actuator.errors import ApiError
from generic.kube.client import path_of
from generic.library.charts import find_helm
from generic.testing.seed import install_crds
from generic.tools.monitoring import ALERTS, boards, runbook_of
from generic.tools.packaging.monitoring import named, rules_of, scoped
from tests.support.landscape.chart import GARDENLET, OPERATOR, deployment_of, rendered
from tests.support.objects.expressions import vector_selectors
from tests.support.pages.commands import run_command

RECORDED = Path(__file__).parents[2] / "recorded"
FACTS = yaml.safe_load((RECORDED / "gardener_monitoring.yaml").read_text())
CRDS = [json.loads(line) for line in (RECORDED / "monitoring_crds.jsonl").read_text().splitlines()]
GROUP = "monitoring.coreos.com"
RESOURCES = {
    "PrometheusRule": Resource(f"{GROUP}/v1", "prometheusrules"),
    "ServiceMonitor": Resource(f"{GROUP}/v1", "servicemonitors"),
    "ScrapeConfig": Resource(f"{GROUP}/v1alpha1", "scrapeconfigs"),
}
NAME = "extension-networkfilter"
NAMESPACE = "extension-networkfilter-x7k2p"
"""Gardener's prefix, which its PodMonitor requires."""
SELF_HOSTED = {"selfHostedShootCluster": True}
SEED = {("PrometheusRule", "seed"), ("PrometheusRule", "aggregate"), ("ScrapeConfig", "aggregate")}
GARDEN = {("PrometheusRule", "garden"), ("ServiceMonitor", "garden")}
OWN = {("PrometheusRule", "mine"), ("ServiceMonitor", "mine")}
INSTALLATIONS = [
    pytest.param("auto", {}, set(), id="helm"),
    pytest.param("auto", GARDENLET, SEED, id="gardenlet"),
    pytest.param("auto", OPERATOR, GARDEN, id="gardener-operator"),
    pytest.param("auto", SELF_HOSTED, set(), id="self-hosted"),
    pytest.param("gardener", {}, SEED, id="gardener"),
    pytest.param("none", GARDENLET, set(), id="none"),
    pytest.param("prometheus-operator", {}, OWN, id="prometheus-operator"),
]


@pytest.fixture(scope="session")
def chart(tmp_path_factory):
    """The folder of a chart."""
    folder = tmp_path_factory.mktemp("chart")
    run_command("chart", "extensions.networkfilter:extension", "--output", folder)
    return folder / NAME


@pytest.fixture
def installed(chart):
    """Render the objects of a flavour; a Prometheus of the user selects the label `mine`."""

    def call(flavour, gardener):
        monitoring = {"flavour": flavour, "labels": {"prometheus": "mine"}}
        return rendered(chart, NAMESPACE, gardener, monitoring=monitoring)

    return call


def readers(obj):
    """The Prometheus objects that select an object."""
    selectors = {**FACTS["prometheuses"], "mine": {"prometheus": "mine"}}
    labels = obj["metadata"]["labels"]
    return [name for name, wanted in selectors.items() if labels.items() >= wanted.items()]


def of_monitoring(objects):
    return [obj for obj in objects if obj["apiVersion"].startswith(GROUP)]


@pytest.mark.parametrize(("flavour", "gardener", "expected"), INSTALLATIONS)
def test_one_prometheus_selects_each_object(installed, flavour, gardener, expected):
    objects = of_monitoring(installed(flavour, gardener))
    found = [(obj["kind"], reader) for obj in objects for reader in readers(obj)]
    assert len(found) == len(objects)
    assert set(found) == expected
    for obj in objects:
        (reader,) = readers(obj)
        name = NAME if reader == "mine" else f"{reader}-{NAME}"
        assert (obj["metadata"]["name"], obj["metadata"]["namespace"]) == (name, NAMESPACE)


@pytest.mark.parametrize(("flavour", "gardener", "expected"), INSTALLATIONS)
def test_a_pod_is_scraped_at_most_once(installed, flavour, gardener, expected):
    objects = installed(flavour, gardener)
    annotations = deployment_of(objects)["spec"]["template"]["metadata"]["annotations"]
    words = [annotations.get(f"prometheus.io/{word}", "") for word in ("scrape", "port")]
    by_annotations = re.fullmatch(FACTS["scraped_pods"], ";".join([NAMESPACE, *words])) is not None
    monitors = [obj for obj in objects if obj["kind"] == "ServiceMonitor"]
    assert by_annotations + len(monitors) == bool(expected)
    service = next(obj for obj in objects if obj["kind"] == "Service")
    for monitor in monitors:
        assert monitor["spec"]["selector"]["matchLabels"].items() <= (
            service["metadata"]["labels"].items()
        )
        (endpoint,) = monitor["spec"]["endpoints"]
        assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
        job = service["metadata"]["labels"][monitor["spec"]["jobLabel"]]
        assert job == NAME
    if by_annotations:
        assert annotations["prometheus.io/name"] == NAME


BOARDS = {"controllers", "deletion-outcomes", "operators"}


@pytest.mark.parametrize(
    ("flavour", "gardener", "namespace", "labels", "source"),
    [
        ("auto", GARDENLET, "garden", ["garden", "seed"], "prometheus-seed"),
        ("auto", OPERATOR, "garden", ["garden"], "prometheus-garden"),
        ("prometheus-operator", {}, NAMESPACE, [], {"type": "prometheus", "uid": "${datasource}"}),
        ("none", {}, "", [], None),
    ],
)
def test_dashboards_are_where_plutono_or_grafana_reads_them(
    installed, flavour, gardener, namespace, labels, source
):
    maps = [obj for obj in installed(flavour, gardener) if obj["kind"] == "ConfigMap"]
    found = {
        obj["metadata"]["name"].removeprefix(f"{NAME}-"): obj
        for obj in maps
        if "dashboard" in str(obj["metadata"]["labels"])
    }
    assert found.keys() == (BOARDS if source else set())
    for stem, obj in found.items():
        wanted = {f"{FACTS['dashboards']}{label}": "true" for label in labels}
        wanted |= {} if labels else {"grafana_dashboard": "1"}
        own = obj["metadata"]["labels"]
        assert {key: own[key] for key in own if "dashboard" in key} == wanted
        assert obj["metadata"]["namespace"] == namespace
        ((file, text),) = obj["data"].items()
        board = json.loads(text)
        assert file == f"{NAME}-{stem}.json", "files of several extensions are in one folder"
        panels = [panel for panel in board["panels"] if panel["type"] != "row"]
        assert [panel["datasource"] for panel in panels] == [source] * len(panels)
        assert board["title"].endswith(f": {NAME}")
        assert len(board["uid"]) <= 40, "Grafana's limit"
        chosen = {item["name"]: item.get("current") for item in board["templating"]["list"]}
        assert chosen["extension"]["value"] == [NAME]


def test_dashboards_of_two_extensions_have_different_ids():
    ids = {named(board, name)["uid"] for board in boards().values() for name in ("a", "b")}
    assert len(ids) == 2 * len(boards())


def test_another_flavour_is_refused_by_name(chart):
    command = [find_helm(print), "template", "one", chart, "--set", "monitoring.flavour=all"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    expected = "monitoring.flavour: expected auto, gardener, prometheus-operator or none, got all"
    assert expected in done.stderr


def test_a_prometheus_outside_the_namespace_reaches_the_pods(installed):
    service = next(obj for obj in installed("auto", GARDENLET) if obj["kind"] == "Service")
    expected = FACTS["service_annotations"]
    found = service["metadata"]["annotations"]
    selectors = "networking.resources.gardener.cloud/namespace-selectors"
    webhooks = json.loads(found.pop(selectors))
    assert json.loads(expected[selectors])[0] in webhooks
    assert {name: found[name] for name in expected if name != selectors} == {
        name: value for name, value in expected.items() if name != selectors
    }


@pytest.fixture(scope="module")
def accept(admin):
    """Try to create an object in strict mode, where the CRDs of Gardener are installed."""
    install_crds(admin, CRDS)

    def call(obj):
        meta = {**obj["metadata"], "namespace": "default"}
        path = path_of(RESOURCES[obj["kind"]], "default", meta["name"])
        body = json.dumps({**obj, "metadata": meta}).encode()
        query = {"dryRun": "All", "fieldValidation": "Strict", "fieldManager": "test"}
        kind = "application/apply-patch+yaml"
        admin.send("PATCH", path, query=query, body=body, content_type=kind)

    return call


@pytest.mark.parametrize(("flavour", "gardener", "expected"), INSTALLATIONS)
def test_the_crds_of_gardener_accept_each_object(installed, accept, flavour, gardener, expected):
    objects = of_monitoring(installed(flavour, gardener))
    assert len(objects) == len(expected)
    for obj in objects:
        accept(obj)
        with pytest.raises(ApiError, match=r"\.spec\.planted: field not declared in schema"):
            accept({**obj, "spec": {**obj["spec"], "planted": ""}})


RULES = {rules.name: rules.spec["groups"] for rules in rules_of(NAME)}


def test_recordings_of_a_chart_read_only_series_of_its_extension():
    """`up` has no such label: it only limits other series."""
    assert RULES["own"][0] == RULES["seed"][0]
    (recordings, _alerts) = RULES["seed"]
    for rule in recordings["rules"]:
        for selector in vector_selectors(promql.parse(rule["expr"])):
            matchers = {matcher.name: matcher for matcher in selector.matchers.matchers}
            if selector.name != "up":
                assert str(matchers["extension"].op) == "MatchOp.Equal"
                assert matchers["extension"].value == NAME


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        ('sum(actuator_x{extension!=""})', 'sum(actuator_x{extension="a"})'),
        ('x{extension!="", code="1"} offset 1h', 'x{extension="a", code="1"} offset 1h'),
        (
            'seed:actuator_x:sum{window="1h"} > 0',
            'seed:actuator_x:sum{extension="a", window="1h"} > 0',
        ),
    ],
)
def test_an_extension_is_added_to_selectors(expr, expected):
    assert scoped(expr, "a") == expected
    promql.parse(expected)


def test_alerts_that_several_charts_bring_are_equal_except_for_the_absence_of_one():
    """Alertmanager joins alerts with equal labels."""
    other = {rules.name: rules.spec["groups"] for rules in rules_of("another")}
    for name in ("own", "seed", "aggregate"):
        own_alerts = RULES[name][-1]["rules"]
        others = other[name][-1]["rules"]
        assert own_alerts[:-1] == others[:-1]
        assert {own_alerts[-1]["alert"], others[-1]["alert"]} == {"ActuatorNeverScraped"}
        assert own_alerts[-1]["expr"] != others[-1]["expr"]


def test_the_aggregate_prometheus_sends_every_page_to_operators(installed):
    (alerts,) = RULES["aggregate"]
    assert [rule["alert"] for rule in alerts["rules"][:-1]] == [rule["alert"] for rule in ALERTS]
    for rule in alerts["rules"]:
        is_sent = re.fullmatch(FACTS["visibility"], rule["labels"].get("visibility", ""))
        assert bool(is_sent) == (rule["labels"]["severity"] in {"critical", "warning"})
        assert rule["annotations"]["runbook_url"].endswith(f"/{runbook_of(rule['alert'])}.md")
    objects = installed("auto", GARDENLET)
    (config,) = (obj["spec"] for obj in objects if obj["kind"] == "ScrapeConfig")
    assert config["staticConfigs"] == [{"targets": [FACTS["service"]]}]
    (match,) = config["params"]["match[]"]
    (selector,) = vector_selectors(promql.parse(match))
    wanted = {matcher.name: matcher.value for matcher in selector.matchers.matchers}
    assert wanted["extension"] == NAME
    read = {
        selector.name
        for rule in alerts["rules"]
        for selector in vector_selectors(promql.parse(rule["expr"]))
    }
    assert all(re.fullmatch(wanted["__name__"], name or "") for name in read)


def test_a_garden_federates_the_series_of_its_dashboard():
    read = {
        selector.name
        for panel in boards()["operators"]["panels"]
        for target in panel.get("targets", ())
        for selector in vector_selectors(promql.parse(target["expr"].replace("$period", "30d")))
    }
    assert read
    for name in read - {"ALERTS"}:
        assert any(re.fullmatch(pattern, name or "") for pattern in FACTS["federated_by_garden"])
