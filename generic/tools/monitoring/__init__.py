"""What Prometheus and Grafana are told of an extension: rules, alerts, dashboards; all of it data.

`generic.controller.metrics` defines the metrics. The rules and alerts are in `rules.yaml` beside
this file; the dashboards are JSON in a folder there, written by `hack/dashboards`.
"""

from importlib.resources import files

import yaml

from generic.tools.monitoring.model import (
    Alert,
    Group,
    Recording,
    groups_of,
    prometheus_rule,
    rule_file,
    service_monitor,
)

__all__ = [
    "ALERTS",
    "GROUPS",
    "RECORDINGS",
    "Alert",
    "Group",
    "Recording",
    "dashboard_files",
    "prometheus_rule",
    "rule_file",
    "service_monitor",
]

GROUPS = groups_of(yaml.safe_load((files(__name__) / "rules.yaml").read_text()))
RECORDINGS = [rule for group in GROUPS for rule in group.rules if isinstance(rule, Recording)]
ALERTS = [rule for group in GROUPS for rule in group.rules if isinstance(rule, Alert)]


def dashboard_files() -> dict[str, str]:
    """Names of the dashboards, and the JSON of each."""
    folder = files(__name__) / "dashboards"
    texts = {path.name: path.read_text() for path in folder.iterdir()}
    return {
        name.removesuffix(".json"): text
        for name, text in sorted(texts.items())
        if name.endswith(".json")
    }
