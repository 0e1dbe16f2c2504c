"""Rules, alerts and dashboards of an extension, as data for Prometheus and Grafana.

`generic.serving.metrics` defines the metrics. `rules.yaml` is a Prometheus rule file without
the URLs of runbooks; the dashboards are JSON in a folder, written by `hack/dashboards`.
Not here: the objects of a chart (`generic.tools.packaging.monitoring`).
"""

import json
from collections.abc import Sequence
from importlib.resources import files

import yaml

from actuator.meta import Raw

RUNBOOKS = "https://github.com/gardener-actuator/gardener-actuator/blob/main/docs/runbooks"
"""The URL of the project's runbooks."""

GROUPS: Sequence[Raw] = yaml.safe_load((files(__name__) / "rules.yaml").read_text())["groups"]
"""Rule groups in the format of Prometheus."""
RECORDINGS: Sequence[Raw] = [
    rule for group in GROUPS for rule in group["rules"] if "record" in rule
]
ALERTS: Sequence[Raw] = [rule for group in GROUPS for rule in group["rules"] if "alert" in rule]


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


def _with_runbook(rule: Raw, runbooks: str) -> Raw:
    if "alert" not in rule:
        return rule
    address = f"{runbooks.rstrip('/')}/{rule['alert'].lower()}.md"
    return {**rule, "annotations": {**rule["annotations"], "runbook_url": address}}
