"""The rules and dashboards of a chart: one extension's, and its alerts under Gardener. Pure.

Several extensions in one cluster bring the same rules, so the rules of a chart read only series of
their own job. The seed's Prometheus has no Alertmanager; it counts firing alerts in one series,
which the aggregate Prometheus federates. That one has an alert of the same name for each alert.
A dashboard has the name of its extension: Grafana and Plutono refuse two with the same `uid`.
Not here: ServiceMonitor and ScrapeConfig, which are templates in `files`.

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
from generic.tools.monitoring import GROUPS, RUNBOOKS, boards, rule_file
from generic.tools.monitoring.plutono import plutono

RELAYED = "seed:actuator_alerts:count"
"""The firing alerts of an extension, by `alert` and their labels. A garden's Prometheus federates
names of this form from the aggregate Prometheus, which adds the label `seed`."""
_FAMILIES = "actuator|controller_runtime|workqueue|rest_client|leader_election|process|certwatcher"
_SELECTOR = re.compile(rf"\b(?:(?:{_FAMILIES})_\w+|ALERTS|up|[a-z]\w*:[\w:]+)\b(?![\w:(])(\{{)?")
_STRING = re.compile(r'("(?:[^"\\]|\\.)*")')
_LABELS = re.compile(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")


def scoped(expr: str, job: str) -> str:
    """Return the PromQL expression with a matcher for the job in each selector."""
    matcher = f'job="{job}"'

    def with_job(found: re.Match[str]) -> str:
        return f"{found[0]}{matcher}," if found[1] else f"{found[0]}{{{matcher}}}"

    kept: list[str] = []

    def keep(found: re.Match[str]) -> str:
        kept.append(found[0])
        return f"\0{len(kept) - 1}\0"

    text = _LABELS.sub(keep, _STRING.sub(keep, expr))
    text = _SELECTOR.sub(with_job, text)
    while "\0" in text:
        text = re.sub("\0(\\d+)\0", lambda found: kept[int(found[1])], text)
    return text


def scoped_groups(groups: Sequence[Raw], job: str) -> list[Raw]:
    """Return the rule groups limited to the series of one job."""
    return [
        {
            **group,
            "rules": [{**rule, "expr": scoped(rule["expr"], job)} for rule in group["rules"]],
        }
        for group in groups
    ]


def relaying(job: str) -> Raw:
    """Return the group that records the firing alerts of a job as one series to federate."""
    alerts = f'ALERTS{{job="{job}",alertname=~"Actuator.+",alertstate="firing"}}'
    renamed = f'label_replace({alerts}, "alert", "$1", "alertname", "(.+)")'
    expr = f"count without (alertname, alertstate) ({renamed})"
    return {"name": "actuator-relay", "rules": [{"record": RELAYED, "expr": expr}]}


def relayed(groups: Sequence[Raw], job: str) -> Raw:
    """Return the group of the aggregate Prometheus: an alert for each alert of the seed's.

    Gardener's Alertmanager sends alerts with the label `visibility`, and groups by `service`
    ("Alerting"; `alertmanager/config.go`). The series has no value of the alert, so that the
    description names the labels only.
    """
    return {
        "name": "actuator-relayed",
        "rules": [
            _relayed(rule, job) for group in groups for rule in group["rules"] if "alert" in rule
        ],
    }


def _relayed(rule: Raw, job: str) -> Raw:
    name = rule["alert"]
    summary = rule["annotations"]["summary"]
    return {
        "alert": name,
        "expr": f'max without (alert) ({RELAYED}{{job="{job}",alert="{name}"}}) > 0',
        "labels": {**rule["labels"], "service": job, "type": "seed", "visibility": "operator"},
        "annotations": {
            "summary": summary,
            "description": f"{summary} Extension {job}, seed {{{{ $externalLabels.seed }}}}; "
            "the labels of the alert name the controller and the kind. The seed's Prometheus has "
            "the value.",
        },
    }


@attrs.frozen
class ChartRules:
    """The rules of one PrometheusRule in a chart."""

    name: str
    read: str
    """The condition of the template, about `$prometheus`: who reads the chart's objects."""
    by: str
    """The Prometheus that reads these rules as a template's string; "" for `$prometheus`."""
    spec: Raw


def rules_of(job: str) -> Sequence[ChartRules]:
    """Return the PrometheusRules of a chart whose pods have this job.

    A garden's Prometheus and that of an operator have an Alertmanager; a seed's has none.
    """
    groups = scoped_groups(GROUPS, job)
    seed = 'eq $prometheus "seed"'
    spec = partial(rule_file, runbooks=RUNBOOKS)
    return [
        ChartRules("own", 'has $prometheus (list "garden" "operator")', "", spec(groups)),
        ChartRules("seed", seed, '"seed"', spec([*groups, relaying(job)])),
        ChartRules("aggregate", seed, '"aggregate"', spec([relayed(GROUPS, job)])),
    ]


SOURCE = "@PROMETHEUS@"
"""In the place of the data source's name in the texts for Plutono."""


def dashboards_of(name: str) -> Iterator[tuple[str, str, str]]:
    """Yield the name and the JSON of each dashboard of an extension, for Grafana and Plutono."""
    for stem, board in boards().items():
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
