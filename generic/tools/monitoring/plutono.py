"""Converts a dashboard of Grafana to the schema of Plutono, which Gardener runs. Pure.

Plutono is Grafana 7.5: schemaVersion 27, data sources by name, the panels `graph` and `heatmap` of
that time. Fields that it does not know are left out; the tests compare those that are left with the
dashboards of Gardener. Not here: what the panels show (`dashboards`).

Sources: Grafana 7.5 documentation, "Dashboard JSON model"; Gardener,
`pkg/component/observability/plutono/dashboards`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from actuator.meta import Raw

SCHEMA = 27
_KEPT = ("title", "uid", "description", "tags", "timezone", "editable", "graphTooltip", "time")
_PANEL = ("id", "title", "description", "type", "gridPos", "interval", "transformations")
_TARGET = ("expr", "refId", "instant", "format", "legendFormat")
_VARIABLE = ("name", "label", "type", "query", "definition", "refresh", "sort", "skipUrlSync")
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "stat": ("colorMode", "graphMode", "justifyMode", "orientation", "reduceOptions", "textMode"),
    "bargauge": ("displayMode", "orientation", "reduceOptions", "showUnfilled"),
    "table": ("showHeader",),
}
_DEFAULTS = ("unit", "min", "noValue", "thresholds", "color")
_ALL = {"selected": True, "text": "All", "value": "$__all"}
_AUTO = "__auto"
_LINK = ("title", "url", "targetBlank")
_BOARD_LINK = ("title", "type", "icon", "tags", "asDropdown", "includeVars", "keepTime")


def plutono(board: Raw, source: str) -> Raw:
    """Return the dashboard for Plutono; all its panels read the data source of that name."""
    variables = [item for item in board["templating"]["list"] if item["type"] != "datasource"]
    marks = [{**mark, "datasource": source} for mark in board["annotations"]["list"]]
    return {
        **_only(board, _KEPT),
        "refresh": board["refresh"],
        "schemaVersion": SCHEMA,
        "version": board["version"],
        "links": [_only(link, (*_BOARD_LINK, *_LINK)) for link in board["links"]],
        "annotations": {"list": [_without(mark, ("builtIn",)) for mark in marks]},
        "templating": {"list": [_variable(item, source) for item in variables]},
        "panels": [_panel(panel, source) for panel in board["panels"]],
    }


def _only(raw: Raw, names: tuple[str, ...]) -> Raw:
    return {name: raw[name] for name in names if name in raw}


def _without(raw: Raw, names: tuple[str, ...]) -> Raw:
    return {name: value for name, value in raw.items() if name not in names}


def _variable(variable: Raw, source: str) -> Raw:
    common = {
        **_only(variable, _VARIABLE),
        "hide": 0,
        "multi": variable["multi"],
        "includeAll": variable["includeAll"],
        "options": variable.get("options", []),
        "current": variable.get("current", _ALL),
    }
    if variable["type"] != "query":
        return common
    return {**common, "datasource": source, "regex": "", "allValue": variable["allValue"]}


def _panel(panel: Raw, source: str) -> Raw:
    if panel["type"] == "row":
        return {**_only(panel, ("id", "title", "type", "gridPos", "collapsed")), "panels": []}
    links = [_only(link, _LINK) for link in panel.get("links") or ()]
    common = {
        **_only(panel, _PANEL),
        "datasource": source,
        "links": links,
        "targets": [_target(target) for target in panel["targets"]],
    }
    forms: Mapping[str, Callable[[Raw], Raw]] = {"timeseries": _graph, "heatmap": _heatmap}
    return {**common, **forms.get(panel["type"], _kept)(panel)}


def _target(target: Raw) -> Raw:
    legend = target["legendFormat"]
    return {**_only(target, _TARGET), "legendFormat": "" if legend == _AUTO else legend}


def _data_links(panel: Raw) -> list[Raw]:
    links = panel["fieldConfig"]["defaults"].get("links") or ()
    return [_only(link, _LINK) for link in links]


def _kept(panel: Raw) -> Raw:
    """Return the parts of a panel whose form is the same."""
    config = panel["fieldConfig"]
    defaults = {**_only(config["defaults"], _DEFAULTS), "links": _data_links(panel)}
    return {
        "fieldConfig": {"defaults": defaults, "overrides": config["overrides"]},
        "options": _only(panel["options"], _OPTIONS[panel["type"]]),
    }


def _graph(panel: Raw) -> Raw:
    """Return lines or stacked bars as the panel `graph`."""
    config = panel["fieldConfig"]
    custom = config["defaults"]["custom"]
    bars = custom["drawStyle"] == "bars"
    colors = {
        override["matcher"]["options"]: found["value"]["fixedColor"]
        for override in config["overrides"]
        for found in override["properties"]
        if found["id"] == "color"
    }
    axis = {"logBase": 1, "show": True}
    return {
        "type": "graph",
        "renderer": "flot",
        "bars": bars,
        "lines": not bars,
        "fill": 0 if bars else 1,
        "linewidth": custom["lineWidth"],
        "stack": "stacking" in custom,
        "nullPointMode": "null",
        "aliasColors": colors,
        "thresholds": [_line(step) for step in _steps(config["defaults"])],
        "legend": {"show": True},
        "tooltip": {"shared": True, "sort": 2, "value_type": "individual"},
        "xaxis": {"mode": "time", "show": True},
        "yaxes": [
            {**axis, "format": config["defaults"]["unit"], "min": "0"},
            {**axis, "format": "short", "show": False},
        ],
        "fieldConfig": {"defaults": {"links": _data_links(panel)}, "overrides": []},
    }


def _steps(defaults: Raw) -> list[Raw]:
    """Return the thresholds that have a value."""
    steps = (defaults.get("thresholds") or {}).get("steps") or ()
    return [step for step in steps if step["value"] is not None]


def _line(step: Raw) -> Raw:
    line: dict[str, Any] = {"colorMode": "custom", "fill": False, "line": True, "op": "gt"}
    return {**line, "lineColor": step["color"], "value": step["value"]}


def _heatmap(panel: Raw) -> Raw:
    """Return buckets of a histogram as the panel `heatmap` of that time."""
    return {
        "dataFormat": "tsbuckets",
        "cards": {},
        "color": {"mode": "spectrum", "colorScheme": "interpolateOranges", "exponent": 0.5},
        "heatmap": {},
        "hideZeroBuckets": True,
        "highlightCards": True,
        "legend": {"show": True},
        "tooltip": {"show": True, "showHistogram": False},
        "xAxis": {"show": True},
        "yAxis": {"format": panel["fieldConfig"]["defaults"]["unit"], "logBase": 1, "show": True},
        "yBucketBound": "auto",
        "fieldConfig": {"defaults": {}, "overrides": []},
    }
