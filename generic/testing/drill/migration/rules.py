"""The evidence of a migration drill, and its rules: a function for each. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence

import attrs

from actuator.interface import ExternalResource
from generic.testing.drill.evidence import DrillEvidence
from generic.testing.drill.judge import Finding, Rules, findings_of
from generic.testing.drill.kills.calls import ObservedCall
from generic.testing.drill.kills.processes import Death


@attrs.define(kw_only=True)
class Move:
    """One shoot. Times are seconds since the drill began; None: did not happen."""

    shoot: str
    ready: float | None = None
    handed_over: float | None = None
    """When the source had no object of it any more."""
    restored: float | None = None
    gone: float | None = None
    problem: str = ""
    """The state for which gardenlet waited until its timeout."""


@attrs.frozen(kw_only=True)
class Arrival:
    """Data copied from one seed to the other: digests of the sent and of the received data."""

    shoot: str
    what: str
    sent: str
    came: str


@attrs.define(kw_only=True)
class MigrationEvidence(DrillEvidence):
    """All input of the rules; `resources_before` is limited to migrating kinds."""

    random_seed: int = 0
    """The random seed of the kills; the same number gives the same kill times."""
    moves: list[Move] = attrs.field(factory=list)
    calls: list[ObservedCall] = attrs.field(factory=list)
    kills: list[Death] = attrs.field(factory=list)
    arrivals: list[Arrival] = attrs.field(factory=list)
    staying: list[str] = attrs.field(factory=list)
    """Kinds that do not migrate."""
    resources_moved: list[ExternalResource] = attrs.field(factory=list)
    """The external resources of migrating kinds after the move."""
    left_in_source: list[str] = attrs.field(factory=list)
    left_in_destination: list[str] = attrs.field(factory=list)


SOURCE = "source"
DESTINATION = "destination"
PHASES = ("migrate", "restore")
_ALLOWED = {SOURCE: {"reconcile", "migrate"}, DESTINATION: {"restore", "reconcile", "delete"}}


def judge(evidence: MigrationEvidence) -> list[Finding]:
    """Return all findings, in the order of the rules."""
    return findings_of(RULES, evidence)


def _all_moved(evidence: MigrationEvidence) -> Iterable[str]:
    for move in evidence.moves:
        if move.problem:
            yield move.problem
        elif move.restored is None:
            yield f"{move.shoot} was not restored"
    for phase in PHASES:
        if not any(kill.phase == phase for kill in evidence.kills):
            yield f"no manager was killed during {phase}"


def _once(evidence: MigrationEvidence) -> Iterable[str]:
    if not evidence.resources_before:
        yield "nothing existed outside before the move"
    before = _counted(evidence.resources_before)
    after = _counted(evidence.resources_moved)
    for thing, count in (before - after).items():
        yield f"{_say(thing, count)} did not survive the move"
    for thing, count in (after - before).items():
        yield f"{_say(thing, count)} was made by the move"


def _one_seed_acts(evidence: MigrationEvidence) -> Iterable[str]:
    moved = {move.shoot: move.handed_over for move in evidence.moves}
    for call in evidence.calls:
        if call.kind in evidence.staying or call.shoot not in moved:
            continue
        moment = moved[call.shoot]
        if call.operation not in _ALLOWED[call.seed]:
            yield f"the {call.seed} called {_text(call)}"
        elif moment is not None and (call.at > moment) == (call.seed == SOURCE):
            side = "after" if call.seed == SOURCE else "before"
            yield f"the {call.seed} called {_text(call)} {side} the hand-over"


def _arrived(evidence: MigrationEvidence) -> Iterable[str]:
    if not evidence.arrivals and not evidence.shoots_only:
        yield "no extension had a state, nor referred to anything"
    for arrival in evidence.arrivals:
        if arrival.came != arrival.sent:
            said = "did not arrive" if not arrival.came else "arrived changed"
            yield f"{arrival.shoot}: {arrival.what} {said}"


def _ends_well(evidence: MigrationEvidence) -> Iterable[str]:
    yield from evidence.left_in_destination
    yield from (f"{left} is left outside" for left in evidence.resources_after)
    yield from (f"{move.shoot} is not gone" for move in evidence.moves if move.gone is None)


def _counted(things: Sequence[ExternalResource]) -> Counter[tuple[str, str]]:
    return Counter((thing.type, thing.id) for thing in things)


def _say(thing: tuple[str, str], count: int) -> str:
    text = " ".join(thing)
    return text if count == 1 else f"{text} ({count} times)"


def _text(call: ObservedCall) -> str:
    return f"{call.operation} of {call.kind} {call.shoot}/{call.name}"


RULES: Rules[MigrationEvidence] = {
    "M1": ("Every shoot moved, although managers were killed", _all_moved),
    "M2": ("Everything outside exists once, as before the move", _once),
    "M3": ("Only the seed that owns a shoot acts for it", _one_seed_acts),
    "M4": ("State and referenced resources arrived", _arrived),
    "M5": ("Nothing is left in the source", lambda evidence: evidence.left_in_source),
    "M6": ("A deletion in the destination leaves nothing", _ends_well),
}
