"""Assertions for pytest about a whole extension."""

import logging
import shutil
import tempfile
from pathlib import Path

from actuator.errors import ConfigurationError
from generic.testing.drill.course import run
from generic.testing.drill.scenarios import default_scenario, refusal, scenario_of
from generic.testing.drill.settings import DrillSettings, Watcher
from generic.testing.rehearsal import CombinedRehearsal, Rehearsal

__all__ = ["assert_rehearsal"]


def assert_rehearsal(
    rehearsal: type[Rehearsal],
    scenario: str | None = None,
    *,
    shoots: int = 3,
    output: Path | None = None,
) -> None:
    """Run a drill on an embedded cluster; raise AssertionError for violated invariants.

    `scenario`: one of the rehearsal's, `migration` or `take-over`; by default that of `actuator
    drill`. The report is in the folder `output`, by default a new one, kept if the drill fails.
    Raises ConfigurationError for an unknown scenario, ActuatorError if the drill could not run.
    """
    combined = CombinedRehearsal([rehearsal()])
    scenario = scenario or default_scenario(combined.scenarios)
    if problem := refusal(combined, scenario_of(scenario)):
        raise ConfigurationError(problem)
    folder = output or Path(tempfile.mkdtemp(prefix="drill-"))
    settings = DrillSettings(shoots=shoots, scenario=scenario, patience=120.0)
    before = logging.root.manager.disable
    logging.disable()  # most errors are expected; the report has them all
    try:
        _, findings = run(settings, combined, Watcher(), folder)
    finally:
        logging.disable(before)
    broken = [
        f"  {finding.rule}: {finding.title}: {finding.why()}"
        for finding in findings
        if not finding.holds
    ]
    if broken:
        count = f"{len(broken)} of {len(findings)} invariants violated"
        head = f"{combined.title}, scenario {scenario}: {count}"
        raise AssertionError("\n".join([head, *broken, f"  report: {folder / 'report.html'}"]))
    if output is None:
        shutil.rmtree(folder)
