"""One drill from its settings to its report, in any scenario.

Needs jinja2.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

import attrs

from generic.testing.drill import judge as force_deletion
from generic.testing.drill.evidence import DrillEvidence, Evidence
from generic.testing.drill.judge import REPORT, Finding, contradictions
from generic.testing.drill.landscape import page as landscape_page
from generic.testing.drill.landscape import rules as landscape_rules
from generic.testing.drill.landscape.rules import LandscapeEvidence
from generic.testing.drill.landscape.run import LandscapeRun
from generic.testing.drill.landscape.world import LandscapeWorld
from generic.testing.drill.migration import page as migration_page
from generic.testing.drill.migration import rules as migration
from generic.testing.drill.migration.rules import MigrationEvidence
from generic.testing.drill.page import page
from generic.testing.drill.report import as_json, check_report, own_name, write_all, write_text
from generic.testing.drill.scenarios import scenario_of
from generic.testing.drill.settings import DrillSettings, Watcher
from generic.testing.rehearsal import CombinedRehearsal

E = TypeVar("E", bound=DrillEvidence)


def run(
    settings: DrillSettings, rehearsal: CombinedRehearsal, watcher: Watcher, output: Path
) -> tuple[Evidence | MigrationEvidence, list[Finding]]:
    """Run the drill, write report.json and report.html; return the evidence and the findings.

    Raises ActuatorError or ApiError if the drill could not run.
    """
    scenario = scenario_of(settings.scenario, settings.path.partition(":")[0])
    evidence = scenario.run(settings, rehearsal, watcher)
    if isinstance(evidence, MigrationEvidence):
        watcher.say(migration_page.verdict(evidence))
        judged = migration.judge(evidence)
        return evidence, _report(output, evidence, evidence, judged, migration_page.page)
    told = evidence
    if settings.broken.forgets_a_record:
        told = attrs.evolve(evidence, records=evidence.records[1:])
    return evidence, _report(output, evidence, told, force_deletion.judge(evidence), page)


def run_landscape(
    settings: DrillSettings,
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
    judged = landscape_rules.judge(evidence)
    return evidence, _report(output, evidence, evidence, judged, landscape_page.page)


def _report(
    output: Path,
    seen: E,
    told: E,
    findings: list[Finding],
    page: Callable[[E, list[Finding]], str],
) -> list[Finding]:
    """Write report.json and report.html; return the findings with one about them.

    If they cannot be written, that finding is not exercised, and the verdict is not lost.
    """
    report = Finding(rule=REPORT, title="The report matches the evidence")
    own = own_name(output / "report.json", seen.drill)
    try:
        output.mkdir(parents=True, exist_ok=True)
        write_text(own, as_json(told, findings))
        problems = check_report(own, seen, findings)
        if isinstance(seen, Evidence):
            problems += contradictions(seen)
        judged = [*findings, attrs.evolve(report, problems=tuple(problems))]
        texts = {"report.json": as_json(told, judged), "report.html": page(told, judged)}
        write_all(output, seen.drill, texts)
    except OSError as error:
        why = f"cannot write the report into {output}: {error.strerror}"
        return [*findings, attrs.evolve(report, untested=(why,), exercised=False)]
    return judged
