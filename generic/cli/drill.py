"""`actuator drill`: a drill with live progress, tables, a report, and an exit status."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Self

import click

from generic import logs
from generic.cli.load import load
from generic.drill.breaks import BREAKS
from generic.drill.evidence import Evidence, Life
from generic.drill.judge import Finding, judge
from generic.drill.report import check_report, write_html, write_json
from generic.drill.run import Settings, Watcher
from generic.drill.run import drill as hold
from generic.rehearsal import Rehearsal

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["drill"]


@click.command()
@click.argument("rehearsal", default="extensions.aws.rehearsal:AwsRehearsal")
@click.option("--shoots", type=click.IntRange(1, 200), default=10, show_default=True)
@click.option("--scenario", default="credentials-revoked", show_default=True)
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="A seed that is not ours.")
@click.option("--context", help="Its context; has to be given with --kubeconfig.")
@click.option(
    "--break",
    "break_rule",
    type=click.Choice(list(BREAKS)),
    help="Break one invariant on purpose (embedded cluster only).",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Where report.html and report.json go.  [default: here]",
)
@click.option("--log-level", type=click.Choice(["debug", "info", "error"]), default=None)
def drill(
    rehearsal: str,
    shoots: int,
    scenario: str,
    kubeconfig: Path | None,
    context: str | None,
    break_rule: str | None,
    output: Path,
    log_level: str | None,
) -> None:
    """Rehearses a force deletion end to end and judges it by invariants.

    REHEARSAL is MODULE:CLASS; the AWS sample by default, on an embedded cluster of its own.
    """
    if (kubeconfig is None) != (context is None):
        raise click.UsageError("give --kubeconfig and --context together: which seed is it?")
    if break_rule and kubeconfig:
        raise click.UsageError("--break is for the embedded cluster only")
    _configure_logs(log_level)
    rehearsed = _rehearsal(rehearsal, scenario)
    settings = Settings(
        shoots=shoots,
        scenario=scenario,
        kubeconfig=kubeconfig,
        context=context,
        break_rule=break_rule,
        patience=6.0 if break_rule else 90.0,
    )
    signal.signal(signal.SIGTERM, _interrupt)
    with Terminal() as terminal:
        evidence = hold(settings, rehearsed, terminal)
    findings = _write(output, evidence, settings)
    show(evidence, findings, output)
    if not all(finding.holds for finding in findings):
        raise SystemExit(1)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _configure_logs(level: str | None) -> None:
    """Silent unless asked: progress and tables say it better."""
    import logging

    if level is None:
        logging.getLogger().addHandler(logging.NullHandler())
        return
    match level:
        case "debug":
            logs.configure("debug", "text")
        case "info":
            logs.configure("info", "text")
        case _:
            logs.configure("error", "text")


def _rehearsal(reference: str, scenario: str) -> Rehearsal:
    found = load(reference)
    rehearsal: Rehearsal = found() if isinstance(found, type) else found
    if scenario not in rehearsal.scenarios:
        known = ", ".join(rehearsal.scenarios)
        raise click.UsageError(f"{reference} has no scenario {scenario!r}; it has: {known}")
    return rehearsal


def _write(output: Path, evidence: Evidence, settings: Settings) -> list[Finding]:
    """Writes the reports, and judges them together with what they tell."""
    import attrs

    findings = judge(evidence)
    output.mkdir(parents=True, exist_ok=True)
    told = evidence
    if settings.broken.forgets_a_record:
        told = attrs.evolve(evidence, records=evidence.records[1:])
    path = output / "report.json"
    write_json(path, told, findings)
    problems = check_report(path, evidence, findings)
    title = "The report says what happened"
    findings.append(Finding(rule="report", title=title, problems=tuple(problems)))
    write_json(path, told, findings)
    write_html(output / "report.html", told, findings)
    return findings


class Terminal(Watcher):
    """Shows progress while a drill runs."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        self.console = Console()
        columns = (TextColumn("{task.description:>10}"), BarColumn(), MofNCompleteColumn())
        self._progress = Progress(*columns, TimeElapsedColumn(), console=self.console)
        self._tasks: dict[tuple[str, int], int] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._progress.stop()

    def say(self, text: str) -> None:
        """See Watcher."""
        self.console.print(text, highlight=False, markup=False)

    def count(self, what: str, done: int, total: int) -> None:
        """See Watcher."""
        key = (what, total)
        if key not in self._tasks:
            self._tasks[key] = self._progress.add_task(what, total=total)
        self._progress.update(self._tasks[key], completed=done)  # type: ignore[arg-type]

    def stuck(self, lives: Sequence[Life]) -> None:
        """See Watcher."""
        table = _table("Stuck in deletion, and why", "shoots", "kind", "error", "codes")
        reasons: dict[tuple[str, str, str], list[str]] = {}
        for life in lives:
            reason = (life.kind, life.error, "\n".join(life.codes))
            reasons.setdefault(reason, []).append(_short(life.shoot))
        for (kind, error, codes), shoots in reasons.items():
            table.add_row(", ".join(sorted(shoots, key=_natural)), kind, error, codes)
        self.console.print(table)


def show(evidence: Evidence, findings: Sequence[Finding], output: Path) -> None:
    """Prints what came of it."""
    from rich.console import Console

    console = Console()
    stripped = Counter(strip.text.partition(" from ")[0] for strip in evidence.strips)
    for text, count in stripped.items():
        console.print(f"{text}: {count} times", highlight=False, markup=False)
    left = _table("Left outside, on record", "type", "left", "recorded")
    types = Counter(resource.type for resource in evidence.outside_after)
    recorded = Counter(r.resource.type for r in evidence.records if r.resource.id)
    for name in sorted(types | recorded):
        left.add_row(name, str(types[name]), str(recorded[name]))
    console.print(left)
    verdict = _table("Invariants", "rule", "what has to hold", "")
    for finding in findings:
        verdict.add_row(finding.rule, finding.title, _answer(finding))
    console.print(verdict)
    console.print(f"{output / 'report.html'}  {output / 'report.json'}", highlight=False)


def _answer(finding: Finding) -> str:
    if finding.holds:
        return "[green]holds[/green]"
    from rich.markup import escape

    more = f" (and {len(finding.problems) - 1} more)" if len(finding.problems) > 1 else ""
    return f"[red]BROKEN[/red] {escape(finding.problems[0])}{more}"


def _table(title: str, *columns: str) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column in ("rule", "kind", "codes"))
    return table


def _short(technical_id: str) -> str:
    return technical_id.rpartition("--")[2]


def _natural(name: str) -> tuple[int, str]:
    """s2 before s10."""
    return len(name), name
