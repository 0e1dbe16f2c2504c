"""Rules, alerts and dashboards of an extension, as data for Prometheus and Grafana.

`generic.serving.metrics` defines the metrics. Start reading at `recordings`, then `alerts.yaml` and
`objectives` (service levels). The dashboards are JSON in a folder, written by `hack/dashboards`.
Not here: the objects of a chart (`generic.tools.packaging.monitoring`).
"""

import json
from collections.abc import Sequence
from importlib.resources import files

import yaml

from actuator.meta import Raw
from generic.tools.monitoring import objectives, recordings

RUNBOOKS = "https://github.com/gardener-actuator/gardener-actuator/blob/main/docs/runbooks"
"""The URL of the project's runbooks."""

RECORDINGS: Sequence[Raw] = (*recordings.RECORDINGS, *objectives.recordings())
ALERTS: Sequence[Raw] = (
    *yaml.safe_load((files(__name__) / "alerts.yaml").read_text()),
    *objectives.alerts(),
)
RECORDS_GROUP: Raw = {"name": "actuator-records", "rules": RECORDINGS}
"""Reads the metrics of extensions: for the Prometheus that scrapes them."""
ALERTS_GROUP: Raw = {"name": "actuator-alerts", "rules": ALERTS}
"""Reads recorded series only: for that Prometheus, or another one that federates them."""
GROUPS: Sequence[Raw] = (RECORDS_GROUP, ALERTS_GROUP)
"""Rule groups in the format of Prometheus."""


def never_scraped(extension: str) -> Raw:
    """Return the alert on an extension that must be a target, and never was one.

    Only its installer knows its name. ActuatorUninstalled reports an extension that was a target.
    """
    return {
        "alert": "ActuatorNeverScraped",
        "expr": f'absent_over_time(seed:actuator_targets:count{{extension="{extension}"}}[1d])',
        "for": "15m",
        "labels": {"severity": "warning"},
        "annotations": {
            "summary": "An extension has never been scraped.",
            "description": "Prometheus has had no metrics of {{ $labels.extension }} for a day: "
            "no pod is ready, or no scrape configuration selects it.",
        },
    }


def boards() -> dict[str, Raw]:
    """Return each dashboard, in Grafana's schema, by its name."""
    folder = files(__name__) / "dashboards"
    found = sorted((path.name, path.read_text()) for path in folder.iterdir())
    texts = {name.removesuffix(".json"): text for name, text in found if name.endswith(".json")}
    return {name: json.loads(text) for name, text in texts.items()}


def rule_file(groups: Sequence[Raw], runbooks: str = RUNBOOKS) -> Raw:
    """Return a Prometheus rule file whose alerts have runbook URLs below `runbooks`."""
    return {
        "groups": [
            {**group, "rules": [_with_runbook(rule, runbooks) for rule in group["rules"]]}
            for group in groups
        ]
    }


def runbook_of(alert: str) -> str:
    """Return the name of an alert's page; slow and fast burns of an objective share one."""
    return alert.replace("SlowBurn", "Burn").lower()


def _with_runbook(rule: Raw, runbooks: str) -> Raw:
    if "alert" not in rule:
        return rule
    address = f"{runbooks.rstrip('/')}/{runbook_of(rule['alert'])}.md"
    return {**rule, "annotations": {**rule["annotations"], "runbook_url": address}}
