"""Rules and dashboards: they read exposed metrics, each alert has its page, nothing is stale."""

import json
import re
import tomllib
from pathlib import Path

import promql_parser as promql
import pytest
import yaml
from cattrs.errors import BaseValidationError
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from generic.tools.monitoring import (
    ALERTS,
    GROUPS,
    RECORDINGS,
    boards,
    never_scraped,
    rule_file,
    runbook_of,
)
from generic.tools.monitoring.plutono import SCHEMA, plutono
from hack.dashboards.__main__ import HERE, completed, read, written
from tests.rules.promtool import name_of
from tests.support.pages.fields import fields
from tests.support.pages.promised_metrics import PROMISED

RUNBOOKS = Path(__file__).parents[3] / "docs" / "runbooks"
TARGET = {"job", "seed", "extension", "instance", "exported_namespace"}
"""Labels that scraping and exposition add."""
ALL_ALERTS = [*ALERTS, never_scraped("extension-aws")]
SUFFIXES = {"histogram": ("_bucket", "_count", "_sum"), "gauge": ("",), "counter": ("",)}
OTHERS = {
    "up": set(),
    "ALERTS": {"alertname", "alertstate", "severity", "controller", "kind"},
    "actuator_orphans": {"kind", "resource_type", "state"},
    "actuator_open_orphans": {"age"},
    "actuator_terminating_object_deletion_timestamp_seconds": {
        *("controller", "kind", "namespace", "name", "state")
    },
}
EXPOSED = OTHERS | {
    f"{name}{suffix}": labels | ({"le"} if suffix == "_bucket" else set())
    for name, kind, labels in PROMISED
    for suffix in SUFFIXES[kind]
}
BOARDS = boards()
PLUTONO = {name: plutono(board, "prometheus-seed") for name, board in BOARDS.items()}
RECORDED = Path(__file__).parents[2] / "recorded" / "plutono_fields.txt"
GARDENERS = set(RECORDED.read_text().splitlines())
"""The fields of the dashboards that Gardener v1.149.0 ships for Plutono."""
DOCUMENTED = {
    "annotation.expr str",
    "annotation.titleFormat str",
    "link.asDropdown bool",
    "panel.fieldConfig.defaults.links[].targetBlank bool",
    "panel:graph.thresholds[].colorMode str=custom",
}
"""Fields that none of them has (Grafana 7.5 documentation: "Annotations", "Dashboard links", "Data
links", "Graph panel")."""
PANELS = [panel for board in BOARDS.values() for panel in board["panels"] if panel["type"] != "row"]
GRAFANA = {"$__rate_interval": "5m", "$__interval": "5m", "$period": "30d"}


def recorded():
    """The labels that each recorded series keeps: those of its outer aggregation, and its own."""
    found: dict[str, set[str]] = {}
    for rule in RECORDINGS:
        kept = re.findall(r"\bby \(([^)]*)\)", rule["expr"])[0]
        labels = set(re.findall(r"\w+", kept)) - {"le"} | rule.get("labels", {}).keys()
        found[rule["record"]] = found.get(rule["record"], set()) | labels
    return found


def selectors(node, ranged=False):
    """Each vector selector below, and whether it has a range or only has to be there."""
    if isinstance(node, promql.VectorSelector):
        yield node, ranged or node.offset is not None  # a difference to an earlier value
    presence = isinstance(node, promql.BinaryExpr) and str(node.op) == "unless"
    ranged = presence or isinstance(node, promql.MatrixSelector)
    for field in ("expr", "lhs", "rhs", "args", "vector_selector", "param"):
        below = getattr(node, field, None)
        for item in below if isinstance(below, list) else [below]:
            if item is not None:
                yield from selectors(item, ranged)


def without_variables(expr):
    """The expression with values in the place of Grafana's variables."""
    for variable, value in GRAFANA.items():
        expr = expr.replace(variable, value)
    return expr


def problems(expr):
    """Series of the expression that no metric exposes, and counters read without a rate."""
    expr = without_variables(expr)
    known = EXPOSED | recorded()
    grouped = set(re.findall(r"\w+", " ".join(re.findall(r"\b(?:by|on) \(([^)]*)\)", expr))))
    everything = set(TARGET)
    for found, ranged in selectors(promql.parse(expr)):
        labels = known.get(found.name)
        if labels is None:
            yield f"{found.name} is not exposed"
            continue
        everything |= labels
        asked = {matcher.name for matcher in found.matchers.matchers}
        yield from (f"{found.name} has no {name}" for name in asked - labels - TARGET)
        counts = found.name.endswith(("_total", "_bucket")) and "_age_seconds" not in found.name
        if counts and not ranged:
            yield f"{found.name} is a counter, and read without rate or increase"
    yield from (f"nothing has {name}" for name in grouped - everything)


@pytest.mark.parametrize("rule", [*RECORDINGS, *ALERTS], ids=name_of)
def test_a_rule_reads_only_exposed_or_recorded_series(rule):
    assert list(problems(rule["expr"])) == []


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_reads_only_exposed_or_recorded_series(panel):
    assert panel["targets"]
    for target in panel["targets"]:
        assert list(problems(target["expr"])) == []
        legend = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
        kept = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", target["expr"]))))
        assert legend <= kept, "a legend names a label that is not kept"


@pytest.mark.parametrize(
    ("expr", "problem"),
    [
        ("sum(rate(actuator_deletion_total[5m]))", "actuator_deletion_total is not exposed"),
        (
            'rate(actuator_deletions_total{result="x"}[5m])',
            "actuator_deletions_total has no result",
        ),
        ("sum by (code) (rate(actuator_deletions_total[5m]))", "nothing has code"),
        ("sum(actuator_deletions_total)", "is a counter, and read without rate or increase"),
    ],
)
def test_a_wrong_expression_is_found(expr, problem):
    assert problem in " ".join(problems(expr))


def test_a_query_that_is_no_promql_is_found():
    with pytest.raises(ValueError, match="unclosed left parenthesis"):
        list(problems("sum(rate(actuator_deletions_total[5m])"))


@pytest.mark.parametrize("alert", ALL_ALERTS, ids=name_of)
def test_an_alert_has_a_summary_a_description_and_a_runbook(alert):
    page = (RUNBOOKS / f"{runbook_of(alert['alert'])}.md").read_text()
    assert alert["alert"] in page
    assert "## Diagnosis" in page
    assert "## Resolution" in page
    assert alert["annotations"].keys() == {"summary", "description"}
    assert all(text.endswith(".") for text in alert["annotations"].values())


def test_no_runbook_is_left_over():
    assert {path.stem for path in RUNBOOKS.glob("*.md")} == {
        runbook_of(alert["alert"]) for alert in ALL_ALERTS
    }


def test_the_rules_are_a_rule_file_whose_alerts_lead_to_their_runbooks():
    project = tomllib.loads((RUNBOOKS.parents[1] / "pyproject.toml").read_text())["project"]
    _, group = rule_file(GROUPS)["groups"]
    linked = {rule["annotations"]["runbook_url"] for rule in group["rules"]}
    assert all(url.startswith(f"{project['urls']['Repository']}/blob/main/docs/") for url in linked)
    records, alerts = rule_file(GROUPS, "https://runbooks.example.org/")["groups"]
    assert len(records["rules"]) == len(RECORDINGS)
    assert len(alerts["rules"]) == len(ALERTS)
    for rule in alerts["rules"]:
        where = f"https://runbooks.example.org/{runbook_of(rule['alert'])}.md"
        assert rule["annotations"]["runbook_url"] == where
        assert rule["labels"]["severity"] in ("info", "warning", "critical")


def test_the_dashboards_in_the_package_equal_the_generated_ones():
    made = {name.removesuffix(".json"): json.loads(text) for name, text in written().items()}
    assert made == boards(), "stale; run `make dashboards`"


@pytest.mark.parametrize(
    ("find", "put"),
    [
        pytest.param("form: stat", "form: gauge-ish", id="an unknown form"),
        pytest.param("unit:", "units:", id="an unknown field"),
        pytest.param("width: 12", "width: wide", id="a width that is no number"),
        pytest.param("width: 12", "width: 25", id="a panel wider than the page"),
        pytest.param("thresholds: {1:", "thresholds: {much:", id="a threshold that is no number"),
        pytest.param("description:", "#", id="a panel without a description"),
    ],
)
def test_a_dashboard_that_is_described_wrongly_is_refused(find, put):
    text = (HERE / "deletion-outcomes.yaml").read_text()
    before, found, after = text.partition(f"    {find}")
    assert found
    read(text).json("uid")
    with pytest.raises((KeyError, ValueError, BaseValidationError)):
        read(f"{before}    {put}{after}").json("uid")


@pytest.mark.parametrize("name", BOARDS)
def test_a_dashboard_is_whole_json_with_a_description_and_a_unit_on_every_panel(name):
    board = BOARDS[name]
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    for panel in panels:
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
    places = [tuple(panel["gridPos"][key] for key in "xywh") for panel in panels]
    assert not [
        (place, other)
        for number, place in enumerate(places)
        for other in places[number + 1 :]
        if overlap(place, other)
    ]


def overlap(one, other):
    x, y, w, h = one
    a, b, c, d = other
    return x < a + c and a < x + w and y < b + d and b < y + h


def test_rules_are_printed_for_prometheus(command):
    printed = command("rules").stdout
    assert [group["name"] for group in yaml.safe_load(printed)["groups"]] == [
        "actuator-records",
        "actuator-alerts",
    ]


def test_dashboards_are_listed_printed_and_written(command, tmp_path):
    names = command("dashboards").stdout.split()
    assert names == list(BOARDS)
    for name in names:
        assert json.loads(command("dashboards", name).stdout) == BOARDS[name]
    command("dashboards", "--output", tmp_path)
    assert {path.stem for path in tmp_path.iterdir()} == set(names)
    refused = command("dashboards", "nope", status=1)
    assert "set one of: controllers, deletion-outcomes, operators" in refused.stderr
    printed = command("dashboards", "operators", "--plutono", "prometheus-seed").stdout
    assert json.loads(printed) == PLUTONO["operators"]


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_a_dashboard_has_only_fields_that_grafana_reads(board):
    """The models of its SDK drop unknown fields, except some of the data source for Prometheus."""
    read_back = completed(json.loads(JSONEncoder().encode(Dashboard.from_json(board))))
    assert set(fields(board)) == set(fields(read_back))


@pytest.mark.parametrize("board", PLUTONO.values(), ids=PLUTONO)
def test_a_dashboard_for_plutono_has_only_fields_of_gardeners_dashboards(board):
    assert board["schemaVersion"] == SCHEMA
    assert set(fields(board)) <= GARDENERS | DOCUMENTED
    sources = [*board["panels"], *board["annotations"]["list"], *board["templating"]["list"]]
    named = {item["datasource"] for item in sources if item.get("type") not in ("row", "custom")}
    assert named == {"prometheus-seed"}
    assert "${datasource}" not in json.dumps(board)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("panels", 1, "options", "wideLayout"), True),
        (("panels", 1, "options", "colorMode"), "background_solid"),
        (("panels", 1, "type"), "timeseries"),
        (("templating", "list", 0, "allowCustomValue"), True),
        (("schemaVersion",), "41"),
    ],
)
def test_a_field_that_plutono_does_not_know_is_found(path, value):
    board = json.loads(json.dumps(PLUTONO["deletion-outcomes"]))
    place = board
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert set(fields(board)) - GARDENERS - DOCUMENTED


@pytest.mark.parametrize("name", BOARDS)
def test_both_schemas_have_the_same_panels_queries_and_links(name):
    for panel, other in zip(BOARDS[name]["panels"], PLUTONO[name]["panels"], strict=True):
        assert [panel[key] for key in ("id", "title", "gridPos")] == [
            other[key] for key in ("id", "title", "gridPos")
        ]
        assert [target["expr"] for target in panel.get("targets", ())] == [
            target["expr"] for target in other.get("targets", ())
        ]
        assert urls(panel) == urls(other)


def urls(panel):
    """The links of a panel and of its data."""
    data = panel.get("fieldConfig", {}).get("defaults", {}).get("links")
    return [(link["title"], link["url"]) for link in [*panel.get("links", []), *(data or [])]]


def test_links_lead_to_runbooks_and_to_the_explanation_of_stuck_objects():
    found = {url for panel in PANELS for url in urls(panel)}
    assert found
    known = {f"Runbook {alert['alert']}" for alert in ALERTS}
    for title, url in found:
        file, _, anchor = url.partition("/blob/main/docs/")[2].partition("#")
        text = (RUNBOOKS.parent / file).read_text()
        if title.startswith("actuator explain "):
            assert f"# {anchor.replace('-', ' ')}" in text.lower()
        else:
            assert title in known


@pytest.mark.parametrize("name", BOARDS)
def test_a_dashboard_selects_seed_extension_and_period(name):
    variables = {item["name"]: item for item in BOARDS[name]["templating"]["list"]}
    assert {"seed", "extension", "period"} <= variables.keys()
    assert variables["period"]["current"]["value"] == "30d"
    assert variables["seed"]["allValue"] == ".*", "the Prometheus of a seed has no label for it"
    for panel in (panel for panel in BOARDS[name]["panels"] if panel["type"] != "row"):
        for target in panel["targets"]:
            for selector, _ in selectors(promql.parse(without_variables(target["expr"]))):
                matched = {matcher.name for matcher in selector.matchers.matchers}
                assert {"seed", "extension"} <= matched
