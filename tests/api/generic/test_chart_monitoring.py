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
from generic.tools.monitoring import ALERTS, GROUPS, boards
from generic.tools.packaging.monitoring import RELAYED, named, rules_of, scoped
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
        assert job == NAME, "the rules read this job"
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


@pytest.mark.parametrize("rules", rules_of(NAME), ids=lambda rules: rules.name)
def test_rules_of_a_chart_read_only_series_of_its_job(rules):
    for group in rules.spec["groups"]:
        for rule in group["rules"]:
            for selector in vector_selectors(promql.parse(rule["expr"])):
                matchers = {matcher.name: matcher for matcher in selector.matchers.matchers}
                assert str(matchers["job"].op) == "MatchOp.Equal"
                assert matchers["job"].value == NAME


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        ("sum by (job) (rate(actuator_x_total[5m]))", 'actuator_x_total{job="a"}[5m]'),
        ('ALERTS{alertname="up"}', 'ALERTS{job="a",alertname="up"}'),
        ("absent(up)", 'absent(up{job="a"})'),
        ("sum_over_time(seed:actuator_x:sum[1h:5m])", '(seed:actuator_x:sum{job="a"}[1h:5m])'),
        ('a{code="actuator_x"} and on (job) vector(1)', 'a{code="actuator_x"} and on (job)'),
    ],
)
def test_a_job_is_added_to_selectors_only(expr, expected):
    found = scoped(expr, "a")
    assert expected in found
    promql.parse(found)


def test_the_aggregate_prometheus_has_an_alert_for_each_alert_of_the_seed(installed):
    """One that Gardener's Alertmanager sends to operators."""
    rules = {rules.name: rules.spec["groups"] for rules in rules_of(NAME)}
    relayed = [rule for group in rules["aggregate"] for rule in group["rules"]]
    assert [rule["alert"] for rule in relayed] == [rule["alert"] for rule in ALERTS]
    for rule, origin in zip(relayed, ALERTS, strict=True):
        assert rule["labels"].items() >= origin["labels"].items()
        assert re.fullmatch(FACTS["visibility"], rule["labels"]["visibility"])
        assert rule["labels"]["service"] == NAME
        assert rule["annotations"]["runbook_url"].endswith(f"/{rule['alert'].lower()}.md")
    recorded = [rule["record"] for rule in rules["seed"][-1]["rules"]]
    assert recorded == [RELAYED]
    assert len(rules["seed"]) == len(GROUPS) + 1
    assert any(re.fullmatch(name, RELAYED) for name in FACTS["federated_by_garden"])
    objects = installed("auto", GARDENLET)
    (config,) = (obj["spec"] for obj in objects if obj["kind"] == "ScrapeConfig")
    assert config["staticConfigs"] == [{"targets": [FACTS["service"]]}]
    (match,) = config["params"]["match[]"]
    (selector,) = vector_selectors(promql.parse(match))
    asked = selector.matchers.matchers
    wanted = {matcher.name: matcher.value for matcher in asked}
    assert re.fullmatch(wanted["__name__"], RELAYED)
    assert wanted["job"] == NAME
