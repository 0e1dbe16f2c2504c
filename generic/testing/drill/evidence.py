"""What a drill saw: plain data, filled in by the run, read by the judge and the report."""

from __future__ import annotations

import attrs

from actuator.interface import ExternalResource


@attrs.define(kw_only=True)
class Life:
    """One extension object. Times are seconds since the drill began; None: did not happen."""

    kind: str
    shoot: str
    name: str
    uid: str
    created: float
    namespace: str = ""
    """Where it lives; "" for kinds that live in none."""
    bad: bool = False
    """Planted to be hopeless: only there to see whether it stops the others."""
    made: bool = False
    """By the actuator of another object, which also deletes it."""
    ready: float | None = None
    deleted: float | None = None
    stuck: float | None = None
    error: str = ""
    codes: list[str] = attrs.field(factory=list)
    disturbed: float | None = None
    """When another controller wrote a condition, with a text that JSON encoders escape."""
    blocked: str = ""
    """What its condition DeletionBlocked said, and when, once that other condition was seen."""
    moved_on: float | None = None
    """When its condition DeletionBlocked was first written after that."""
    forced: float | None = None
    released: float | None = None
    """When our finalizer was seen to be off."""
    gone: float | None = None
    outcomes: list[str] = attrs.field(factory=list)
    """Every final outcome that the manager claimed for this uid."""
    said: list[str] = attrs.field(factory=list)
    """Every final outcome that stands in an event about it."""

    @property
    def key(self) -> str:
        """`Kind shoot/name`."""
        return f"{self.kind} {self.shoot}/{self.name}"


@attrs.frozen(kw_only=True)
class Record:
    """What the manager said it leaves outside, read back from the API server."""

    shoot: str
    owner: str
    """Kind and name of the object it was recorded for."""
    resource: ExternalResource


@attrs.frozen(kw_only=True)
class Strip:
    """A finalizer of another owner that was taken off a seed object."""

    shoot: str
    text: str


@attrs.frozen(kw_only=True)
class Bystander:
    """Something of somebody else in the middle of it, and what became of it."""

    name: str
    problem: str | None
    """None: as it was."""


@attrs.define(kw_only=True)
class DrillEvidence:
    """What every drill saw."""

    drill: str
    title: str
    scenario: str
    scenario_text: str
    started: str = ""
    """When, RFC 3339."""
    shoots_only: bool = False
    """Whether the outside is the shoots themselves: then no Orphan is expected, and no state."""
    outside_before: list[ExternalResource] = attrs.field(factory=list)
    """What existed outside when all was well."""
    outside_after: list[ExternalResource] = attrs.field(factory=list)
    """What existed outside at the end."""
    seconds: float = 0.0


@attrs.define(kw_only=True)
class Evidence(DrillEvidence):
    """All that the judge may look at."""

    path: str = ""
    """Name and steps of the rehearsed flows; "": a force deletion of what is stuck."""
    unfinished: list[str] = attrs.field(factory=list)
    """Steps that did not end as they have to."""
    finalizers: dict[str, str] = attrs.field(factory=dict)
    """Ours, by kind."""
    lives: list[Life] = attrs.field(factory=list)
    records: list[Record] = attrs.field(factory=list)
    strips: list[Strip] = attrs.field(factory=list)
    bystanders: list[Bystander] = attrs.field(factory=list)
    leftovers: list[str] = attrs.field(factory=list)
    """Objects of ours still in the seed at the end."""
    counted: dict[str, int] = attrs.field(factory=dict)
    """actuator_deletions_total by outcome, at the end."""
    bypassed: int = 0
    """Objects that went before we let go, and so have no outcome."""
    failed_while_stuck: dict[str, int] = attrs.field(factory=dict)
    """actuator_deletions_total{outcome="failed"} by kind, while the objects were stuck."""
    requests: dict[str, int] = attrs.field(factory=dict)
    """The manager's requests by method."""

    @property
    def rehearsed(self) -> list[Life]:
        """The objects that were meant to work."""
        return [life for life in self.lives if not life.bad]
