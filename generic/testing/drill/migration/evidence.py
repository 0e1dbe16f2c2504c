"""What a migration drill saw: plain data, filled in by the run, read by rules and report."""

from __future__ import annotations

import attrs

from actuator.interface import ExternalResource
from generic.testing.drill.evidence import DrillEvidence
from generic.testing.drill.kills.calls import ActuatorCall
from generic.testing.drill.kills.processes import Death


@attrs.define(kw_only=True)
class Move:
    """One shoot. Times are seconds since the drill began; None: did not happen."""

    shoot: str
    ready: float | None = None
    handed_over: float | None = None
    """When nothing of it was left in the source."""
    restored: float | None = None
    gone: float | None = None
    problem: str = ""
    """What gardenlet waited for in vain."""


@attrs.frozen(kw_only=True)
class Arrival:
    """Something that had to get from one seed to the other: digests of what was sent, and came."""

    shoot: str
    what: str
    sent: str
    came: str


@attrs.define(kw_only=True)
class MigrationEvidence(DrillEvidence):
    """All that the rules may look at; `outside_before` is of what moves."""

    dice: int = 0
    """The number that decided when to kill; the same number kills alike."""
    moves: list[Move] = attrs.field(factory=list)
    calls: list[ActuatorCall] = attrs.field(factory=list)
    kills: list[Death] = attrs.field(factory=list)
    arrivals: list[Arrival] = attrs.field(factory=list)
    staying: list[str] = attrs.field(factory=list)
    """Kinds that do not move."""
    outside_moved: list[ExternalResource] = attrs.field(factory=list)
    """What existed outside after the move, of what moves."""
    left_in_source: list[str] = attrs.field(factory=list)
    left_in_destination: list[str] = attrs.field(factory=list)
