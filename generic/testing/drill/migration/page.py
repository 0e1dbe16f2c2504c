"""The report of a migration drill as one page: verdict, rules, moves, kills, what is outside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape

from generic.testing.drill.html import document, rules, section, table
from generic.testing.drill.judge import Finding
from generic.testing.drill.migration.evidence import MigrationEvidence
from generic.testing.drill.timeline import short

__all__ = ["page", "verdict"]


def page(evidence: MigrationEvidence, findings: Sequence[Finding]) -> str:
    """The whole page."""
    passed = all(finding.holds for finding in findings)
    moves = ("Shoot", "Ready", "Handed over", "Restored", "Gone", "Problem")
    sections = [
        rules(findings),
        section("Moves, in seconds", table(moves, _moves(evidence)), wide=True),
        section("Killed managers", table(("Second", "Seed", "During"), _kills(evidence))),
        section("Calls of actuators", table(("Seed", "Operation", "Calls"), _calls(evidence))),
        section("Outside the seeds", table(("Type", "Before", "Moved", "After"), _out(evidence))),
        section("This run", table(("What", "Value"), _facts(evidence))),
    ]
    scenario = f"{evidence.title}. Scenario {evidence.scenario}: {evidence.scenario_text}"
    told = (evidence.drill, scenario, verdict(evidence))
    return document("Migration", *told, passed, sections)


def verdict(evidence: MigrationEvidence) -> str:
    """What came of it, in a sentence."""
    moved = sum(move.restored is not None for move in evidence.moves)
    before, after = len(evidence.outside_before), len(evidence.outside_moved)
    return (
        f"{moved} of {len(evidence.moves)} shoots moved while managers were killed "
        f"{len(evidence.kills)} times; outside there were {before} things before and {after} after."
    )


def _moves(evidence: MigrationEvidence) -> Iterator[Sequence[str]]:
    for move in evidence.moves:
        moments = (move.ready, move.handed_over, move.restored, move.gone)
        seconds = ["-" if moment is None else f"{moment:.1f}" for moment in moments]
        yield escape(short(move.shoot)), *seconds, escape(move.problem)


def _kills(evidence: MigrationEvidence) -> Iterator[Sequence[str]]:
    for kill in evidence.kills:
        yield f"{kill.at:.1f}", escape(kill.seed), escape(kill.phase)


def _calls(evidence: MigrationEvidence) -> Iterator[Sequence[str]]:
    counted = Counter((call.seed, call.operation) for call in evidence.calls)
    for (seed, operation), count in sorted(counted.items()):
        yield escape(seed), escape(operation), str(count)


def _out(evidence: MigrationEvidence) -> Iterator[Sequence[str]]:
    moments = (evidence.outside_before, evidence.outside_moved, evidence.outside_after)
    counts = [Counter(thing.type for thing in things) for things in moments]
    for name in sorted(set().union(*counts)):
        yield escape(name), *(str(count[name]) for count in counts)


def _facts(evidence: MigrationEvidence) -> Iterator[Sequence[str]]:
    facts = {
        "Drill": evidence.drill,
        "Started": evidence.started,
        "Took": f"{evidence.seconds:.1f} s",
        "Dice (--dice kills alike)": str(evidence.dice),
    }
    for name, value in facts.items():
        yield escape(name), escape(value)
