"""What Prometheus and Grafana are told of an extension: rules, alerts, dashboards; all of it data.

The metrics themselves are `generic.metrics`' business. The dashboards are JSON beside this file,
written by `hack/dashboards`.
"""

from importlib.resources import files

from generic.monitoring.alerts import ALERTS
from generic.monitoring.model import (
    Alert,
    Group,
    Recording,
    prometheus_rule,
    rule_file,
    service_monitor,
)
from generic.monitoring.recording import RECORDINGS

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

GROUPS = (Group("actuator", (*RECORDINGS, *ALERTS)),)
"""One group, so that an alert reads what was recorded in the same evaluation."""


def dashboard_files() -> dict[str, str]:
    """Names of the dashboards, and the JSON of each."""
    folder = files(__name__) / "dashboards"
    texts = {path.name: path.read_text() for path in folder.iterdir()}
    return {
        name.removesuffix(".json"): text
        for name, text in sorted(texts.items())
        if name.endswith(".json")
    }
