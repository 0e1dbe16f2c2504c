"""Write the dashboards into the package: `make dashboards`. A test fails when they are stale.

The YAML files here describe the panels, and Grafana's SDK generates the JSON. No Grafana loads the
dashboards in our tests, but mypy and the SDK reject values that its types do not allow.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import cattrs
import yaml
from grafana_foundation_sdk.builders import dashboard as sdk
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as words

from generic.tools.monitoring import RUNBOOKS
from hack.dashboards.panels import FORMS, SOURCE, Form, Panel

HERE = Path(__file__).parent
_FOLDER = HERE.parents[1] / "generic" / "tools" / "monitoring" / "dashboards"
_MARKS = (
    ("Restarts", "process_start_time_seconds", "orange"),
    ("Leader changes", "leader_election_master_status", "purple"),
)
"""Vertical lines in all panels: name, the metric that changes, color."""
_PERIODS = ("1d", "7d", "30d", "90d")
_PERIOD = "30d"
"""The periods of the panels about the past, and the one at first: Prometheus may keep less."""
_SELECTED = 'seed=~"$seed", extension=~"$extension"'
_DOCS = RUNBOOKS.removesuffix("/runbooks")


@attrs.frozen
class DashboardRow:
    """Panels below a heading."""

    title: str
    panels: Sequence[Panel]


@attrs.frozen
class Dashboard:
    """A dashboard, as its YAML file describes it."""

    title: str
    description: str
    variables: Mapping[str, str]
    """Labels that a user selects, and the query that lists the values of each."""
    rows: Sequence[DashboardRow]

    def json(self, uid: str) -> dict[str, Any]:
        """Return Grafana's JSON of it (the classic model)."""
        built = self._builder(uid).build()
        for number, panel in enumerate(built.panels or (), start=1):
            panel.id_val = number
        return completed(json.loads(JSONEncoder().encode(built)))

    def _builder(self, uid: str) -> sdk.Dashboard:
        page = sdk.Dashboard(self.title).uid(uid).description(self.description).readonly()
        page = page.tags(["gardener-actuator", "controller-runtime"]).version(1).timezone("utc")
        page = page.refresh("1m").time("now-24h", "now").link(_link()).link(_records())
        for name, metric, color in _MARKS:
            page.annotation(_mark(metric).name(name).icon_color(color))
        page.with_variable(
            sdk.DatasourceVariable("datasource").label("Data source").type("prometheus")
        )
        for name, query in self.variables.items():
            page.with_variable(_variable(name, query))
        page.with_variable(_period())
        for row in self.rows:
            page.with_row(sdk.Row(row.title))
            for panel in row.panels:
                page.with_panel(panel.build())
        return page


def completed(raw: dict[str, Any]) -> dict[str, Any]:
    """Return JSON of the SDK with what Grafana's data source for Prometheus reads.

    The SDK does not know these fields, and gives those of intervals to all variables.
    """
    for mark in raw["annotations"]["list"]:
        mark["titleFormat"] = mark["name"]
    for variable in raw["templating"]["list"]:
        for key in ("auto", "auto_min", "auto_count"):
            del variable[key]
        if variable["type"] == "query":
            variable["definition"] = variable["query"]["query"]
    return raw


def _link() -> sdk.DashboardLink:
    """Return a link to all dashboards about controllers, with the same time and variables."""
    link = sdk.DashboardLink("Controllers").type(words.DashboardLinkType.DASHBOARDS)
    link = link.tags(["controller-runtime"]).as_dropdown(as_dropdown=True)
    return link.include_vars(include_vars=True).keep_time(keep_time=True)


def _records() -> sdk.DashboardLink:
    """Return a link to what no metric has: a label with such values would have no bound."""
    title = "Accounts, shoots and persons are in the records"
    link = sdk.DashboardLink(title).type(words.DashboardLinkType.LINK).icon("doc")
    return link.url(f"{_DOCS}/evidence.md").target_blank(target_blank=True)


def _mark(metric: str) -> sdk.AnnotationQuery:
    query = f"changes({metric}{{{_SELECTED}}}[$__rate_interval]) > 0"
    return sdk.AnnotationQuery().datasource(SOURCE).enable(enable=True).expr(query)


def _variable(name: str, query: str) -> sdk.QueryVariable:
    variable = sdk.QueryVariable(name).label(name.capitalize()).datasource(SOURCE)
    # A seed's own Prometheus has no label for the seed: it is added by federation.
    every = ".*" if name == "seed" else ".+"
    variable = variable.query({"query": query, "refId": name}).all_value(every)
    variable = variable.refresh(words.VariableRefresh.ON_TIME_RANGE_CHANGED)
    variable = variable.sort(words.VariableSort.ALPHABETICAL_ASC)
    return variable.multi(multi=True).include_all(include_all=True)


def _period() -> sdk.CustomVariable:
    chosen = [words.VariableOption(period == _PERIOD, period, period) for period in _PERIODS]
    variable = sdk.CustomVariable("period").label("Period").values(",".join(_PERIODS))
    variable = variable.options(chosen).multi(multi=False).include_all(include_all=False)
    return variable.current(words.VariableOption(True, _PERIOD, _PERIOD))


def read(text: str) -> Dashboard:
    """Return the dashboard that a YAML file describes. Raises for unknown fields."""
    converter = cattrs.Converter(forbid_extra_keys=True)
    converter.register_structure_hook(Form, lambda name, _: FORMS[name])
    return converter.structure(yaml.safe_load(text), Dashboard)


def written() -> dict[str, str]:
    """Return the name and the expected text of each file."""
    boards = {path.stem: read(path.read_text()) for path in sorted(HERE.glob("*.yaml"))}
    return {
        f"{name}.json": json.dumps(board.json(f"actuator-{name}"), indent=1) + "\n"
        for name, board in boards.items()
    }


if __name__ == "__main__":
    for name, text in written().items():
        (_FOLDER / name).write_text(text)
