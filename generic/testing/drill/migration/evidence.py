"""The observations of a migration drill: plain data, written by the run, read by the rules."""

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
    """All input of the rules; `outside_before` is limited to migrating kinds."""

    dice: int = 0
    """The random seed of the kills; the same number gives the same kill times."""
    moves: list[Move] = attrs.field(factory=list)
    calls: list[ActuatorCall] = attrs.field(factory=list)
    kills: list[Death] = attrs.field(factory=list)
    arrivals: list[Arrival] = attrs.field(factory=list)
    staying: list[str] = attrs.field(factory=list)
    """Kinds that do not migrate."""
    outside_moved: list[ExternalResource] = attrs.field(factory=list)
    """The external resources of migrating kinds after the move."""
    left_in_source: list[str] = attrs.field(factory=list)
    left_in_destination: list[str] = attrs.field(factory=list)
