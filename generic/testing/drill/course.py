"""One drill from its settings to its report: a force deletion, a path, a take-over, a migration.

Needs jinja2.
"""

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

import attrs

from generic.testing.drill import judge as force_deletion
from generic.testing.drill.evidence import Evidence
from generic.testing.drill.judge import WEBHOOKS_DOWN, Finding, contradictions
from generic.testing.drill.landscape import page as landscape_page
from generic.testing.drill.landscape import rules as landscape_rules
from generic.testing.drill.landscape.evidence import LandscapeEvidence
from generic.testing.drill.landscape.run import LandscapeRun
from generic.testing.drill.landscape.world import LandscapeWorld
from generic.testing.drill.migration import page as migration_page
from generic.testing.drill.migration import rules as migration
from generic.testing.drill.migration.rules import MigrationEvidence
from generic.testing.drill.migration.run import SCENARIO, migrate
from generic.testing.drill.page import page
from generic.testing.drill.paths import PathRun
from generic.testing.drill.report import check_report, write_html, write_json
from generic.testing.drill.run import Run, drill
from generic.testing.drill.settings import Settings, Watcher
from generic.testing.drill.takeover import SCENARIO as TAKE_OVER
from generic.testing.drill.takeover import TakeOver
from generic.testing.drill.webhooksdown import WebhooksDown
from generic.testing.rehearsal import CombinedRehearsal

E = TypeVar("E", Evidence, MigrationEvidence)
_COURSES: Mapping[str, type[Run]] = {TAKE_OVER: TakeOver, WEBHOOKS_DOWN: WebhooksDown}


def run(
    settings: Settings, rehearsal: CombinedRehearsal, watcher: Watcher, output: Path
) -> tuple[Evidence | MigrationEvidence, list[Finding]]:
    """Run the drill, write report.json and report.html; return the evidence and the findings.

    Raises ActuatorError or ApiError if the drill could not run.
    """
    if settings.scenario == SCENARIO:
        moved = migrate(settings, rehearsal, watcher)
        watcher.say(migration_page.verdict(moved))
        findings = _write_json(output, moved, moved, migration.judge(moved))
        write_html(output / "report.html", migration_page.page(moved, findings))
        return moved, findings
    course = _COURSES.get(settings.scenario, PathRun if settings.path else Run)
    evidence = told = drill(settings, rehearsal, watcher, course)
    if settings.broken.forgets_a_record:
        told = attrs.evolve(evidence, records=evidence.records[1:])
    findings = _write_json(output, evidence, told, force_deletion.judge(evidence))
    write_html(output / "report.html", page(told, findings))
    return evidence, findings


def run_landscape(
    settings: Settings,
    rehearsal: CombinedRehearsal,
    opening: AbstractContextManager[LandscapeWorld],
    watcher: Watcher,
    output: Path,
) -> tuple[LandscapeEvidence, list[Finding]]:
    """Run the drill in a landscape of its own, as `run`; `rehearsal` is its outside world.

    Raises ActuatorError, ApiError or EnvtestError if the drill could not run.
    """
    began = time.monotonic()
    with opening as world:
        drill = LandscapeRun(settings, rehearsal, world, watcher)
        drill.rehearse()
    evidence = drill.evidence
    evidence.seconds = time.monotonic() - began
    watcher.say(landscape_page.verdict(evidence))
    findings = _write_json(output, evidence, evidence, landscape_rules.judge(evidence))
    write_html(output / "report.html", landscape_page.page(evidence, findings))
    return evidence, findings


def _write_json(output: Path, seen: E, told: E, findings: list[Finding]) -> list[Finding]:
    """Write report.json, and add a finding about its consistency with the evidence."""
    output.mkdir(parents=True, exist_ok=True)
    path = output / "report.json"
    write_json(path, told, findings)
    problems = check_report(path, seen, findings)
    if isinstance(seen, Evidence):
        problems += contradictions(seen)
    title = "The report matches the evidence"
    findings = [*findings, Finding(rule="report", title=title, problems=tuple(problems))]
    write_json(path, told, findings)
    return findings
