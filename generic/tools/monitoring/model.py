"""Rules as data, and the three files they become: a rule file, a PrometheusRule, a ServiceMonitor.

Which rules there are is in `rules.yaml`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import attrs

from actuator.meta import Raw

__all__ = [
    "Alert",
    "Group",
    "Recording",
    "Severity",
    "groups_of",
    "prometheus_rule",
    "rule_file",
    "service_monitor",
]

_MONITORING = "monitoring.coreos.com/v1"


class Severity(StrEnum):
    """Gardener's three; who is woken by which is Alertmanager's business."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


@attrs.frozen
class Recording:
    """A series that is computed ahead: level:metric:operations (Prometheus documentation)."""

    name: str
    expr: str

    def manifest(self, _runbooks: str) -> Raw:
        """As a rule file has it."""
        return {"record": self.name, "expr": self.expr}


@attrs.frozen(kw_only=True)
class Alert:
    """Fires when `expr` has returned something for `lasting`, in Prometheus' words: "15m"."""

    name: str
    expr: str
    severity: Severity
    summary: str
    description: str
    lasting: str = ""

    def manifest(self, runbooks: str) -> Raw:
        """As a rule file has it; its runbook is below `runbooks`."""
        rule: Raw = {"alert": self.name, "expr": self.expr}
        if self.lasting:
            rule["for"] = self.lasting
        return {
            **rule,
            "labels": {"severity": self.severity.value},
            "annotations": {
                "summary": self.summary,
                "description": self.description,
                "runbook_url": f"{runbooks.rstrip('/')}/{self.name.lower()}.md",
            },
        }


@attrs.frozen
class Group:
    """Rules that are evaluated one after the other, at the same time."""

    name: str
    rules: Sequence[Recording | Alert]


def groups_of(file: Raw) -> list[Group]:
    """The groups of a rule file of Prometheus, whose alerts name no runbook yet."""
    return [
        Group(group["name"], [_rule(raw) for raw in group["rules"]]) for group in file["groups"]
    ]


def _rule(raw: Raw) -> Recording | Alert:
    if "record" in raw:
        return Recording(raw["record"], raw["expr"])
    return Alert(
        name=raw["alert"],
        expr=raw["expr"],
        lasting=raw.get("for", ""),
        severity=Severity(raw["labels"]["severity"]),
        **raw["annotations"],
    )


def rule_file(groups: Sequence[Group], runbooks: str) -> Raw:
    """What Prometheus reads from a file."""
    return {
        "groups": [
            {"name": group.name, "rules": [rule.manifest(runbooks) for rule in group.rules]}
            for group in groups
        ]
    }


def prometheus_rule(
    groups: Sequence[Group], runbooks: str, name: str, labels: dict[str, str]
) -> Raw:
    """The same for the Prometheus operator."""
    return {
        "apiVersion": _MONITORING,
        "kind": "PrometheusRule",
        "metadata": {"name": name, "labels": labels},
        "spec": rule_file(groups, runbooks),
    }


def service_monitor(name: str, labels: dict[str, str]) -> Raw:
    """Where the Prometheus operator scrapes: the Service of the extension `name`'s chart.

    It keeps all of our metrics: scrape configurations of Gardener's own keep fewer.
    """
    return {
        "apiVersion": _MONITORING,
        "kind": "ServiceMonitor",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "selector": {"matchLabels": {"app.kubernetes.io/name": name}},
            "endpoints": [{"port": "metrics"}],
        },
    }
