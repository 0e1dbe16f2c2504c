"""Assertions for pytest: about one actuator without a cluster, and about a whole extension."""

import logging
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from actuator.cluster import Cluster
from actuator.errors import ConfigurationError
from actuator.interface import Actuator, ExternalResource, K, object_class
from generic.testing.drill.course import run
from generic.testing.drill.judge import covers
from generic.testing.drill.scenarios import default_scenario, refusal, scenario_of
from generic.testing.drill.settings import DrillSettings, Watcher
from generic.testing.minimal import minimal_object
from generic.testing.recording import RecordingContext
from generic.testing.rehearsal import CombinedRehearsal, Rehearsal

__all__ = ["assert_rehearsal", "assert_saved_before_created"]


def assert_saved_before_created(
    actuator: Actuator[K, Any],
    ctx: RecordingContext,
    existing: Callable[[], Iterable[ExternalResource]],
    obj: K | None = None,
    cluster: Cluster | None = None,
) -> None:
    """Reconcile an object and delete it; raise AssertionError for a resource that could be lost.

    `existing` returns all external resources that exist. Each is among the `external_resources` of
    the object as it was saved before the resource was created, by id or by tags, and none exists
    after the deletion. `obj` is by default a `minimal_object`, and `cluster` an empty one.
    """
    target: Any = minimal_object(object_class(actuator)) if obj is None else obj

    def check_saved() -> None:
        saved = [*actuator.external_resources(ctx.saved[-1])] if ctx.saved else []
        for real in existing():
            known = any(covers(recorded, real) for recorded in saved)
            assert known, f"{real} was created before a status that names it was saved"

    ctx.before_save(check_saved)
    actuator.reconcile(ctx, target, cluster or Cluster())
    assert [*existing()], "reconcile created no external resource"
    check_saved()
    actuator.delete(ctx, target, cluster or Cluster())
    assert not (remaining := [*existing()]), f"they exist after the deletion: {remaining}"


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
    except BaseException:
        if output is None:  # without a report
            shutil.rmtree(folder)
        raise
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
