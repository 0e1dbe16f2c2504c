"""The rules and dashboards of a chart: one extension's, and its alerts under Gardener. Pure.

Several extensions in one cluster bring the same rules. So the recordings of a chart read only
series of their own extension; its alerts read the recorded series of all, so that one cause has one
alert, and Alertmanager joins the equal alerts of several charts. The seed's Prometheus has no
Alertmanager: the aggregate Prometheus federates the recorded series and evaluates the alerts again.
A dashboard has the name of its extension: Grafana and Plutono refuse two with the same `uid`. Not
here: ServiceMonitor and ScrapeConfig, which are templates in `files`.

Sources: Gardener documentation, "Logging and Monitoring for Extensions" and "Monitoring"; Gardener,
`pkg/component/observability/monitoring` (`prometheus`, `alertmanager`).
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from functools import partial

import attrs

from actuator.meta import Raw
from generic.tools import monitoring
from generic.tools.monitoring.plutono import plutono

_ANY = 'extension!=""'
_RECORDED = re.compile(r"(seed:actuator_\w+:\w+)\{")
_SENT = {"service": "gardener-actuator", "type": "seed"}
"""Labels of alerts for Gardener's Alertmanager, which groups them by `service` ("Alerting";
`alertmanager/config.go`)."""


def scoped(expr: str, name: str) -> str:
    """Return the expression of a recording, limited to one extension."""
    own = f'extension="{name}"'
    return _RECORDED.sub(rf"\1{{{own}, ", expr).replace(_ANY, own)


def _with(group: Raw, rules: Sequence[Raw]) -> Raw:
    return {**group, "rules": list(rules)}


def _sent(rule: Raw) -> dict[str, str]:
    """Return the labels for Gardener's Alertmanager, which sends `visibility` whatever severity."""
    is_page = rule["labels"]["severity"] != "info"
    return {**_SENT, "visibility": "operator"} if is_page else _SENT


@attrs.frozen
class ChartRules:
    """The rules of one PrometheusRule in a chart."""

    name: str
    read: str
    """The condition of the template, about `$prometheus`: who reads the chart's objects."""
    by: str
    """The Prometheus that reads these rules as a template's string; "" for `$prometheus`."""
    spec: Raw


def rules_of(name: str) -> Sequence[ChartRules]:
    """Return the PrometheusRules of an extension's chart.

    A garden's Prometheus and that of an operator have an Alertmanager. Alerts of a seed's are only
    shown by Plutono.
    """
    recordings = [
        {**rule, "expr": scoped(rule["expr"], name)} for rule in monitoring.RECORDS_GROUP["rules"]
    ]
    alerts = [*monitoring.ALERTS_GROUP["rules"], monitoring.never_scraped(name)]
    sent = [{**rule, "labels": {**rule["labels"], **_sent(rule)}} for rule in alerts]
    both = [_with(monitoring.RECORDS_GROUP, recordings), _with(monitoring.ALERTS_GROUP, alerts)]
    seed = 'eq $prometheus "seed"'
    spec = partial(monitoring.rule_file, runbooks=monitoring.RUNBOOKS)
    return [
        ChartRules("own", 'has $prometheus (list "garden" "operator")', "", spec(both)),
        ChartRules("seed", seed, '"seed"', spec(both)),
        ChartRules("aggregate", seed, '"aggregate"', spec([_with(monitoring.ALERTS_GROUP, sent)])),
    ]


SOURCE = "@PROMETHEUS@"
"""In the place of the data source's name in the texts for Plutono."""


def dashboards_of(name: str) -> Iterator[tuple[str, str, str]]:
    """Yield the name and the JSON of each dashboard of an extension, for Grafana and Plutono."""
    for stem, board in monitoring.boards().items():
        own = named(board, name)
        texts = [json.dumps(item, separators=(",", ":")) for item in (own, plutono(own, SOURCE))]
        yield stem, texts[0], texts[1]


def named(board: Raw, name: str) -> Raw:
    """Return the dashboard of one extension, which its variable selects at first."""
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    selected = {"selected": True, "text": [name], "value": [name]}
    variables = [
        {**item, "current": selected} if item["name"] == "extension" else item
        for item in board["templating"]["list"]
    ]
    return {
        **board,
        "uid": f"{board['uid']}-{digest}",
        "title": f"{board['title']}: {name}",
        "templating": {"list": variables},
    }
