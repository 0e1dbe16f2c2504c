"""Dashboards as data, and Grafana's JSON of them (the classic model, which every Grafana reads).

Which panels there are is `deletions`' and `controllers`' business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import attrs

Json = dict[str, Any]

_COLUMNS = 24
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_SCHEMA = 39
_RESTARTED = 'changes(process_start_time_seconds{job=~"$job"}[$__rate_interval]) > 0'
_LEADS = 'changes(leader_election_master_status{job=~"$job"}[$__rate_interval]) > 0'
_OURS = "and on (job) actuator_build_info"


class Form(StrEnum):
    """How a panel shows what its queries return."""

    STAT = "stat"
    LINES = "timeseries"
    BARS = "bars"
    """Over time, on top of each other."""
    TABLE = "table"
    RANKING = "bargauge"
    HEATMAP = "heatmap"

    @property
    def is_instant(self) -> bool:
        """Whether only the end of the time range is asked for."""
        return self in (Form.STAT, Form.TABLE, Form.RANKING)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height where a panel does not say its own."""
        return (3, 4) if self is Form.STAT else (8, 7)


@attrs.frozen
class Query:
    """PromQL, and how its series are called."""

    expr: str
    legend: str = ""


@attrs.frozen(kw_only=True)
class Panel:
    """One picture. `width` in 24ths; `colors` by the name of a series; `steps` turn to colors."""

    title: str
    description: str
    form: Form
    queries: Sequence[Query]
    unit: str = "short"
    width: int = attrs.Factory(lambda panel: panel.form.size[0], takes_self=True)
    height: int = attrs.Factory(lambda panel: panel.form.size[1], takes_self=True)
    colors: Mapping[str, str] = attrs.field(factory=dict)
    steps: Sequence[tuple[float, str]] = ()
    opt_in: bool = False
    """Whether it stays empty until a flag of the manager is set."""


def show(
    form: Form, title: str, description: str, expr: str, legend: str = "", **more: Any
) -> Panel:
    """A panel of one query; `more` are other fields of it."""
    queries = [Query(expr, legend)]
    return Panel(title=title, description=description, form=form, queries=queries, **more)


@attrs.frozen(kw_only=True)
class Row:
    """Panels under a heading."""

    title: str
    panels: Sequence[Panel]


@attrs.frozen(kw_only=True)
class Dashboard:
    """A page; `variables` are names of labels that a reader chooses among."""

    uid: str
    title: str
    description: str
    rows: Sequence[Row]
    variables: Mapping[str, str]
    """Name to the query whose values there are to choose."""

    def json(self) -> Json:
        """As Grafana imports it."""
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": ["gardener-actuator", "controller-runtime"],
            "schemaVersion": _SCHEMA,
            "version": 1,
            "editable": False,
            "timezone": "utc",
            "refresh": "1m",
            "time": {"from": "now-24h", "to": "now"},
            "annotations": {"list": [*_annotations()]},
            "templating": {"list": [*_variables(self.variables)]},
            "links": [_LINK],
            "panels": _panels(self.rows),
        }


_LINK = {
    "title": "Controllers",
    "type": "dashboards",
    "tags": ["controller-runtime"],
    "asDropdown": True,
    "includeVars": True,
    "keepTime": True,
}


def _annotations() -> Sequence[Json]:
    marks = (("Restarts", _RESTARTED, "orange"), ("Leader changes", _LEADS, "purple"))
    return [
        {
            "name": name,
            "datasource": _SOURCE,
            "enable": True,
            "iconColor": color,
            "expr": f"{expr} {_OURS}",
            "titleFormat": name,
        }
        for name, expr, color in marks
    ]


def _variables(variables: Mapping[str, str]) -> Sequence[Json]:
    source = {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
    }
    chosen = [
        {
            "name": name,
            "label": name.capitalize(),
            "type": "query",
            "datasource": _SOURCE,
            "query": {"query": query, "refId": name},
            "definition": query,
            "refresh": 2,
            "sort": 1,
            "multi": True,
            "includeAll": True,
            "allValue": ".+",
        }
        for name, query in variables.items()
    ]
    return [source, *chosen]


def _panels(rows: Sequence[Row]) -> list[Json]:
    """All of them, placed from left to right and from top to bottom, numbered."""
    placed: list[Json] = []
    top = 0
    for row in rows:
        placed.append({"type": "row", "title": row.title, "gridPos": _place(0, top, _COLUMNS, 1)})
        top, left, height = top + 1, 0, 0
        for panel in row.panels:
            if left + panel.width > _COLUMNS:
                top, left, height = top + height, 0, 0
            placed.append(
                {**_panel(panel), "gridPos": _place(left, top, panel.width, panel.height)}
            )
            left, height = left + panel.width, max(height, panel.height)
        top += height
    return [{"id": number, **panel} for number, panel in enumerate(placed, start=1)]


def _place(x: int, y: int, w: int, h: int) -> Json:
    return {"x": x, "y": y, "w": w, "h": h}


def _panel(panel: Panel) -> Json:
    kind = "timeseries" if panel.form is Form.BARS else panel.form.value
    return {
        "type": kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": _SOURCE,
        **({"interval": "5m"} if panel.form in (Form.BARS, Form.HEATMAP) else {}),
        "targets": [_target(panel, number, query) for number, query in enumerate(panel.queries)],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": _overrides(panel)},
        "options": _options(panel),
        **({"transformations": _matrix()} if panel.form is Form.TABLE else {}),
    }


def _target(panel: Panel, number: int, query: Query) -> Json:
    target = {
        "refId": "ABCDEFGH"[number],
        "datasource": _SOURCE,
        "expr": query.expr,
        "legendFormat": query.legend or "__auto",
        "instant": panel.form.is_instant,
        "range": not panel.form.is_instant,
    }
    formats = {Form.TABLE: "table", Form.HEATMAP: "heatmap", Form.RANKING: "time_series"}
    return {**target, "format": formats.get(panel.form, "time_series")}


def _defaults(panel: Panel) -> Json:
    defaults: Json = {"unit": panel.unit, "min": 0, "noValue": "none"}
    if panel.steps:
        steps = [
            {"value": None, "color": "green"},
            *({"value": value, "color": color} for value, color in panel.steps),
        ]
        defaults["thresholds"] = {"mode": "absolute", "steps": steps}
        defaults["color"] = {"mode": "thresholds"}
    if panel.form is Form.LINES:
        defaults["custom"] = {"drawStyle": "line", "fillOpacity": 8, "lineWidth": 1}
        if panel.steps:
            defaults["custom"]["thresholdsStyle"] = {"mode": "line"}
            defaults["color"] = {"mode": "palette-classic"}
    if panel.form is Form.BARS:
        defaults["custom"] = {
            "drawStyle": "bars",
            "fillOpacity": 80,
            "lineWidth": 0,
            "stacking": {"mode": "normal", "group": "A"},
        }
    return defaults


def _overrides(panel: Panel) -> list[Json]:
    """The same thing has the same color everywhere."""
    return [
        {
            "matcher": {"id": "byName", "options": name},
            "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": color}}],
        }
        for name, color in panel.colors.items()
    ]


def _options(panel: Panel) -> Json:
    match panel.form:
        case Form.STAT:
            reduced = {"calcs": ["lastNotNull"], "fields": "", "values": False}
            return {"reduceOptions": reduced, "colorMode": "value", "graphMode": "none"}
        case Form.RANKING:
            reduced = {"calcs": ["lastNotNull"], "fields": "", "values": False}
            return {
                "reduceOptions": reduced,
                "orientation": "horizontal",
                "displayMode": "gradient",
            }
        case Form.HEATMAP:
            return {"calculate": False, "yAxis": {"unit": "s"}, "tooltip": {"mode": "single"}}
        case Form.TABLE:
            return {"showHeader": True}
    return {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }


def _matrix() -> list[Json]:
    """Of a table: labels become columns, the time goes."""
    return [{"id": "organize", "options": {"excludeByName": {"Time": True}}}]
