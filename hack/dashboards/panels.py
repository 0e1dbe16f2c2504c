"""Panels: converts the YAML data to builders of Grafana's SDK, whose types mypy checks."""

from collections.abc import Callable, Mapping
from string import ascii_uppercase

import attrs
from grafana_foundation_sdk.builders import (
    bargauge,
    common,
    dashboard,
    heatmap,
    prometheus,
    stat,
    table,
    timeseries,
)
from grafana_foundation_sdk.models import common as words
from grafana_foundation_sdk.models.dashboard import (
    DashboardLinkType,
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
    Threshold,
    ThresholdsMode,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from generic.tools.monitoring import RUNBOOKS

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
"""The Prometheus that a user selects."""

_EXPLAIN = f"{RUNBOOKS.removesuffix('/runbooks')}/troubleshooting.md#stuck-objects"

Builder = bargauge.Panel | heatmap.Panel | stat.Panel | table.Panel | timeseries.Panel


@attrs.frozen
class Form:
    """The visualization of a panel, and its size in 24ths of the page's width."""

    builder: Callable[[], Builder]
    instant: bool = False
    """Whether queries are evaluated only at the end of the time range."""
    format: PromQueryFormat = PromQueryFormat.TIME_SERIES
    width: int = 8
    height: int = 7


@attrs.frozen(kw_only=True)
class Panel:
    """One panel, as the YAML files describe it."""

    title: str
    form: Form
    description: str
    queries: Mapping[str, str]
    """PromQL by legend; with the legend `__auto` Grafana names the series."""
    unit: str = "short"
    """Grafana's identifier of the unit."""
    width: int = attrs.Factory(lambda panel: panel.form.width, takes_self=True)
    colors: Mapping[str, str] = attrs.field(factory=dict)
    """Colors by the name of a series."""
    thresholds: Mapping[float, str] = attrs.field(factory=dict)
    """Colors by the value at which they begin; green below the first value."""

    runbook: str = ""
    """The alert whose runbook explains the panel."""
    explain: str = ""
    """A target of `actuator explain`, with Grafana's variables of a row or a series."""

    def build(self) -> Builder:
        """Return the panel without its id; the dashboard places it."""
        panel = self.form.builder().title(self.title).description(self.description)
        panel = panel.datasource(SOURCE).span(self.width).height(self.form.height)
        panel = panel.unit(self.unit).min(0).no_value("none")
        for number, (legend, expr) in enumerate(self.queries.items()):
            query = prometheus.Dataquery().expr(expr).legend_format(legend)
            query = query.ref_id(ascii_uppercase[number])
            query = query.datasource(SOURCE).format(self.form.format)
            panel.with_target(query.instant() if self.form.instant else query.range())
        for series, color in self.colors.items():
            fixed = {"mode": FieldColorModeId.FIXED, "fixedColor": color}
            panel.override_by_name(series, [DynamicConfigValue("color", fixed)])
        if self.runbook:
            page = f"{RUNBOOKS}/{self.runbook.lower()}.md"
            panel.links([_link(f"Runbook {self.runbook}", page)])
        if self.explain:
            panel.data_links([_link(f"actuator explain {self.explain}", _EXPLAIN)])
        return self._with_thresholds(panel) if self.thresholds else panel

    def _with_thresholds(self, panel: Builder) -> Builder:
        color = FieldColorModeId.THRESHOLDS
        if isinstance(panel, timeseries.Panel):  # lines keep their colors and cross the thresholds
            color = FieldColorModeId.PALETTE_CLASSIC
            style = common.GraphThresholdsStyleConfig().mode(words.GraphThresholdsStyleMode.LINE)
            panel.thresholds_style(style)
        steps = [
            Threshold(color="green"),
            *(Threshold(*threshold) for threshold in self.thresholds.items()),
        ]
        absolute = dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)
        return panel.thresholds(absolute).color_scheme(dashboard.FieldColor().mode(color))


def _link(title: str, url: str) -> dashboard.DashboardLink:
    link = dashboard.DashboardLink(title).type(DashboardLinkType.LINK).url(url)
    return link.target_blank(target_blank=True)


def _last() -> common.ReduceDataOptions:
    return common.ReduceDataOptions().calcs(["lastNotNull"]).fields("").values(values=False)


def _stat() -> stat.Panel:
    panel = stat.Panel().reduce_options(_last()).graph_mode(words.BigValueGraphMode.NONE)
    return panel.color_mode(words.BigValueColorMode.VALUE)


def _ranking() -> bargauge.Panel:
    panel = bargauge.Panel().reduce_options(_last()).orientation(words.VizOrientation.HORIZONTAL)
    return panel.display_mode(words.BarGaugeDisplayMode.GRADIENT)


def _over_time() -> timeseries.Panel:
    legend = common.VizLegendOptions().display_mode(words.LegendDisplayMode.LIST)
    legend = legend.placement(words.LegendPlacement.BOTTOM).show_legend(show_legend=True)
    tooltip = common.VizTooltipOptions().mode(words.TooltipDisplayMode.MULTI)
    return timeseries.Panel().legend(legend).tooltip(tooltip.sort(words.SortOrder.DESCENDING))


def _lines() -> timeseries.Panel:
    panel = _over_time().draw_style(words.GraphDrawStyle.LINE)
    return panel.fill_opacity(8).line_width(1)


def _bars() -> timeseries.Panel:
    """Return stacked bars, with an interval that shows the growth of counters in any range."""
    stacked = common.StackingConfig().mode(words.StackingMode.NORMAL).group("A")
    panel = _over_time().draw_style(words.GraphDrawStyle.BARS).stacking(stacked)
    return panel.fill_opacity(80).line_width(0).interval("5m")


def _heatmap() -> heatmap.Panel:
    panel = heatmap.Panel().calculate(calculate=False).y_axis(heatmap.YAxisConfig().unit("s"))
    return panel.mode(words.TooltipDisplayMode.SINGLE).interval("5m")


def _table() -> table.Panel:
    """Return a table with labels as columns, without the time."""
    organize = DataTransformerConfig("organize", options={"excludeByName": {"Time": True}})
    return table.Panel().show_header(show_header=True).with_transformation(organize)


FORMS = {
    "stat": Form(_stat, instant=True, width=3, height=4),
    "lines": Form(_lines),
    "bars": Form(_bars),
    "table": Form(_table, instant=True, format=PromQueryFormat.TABLE),
    "ranking": Form(_ranking, instant=True),
    "heatmap": Form(_heatmap, format=PromQueryFormat.HEATMAP),
}
"""Forms by the names that the YAML files use."""
