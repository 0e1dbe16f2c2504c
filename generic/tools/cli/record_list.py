"""`actuator record list` and `actuator record drills`: answers from records and drill reports."""

import json
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import click

from actuator.errors import ConfigurationError
from actuator.meta import Raw, parse_time, value_at
from generic.kube.printable import echo
from generic.manager.orphans.ledger import read_records
from generic.reconciler.orphans import ForceDeletionRecord
from generic.serving.metrics import Outcome
from generic.testing.drill.index import read_index
from generic.tools.cli.development import DevelopmentTarget, select
from generic.tools.cli.grouping import FORCED, by_option, print_groups, row_table
from generic.tools.cli.load import output_option, print_list, with_flags
from generic.tools.cli.period import is_within, since_option, until_option

_VERSION = 1
"""Version of the JSON formats: increased when a field is removed or changes its meaning."""
_EACH = ("finished", "kind", "project", "shoot", "outcome", "confirmed-by")
"""The fields in the table of single records."""
_ORIGIN = ("extensions", "version", "commit")


@click.command("list")
@since_option(required=True)
@until_option
@by_option(FORCED, f"Count by this field; repeatable. Default: {', '.join(_EACH)}.")
@output_option
@with_flags("kubeconfig", "context", "master")
def list_records(
    since: datetime, until: datetime | None, by: tuple[str, ...], output: str, **seed: Any
) -> None:
    """Count the force deletions that finished in a period, by fields of their records.

    FORCED counts objects, ORPHANED those that may have left external resources, ORPHANS the
    recorded resources. FIELD is for example type, account, region, project, shoot or confirmed-by;
    a wrong one prints all.
    """
    found = [
        item
        for item in read_records(select(DevelopmentTarget(**seed)).connect(), ForceDeletionRecord)
        if is_within(item.spec.finished_at, since, until)
    ]
    none = "no force deletion finished in this period"
    print_groups(output, found, FORCED, by or _EACH, _counted, none)


def _counted(members: Sequence[ForceDeletionRecord]) -> Raw:
    return {
        "forced": len(members),
        "orphaned": sum(item.spec.outcome == Outcome.ORPHANED.value for item in members),
        "orphans": sum(item.spec.orphan_count for item in members),
    }


@click.command("drills")
@since_option(required=True)
@until_option
@output_option
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def list_drills(since: datetime, until: datetime | None, output: str, folder: Path) -> None:
    """List the drills of a period, from their reports below FOLDER, oldest first.

    CLUSTER is the context of the kubeconfig, "embedded" for a drill on its own cluster. "planted":
    the drill ran with --break. Seeds that could not be checked are listed from the last index of
    each folder; -o json has the problems. Files that are no report of a drill, or an altered
    index, are named on stderr.
    """
    found: list[Raw] = []
    for pattern, read in (("report-*.json", _drill), ("index.json", _unchecked)):
        for path in sorted(folder.rglob(pattern)):
            try:
                drills = read(path)
                found += [drill for drill in drills if is_within(drill["started"], since, until)]
            except ConfigurationError as error:
                echo(error, err=True)
            except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
                echo(f"{path}: not a report of a drill", err=True)
    found.sort(key=lambda drill: (parse_time(drill["started"]), drill["cluster"]))
    data = {"version": _VERSION, "drills": found}
    names = [drill["cluster"] for drill in found]
    hidden = ("identity", "problems")
    rows = [{key: drill[key] for key in drill if key not in hidden} for drill in found]
    print_list(output, data, names, partial(row_table, rows), "no drill started in this period")


def _unchecked(path: Path) -> list[Raw]:
    """Return the facts of rounds that could not be checked. Raises ConfigurationError, OSError."""
    index = read_index(path)
    return [
        {
            "started": entry.started,
            "cluster": entry.seed or "embedded",
            "identity": entry.identity,
            "scenario": entry.scenario,
            **{name: getattr(index.origin, name) for name in _ORIGIN},
            "result": entry.verdict,
            "problems": entry.problems,
        }
        for entry in index.rounds
        if entry.verdict == "could not check"
    ]


def _drill(path: Path) -> list[Raw]:
    """Return the facts of a report. Raises many errors for another file."""
    report = json.loads(path.read_text(encoding="utf-8"))
    evidence = report["evidence"]
    context = value_at(evidence, "target", "context")
    broken = ", ".join(str(item["rule"]) for item in report["findings"] if item["problems"])
    planted = " (planted)" if evidence.get("broken") else ""
    problems = [problem for item in report["findings"] for problem in item["problems"]]
    facts = {
        "started": evidence["started"],
        "cluster": str(context or ("embedded" if evidence.get("target") else "landscape")),
        "identity": str(value_at(evidence, "target", "identity") or ""),
        "scenario": str(evidence["scenario"]),
        **{name: str(value_at(evidence, "origin", name) or "") for name in _ORIGIN},
        "result": "holds" if report["passed"] else f"BROKEN: {broken}{planted}",
        "problems": problems,
    }
    return [facts]
