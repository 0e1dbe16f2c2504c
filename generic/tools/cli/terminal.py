"""The terminal output of drills: progress while they run, and tables at the end. Needs rich."""

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any

from rich.text import Text

from generic.testing.drill.all import RoundResult
from generic.testing.drill.evidence import DrillEvidence, Evidence, Life, by_error
from generic.testing.drill.judge import Finding, covers, unwritten
from generic.testing.drill.page import refusals, scale_text
from generic.testing.drill.report import own_name
from generic.testing.drill.settings import Watcher
from generic.tools.cli.screen import Screen, new_table, verdict

_LINE_SECONDS = 2.0
"""The time between two lines about one count."""


class DrillScreen(Screen):
    """A Screen that drops output which fails, as on a full disk: a drill and its verdict go on."""

    def print(self, *objects: Any, **options: Any) -> None:
        """See Console."""
        with suppress(OSError):
            super().print(*objects, **options)


class Terminal(Watcher):
    """Shows progress while a drill runs, in lines: a log has them in the same order."""

    def __init__(self) -> None:
        self.console = DrillScreen()
        self._told: dict[str, tuple[int, float]] = {}

    def say(self, text: str) -> None:
        """See Watcher."""
        self.console.print(text, soft_wrap=True)

    def count(self, what: str, done: int, total: int) -> None:
        """See Watcher."""
        before, at = self._told.get(what, (-1, -inf))
        late = time.monotonic() - at > _LINE_SECONDS
        if done != before and (done == total or done < before or late):
            self._told[what] = (done, time.monotonic())
            self.say(f"{what}: {done} of {total}")

    def failing(self, lives: Sequence[Life]) -> None:
        """See Watcher."""
        self._show_errors("Not ready", lives)

    def stuck(self, lives: Sequence[Life]) -> None:
        """See Watcher."""
        self._show_errors("Stuck deletions", lives)

    def _show_errors(self, title: str, lives: Sequence[Life]) -> None:
        columns = ("shoots", "kind", "error", "codes")
        table = new_table(*columns, title=title, whole=("kind", "codes"))
        for (kind, _, codes), alike in by_error(lives).items():
            shoots = [life.shoot.rpartition("--")[2] for life in alike]
            names = sorted(shoots, key=lambda name: (len(name), name))  # s2 before s10
            table.add_row(", ".join(names), kind, alike[0].error, "\n".join(codes))
        self.console.print(table)


def show(evidence: Evidence, findings: Sequence[Finding], output: Path) -> None:
    """Print the result of a force deletion."""
    console = DrillScreen()
    if evidence.scale is not None:
        console.print(f"Gardenlet's timeouts and thresholds: {scale_text(evidence)}")
    stripped = Counter(strip.text.partition(" from ")[0] for strip in evidence.strips)
    for text, count in stripped.items():
        console.print(f"{text}: {count} times")
    hooks = new_table(
        "webhook", "refused", "force deletion", title="Requests that failing webhooks refused"
    )
    for hook, request, _, took in refusals(evidence):
        hooks.add_row(hook, request, took)
    if hooks.rows:
        console.print(hooks)
    left = new_table("type", "remaining", "recorded", title="Remaining external resources")
    types = Counter(resource.type for resource in evidence.resources_after)
    records = [record.resource for record in evidence.records]
    real = evidence.resources_after
    kept = [item.type for item in real if any(covers(record, item) for record in records)]
    gone = [record.type for record in records if not any(covers(record, other) for other in real)]
    recorded = Counter([*kept, *gone])
    for name in sorted(types | recorded):
        left.add_row(name, str(types[name]), str(recorded[name]))
    console.print(left)
    show_findings(evidence, findings, output)


def show_findings(evidence: DrillEvidence, findings: Sequence[Finding], output: Path) -> None:
    """Print the rules with their results, and the paths of the reports."""
    if evidence.broken:
        DrillScreen().print(f"Broken on purpose with --break: {evidence.broken}")
    show_rules(findings)
    if not unwritten(findings):
        reports = (own_name(output / f"report.{kind}", evidence.drill) for kind in ("html", "json"))
        DrillScreen().print("  ".join(map(str, reports)), soft_wrap=True)


def show_rules(findings: Sequence[Finding], shown: int = 1) -> None:
    """Print the rules with their results, and at most `shown` problems of each."""
    rules = new_table("rule", "invariant", "", title="Invariants", whole=("rule",))
    for finding in findings:
        result = verdict(finding.holds, finding.why(shown))
        untested = [f"not exercised: {reason}" for reason in finding.untested]
        if not finding.exercised:
            result = Text("\n".join(untested))
        elif untested:
            result.append("\n".join(["", *untested]))
        rules.add_row(finding.rule, finding.title, result)
    DrillScreen().print(rules)


def show_rounds(held: Sequence[RoundResult], output: Path) -> None:
    """Print a line for each round of `actuator drill --all`, and the folder of the reports."""
    table = new_table("round", "verdict", title="Results")
    table.add_column("seconds", justify="right")
    for item in held:
        answer = verdict(not item.told, "; ".join(item.told), f"{item.verdict}:")
        table.add_row(item.round.title, answer, f"{item.seconds:.1f}")
    console = DrillScreen()
    console.print(table)
    holding = sum(item.verdict == "holds" for item in held)
    console.print(f"{holding} of {len(held)} hold; reports are in {output}")
