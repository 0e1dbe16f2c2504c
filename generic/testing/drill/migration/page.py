"""The report of a migration drill as one page: verdict, rules, moves, kills, external resources."""

from collections import Counter
from collections.abc import Sequence

from generic.testing.drill.html import render
from generic.testing.drill.judge import Finding
from generic.testing.drill.migration.rules import MigrationEvidence, Move
from generic.testing.drill.page import seconds, short


def page(evidence: MigrationEvidence, findings: Sequence[Finding]) -> str:
    """Return the whole page."""
    calls = Counter((call.seed, call.operation) for call in evidence.calls)
    return render(
        "migration",
        findings,
        what="Drill of the scenario migration",
        evidence=evidence,
        verdict=verdict(evidence),
        moves=map(_row, evidence.moves),
        kills=[(seconds(kill.at), kill.seed, kill.phase) for kill in evidence.kills],
        calls=[(*call, count) for call, count in sorted(calls.items())],
        outside=_outside(evidence),
        facts={"Random seed (--random-seed replays the kills)": evidence.random_seed},
    )


def verdict(evidence: MigrationEvidence) -> str:
    """Return the result in a sentence."""
    moved = sum(move.restored is not None for move in evidence.moves)
    before = len(evidence.resources_before)
    after = len(evidence.resources_moved)
    return (
        f"{moved} of {len(evidence.moves)} shoots moved while managers were killed "
        f"{len(evidence.kills)} times; external resources: {before} before, {after} after."
    )


def _row(move: Move) -> Sequence[str]:
    moments = (move.ready, move.handed_over, move.restored, move.gone)
    return short(move.shoot), *map(seconds, moments), move.problem


def _outside(evidence: MigrationEvidence) -> list[Sequence[object]]:
    moments = (evidence.resources_before, evidence.resources_moved, evidence.resources_after)
    counts = [Counter(thing.type for thing in things) for things in moments]
    return [(name, *(count[name] for count in counts)) for name in sorted(set().union(*counts))]
