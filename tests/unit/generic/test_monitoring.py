"""Rules and dashboards: they read exposed metrics, each alert has its page, nothing is stale."""

import json
import re
import tomllib
from pathlib import Path

import promql_parser as promql
import pytest
import yaml
from cattrs.errors import BaseValidationError

from generic.tools.monitoring import ALERTS, GROUPS, RECORDINGS, dashboard_files, rule_file
from hack.dashboards.__main__ import HERE, read, written
from tests.rules.promtool import name_of
from tests.support.pages.promised_metrics import PROMISED

RUNBOOKS = Path(__file__).parents[3] / "docs" / "runbooks"
TARGET = {"job", "instance"}
"""Labels that scraping adds."""
SUFFIXES = {"histogram": ("_bucket", "_count", "_sum"), "gauge": ("",), "counter": ("",)}
OTHERS = {
    "ALERTS": {"alertname", "alertstate", "severity", "controller", "kind"},
    "actuator_orphans": {"kind", "resource_type", "state"},
    "actuator_open_orphan_age_seconds_bucket": {"le"},
    "actuator_open_orphan_age_seconds_gcount": set(),
    "actuator_terminating_object_deletion_timestamp_seconds": {
        *("controller", "kind", "namespace", "name", "state")
    },
}
EXPOSED = OTHERS | {
    f"{name}{suffix}": labels | ({"le"} if suffix == "_bucket" else set())
    for name, kind, labels in PROMISED
    for suffix in SUFFIXES[kind]
}
BOARDS = {name: json.loads(text) for name, text in dashboard_files().items()}
PANELS = [panel for board in BOARDS.values() for panel in board["panels"] if panel["type"] != "row"]
GRAFANA = {"$__rate_interval": "5m", "$__interval": "5m", "$__range": "24h"}


def recorded():
    """The labels that each recorded series keeps, which are first in its name."""
    levels = {
        recording["record"]: recording["record"].partition(":")[0] for recording in RECORDINGS
    }
    words = ("job", "controller", "kind", "outcome", "state", "code", "le")
    return {name: {w for w in words if w in level.split("_")} for name, level in levels.items()}


def selectors(node, ranged=False):
    """Each vector selector below, and whether it has a range or only has to be there."""
    if isinstance(node, promql.VectorSelector):
        yield node, ranged
    presence = isinstance(node, promql.BinaryExpr) and str(node.op) == "unless"
    ranged = presence or isinstance(node, promql.MatrixSelector)
    for field in ("expr", "lhs", "rhs", "args", "vector_selector", "param"):
        below = getattr(node, field, None)
        for item in below if isinstance(below, list) else [below]:
            if item is not None:
                yield from selectors(item, ranged)


def problems(expr):
    """Series of the expression that no metric exposes, and counters read without a rate."""
    for variable, value in GRAFANA.items():
        expr = expr.replace(variable, value)
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
        counts = found.name.endswith(("_total", "_bucket")) and "terminating" not in found.name
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


@pytest.mark.parametrize("alert", ALERTS, ids=name_of)
def test_an_alert_has_a_summary_a_description_and_a_runbook(alert):
    page = (RUNBOOKS / f"{name_of(alert).lower()}.md").read_text()
    assert page.startswith(f"# {name_of(alert)}\n")
    assert "## Diagnosis" in page
    assert "## Resolution" in page
    assert alert["annotations"].keys() == {"summary", "description"}
    assert all(text.endswith(".") for text in alert["annotations"].values())


def test_no_runbook_is_left_over():
    assert {path.stem for path in RUNBOOKS.glob("*.md")} == {
        name_of(alert).lower() for alert in ALERTS
    }


def test_the_rules_are_a_rule_file_whose_alerts_lead_to_their_runbooks():
    project = tomllib.loads((RUNBOOKS.parents[1] / "pyproject.toml").read_text())["project"]
    (group,) = rule_file(GROUPS)["groups"]
    linked = {r["annotations"]["runbook_url"] for r in group["rules"] if "alert" in r}
    assert all(url.startswith(f"{project['urls']['Repository']}/blob/main/docs/") for url in linked)
    (group,) = rule_file(GROUPS, "https://runbooks.example.org/")["groups"]
    alerts = [rule for rule in group["rules"] if "alert" in rule]
    assert len(alerts) == len(ALERTS)
    for rule in alerts:
        where = f"https://runbooks.example.org/{rule['alert'].lower()}.md"
        assert rule["annotations"]["runbook_url"] == where
        assert rule["labels"]["severity"] in ("info", "warning", "critical")


def test_the_dashboards_in_the_package_equal_the_generated_ones():
    made = {name.removesuffix(".json"): text for name, text in written().items()}
    assert dashboard_files() == made, "stale; run `make dashboards`"


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


@pytest.mark.parametrize("name", ["deletion-outcomes", "controllers"])
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
    assert [group["name"] for group in yaml.safe_load(printed)["groups"]] == ["actuator"]


def test_dashboards_are_listed_printed_and_written(command, tmp_path):
    names = command("dashboards").stdout.split()
    assert names == list(dashboard_files())
    for name in names:
        assert command("dashboards", name).stdout == dashboard_files()[name]
    command("dashboards", "--output", tmp_path)
    assert {path.stem for path in tmp_path.iterdir()} == set(names)
    refused = command("dashboards", "nope", status=1)
    assert "set one of: controllers, deletion-outcomes" in refused.stderr
