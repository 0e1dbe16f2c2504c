"""What a drill shows on a terminal: progress while it runs, and tables at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from generic.testing.drill.evidence import Evidence, Life
from generic.testing.drill.judge import Finding
from generic.testing.drill.settings import Watcher

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["Terminal", "show", "show_findings"]


class Terminal(Watcher):
    """Shows progress while a drill runs."""

    def __init__(self) -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        from generic.tools.cli.screen import Screen

        self.console = Screen()
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
        self.console.print(text)

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
    """Prints what came of a force deletion."""
    from generic.tools.cli.screen import Screen

    console = Screen()
    stripped = Counter(strip.text.partition(" from ")[0] for strip in evidence.strips)
    for text, count in stripped.items():
        console.print(f"{text}: {count} times")
    left = _table("Left outside, on record", "type", "left", "recorded")
    types = Counter(resource.type for resource in evidence.outside_after)
    recorded = Counter(r.resource.type for r in evidence.records if r.resource.id)
    for name in sorted(types | recorded):
        left.add_row(name, str(types[name]), str(recorded[name]))
    console.print(left)
    show_findings(findings, output)


def show_findings(findings: Sequence[Finding], output: Path) -> None:
    """Prints what had to hold, whether it did, and where the reports are."""
    from generic.tools.cli.screen import Screen, verdict

    console = Screen()
    rules = _table("Invariants", "rule", "what has to hold", "")
    for finding in findings:
        count = len(finding.problems) - 1
        why = "".join(finding.problems[:1]) + (f" (and {count} more)" if count > 0 else "")
        rules.add_row(finding.rule, finding.title, verdict(finding.holds, why))
    console.print(rules)
    console.print(f"{output / 'report.html'}  {output / 'report.json'}")


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
