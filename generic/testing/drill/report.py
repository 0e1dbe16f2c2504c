"""The drill's report, as JSON for machines and as one page for people.

It contains evidence, of any class, and findings. Not here: the content of the page (`page`).
`check_report` reads the JSON back: a report that differs from the evidence breaks a rule.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import attrs
import cattrs
from attrs import AttrsInstance
from cattrs.errors import BaseValidationError

from actuator.errors import DecodeError
from generic.testing.drill.judge import Finding

_VERSION = 1
E = TypeVar("E", bound=AttrsInstance)


def write_json(path: Path, evidence: AttrsInstance, findings: Sequence[Finding]) -> None:
    """Write report.json."""
    told = {
        "version": _VERSION,
        "passed": all(finding.holds for finding in findings),
        "findings": [attrs.asdict(finding) for finding in findings],
        "evidence": attrs.asdict(evidence),
    }
    path.write_text(json.dumps(told, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def read_json(path: Path, cls: type[E]) -> tuple[E, list[Finding]]:
    """Read a report.json with evidence of class `cls`.

    Raises DecodeError if it is not such a report or contradicts itself.
    """
    converter = cattrs.Converter(forbid_extra_keys=True)
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        version, passed = told["version"], told["passed"]
        evidence = converter.structure(told["evidence"], cls)
        findings = converter.structure(told["findings"], list[Finding])
    except (OSError, ValueError, KeyError, TypeError, BaseValidationError) as error:
        raise DecodeError(f"{path.name} is no report of a drill: {error!r}") from error
    if version != _VERSION:
        raise DecodeError(f"{path.name} is of version {version!r}, not {_VERSION}")
    if passed != all(finding.holds for finding in findings):
        raise DecodeError(f"{path.name} has another verdict than its findings")
    return evidence, findings


def check_report(path: Path, evidence: AttrsInstance, findings: Sequence[Finding]) -> list[str]:
    """Return the differences between the report and the evidence."""
    try:
        told, judged = read_json(path, type(evidence))
    except DecodeError as error:
        return [str(error)]
    problems = [
        f"the report differs from the evidence: {field.name}"
        for field in attrs.fields(type(evidence))
        if getattr(told, field.name) != getattr(evidence, field.name)
    ]
    if judged != list(findings):
        problems.append("the report has another verdict")
    return problems


def write_html(path: Path, page: str) -> None:
    """Write report.html, a self-contained page."""
    # an error's text may contain half a surrogate pair, which cannot be encoded
    path.write_text(page, encoding="utf-8", errors="replace")
