"""The drill's report, as JSON for machines and as one page for people.

What it says comes from Evidence and findings alone. `check_report` reads the JSON back: a report
that tells another story than the evidence is a broken rule like any other.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from generic.drill.evidence import Evidence
from generic.drill.judge import Finding
from generic.drill.page import page

__all__ = ["check_report", "write_html", "write_json"]


def write_json(path: Path, evidence: Evidence, findings: Sequence[Finding]) -> None:
    """Writes report.json."""
    told = {
        "version": 1,
        "passed": all(finding.holds for finding in findings),
        "findings": [
            {"rule": f.rule, "title": f.title, "problems": list(f.problems)} for f in findings
        ],
        "evidence": attrs.asdict(evidence),
    }
    path.write_text(json.dumps(told, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def check_report(path: Path, evidence: Evidence, findings: Sequence[Finding]) -> list[str]:
    """Where the report does not say what was seen."""
    told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    seen = json.loads(json.dumps(attrs.asdict(evidence)))
    problems = [
        f"the report's {name} are not what was seen"
        for name, value in seen.items()
        if told["evidence"].get(name) != value
    ]
    if told["passed"] != all(finding.holds for finding in findings):
        problems.append("the report's verdict is not the judge's")
    return problems


def write_html(path: Path, evidence: Evidence, findings: Sequence[Finding]) -> None:
    """Writes report.html: one page that needs nothing else."""
    path.write_text(page(evidence, findings), encoding="utf-8")
