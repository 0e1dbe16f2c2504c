"""The observations of a drill: plain data, read by judge and report.

The moments of objects and their texts derive from the evidence log (`history`).
"""

import re
from collections.abc import Iterable

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
    """Its namespace; "" for cluster-scoped kinds."""
    bad: bool = False
    """Whether its shoot has an invalid object: a check that it does not block the others."""
    made: bool = False
    """Whether the actuator of another object created it, which also deletes it."""
    ready: float | None = None
    failed: float | None = None
    """When it first reported an error before its deletion."""
    migrated: float | None = None
    deleted: float | None = None
    stuck: float | None = None
    """When it first reported an error under deletion."""
    error: str = ""
    """The last error."""
    codes: list[str] = attrs.field(factory=list)
    disturbed: float | None = None
    """When it first had a condition of another controller, with text that JSON encoders escape."""
    blocked: str = ""
    """Time and message of its condition DeletionBlocked when that other condition was seen."""
    moved_on: float | None = None
    """When its condition DeletionBlocked was first updated after that."""
    forced: float | None = None
    """When it was first under deletion with a force deletion confirmed."""
    released: float | None = None
    """When it was first under deletion without our finalizer."""
    gone: float | None = None
    outcomes: list[str] = attrs.field(factory=list)
    """Every final outcome that the manager reported for this uid."""
    said: list[str] = attrs.field(factory=list)
    """Every final outcome in events about it."""

    @property
    def key(self) -> str:
        """`Kind shoot/name`."""
        return f"{self.kind} {self.shoot}/{self.name}"


_VARIABLE = re.compile(r"(?<![\w.-])[\w.-]*\d[\w.-]*")
"""The parts of an error that differ between objects: ids, names, numbers, times."""


def by_error(lives: Iterable[Life]) -> dict[tuple[str, str, tuple[str, ...]], list[Life]]:
    """Return the objects that reported errors, by kind, shape of the last error, and codes."""
    found: dict[tuple[str, str, tuple[str, ...]], list[Life]] = {}
    for life in lives:
        if life.error:
            shape = _VARIABLE.sub("…", life.error)
            found.setdefault((life.kind, shape, tuple(life.codes)), []).append(life)
    return found


@attrs.frozen(kw_only=True)
class Act:
    """A step of the drill, or a change that it saw."""

    at: float
    """Seconds since the drill began."""
    text: str


@attrs.frozen(kw_only=True)
class Origin:
    """The tested version, and the command that repeats the drill."""

    version: str = ""
    commit: str = ""
    """Of the current folder, as `git describe` names it."""
    command: str = ""
    extensions: str = ""
    """The rehearsed distributions and their versions, as far as they are installed."""


@attrs.frozen(kw_only=True)
class DrillCluster:
    """The cluster of a drill."""

    host: str
    user: str
    """As the API server knows it."""
    server_version: str
    context: str = ""
    """Of the kubeconfig; "": an embedded cluster of the drill's own."""
    identity: str = ""
    """Of the existing seed, or the UID of its kube-system; "": an embedded cluster."""

    def __str__(self) -> str:
        which = f"context {self.context}" if self.context else "an embedded cluster"
        return f"{self.host} ({which}, Kubernetes {self.server_version}) as user {self.user}"


@attrs.frozen(kw_only=True)
class Record:
    """A remaining external resource that the manager recorded, read from the API server."""

    shoot: str
    owner: str
    """Kind and name of the object it was recorded for."""
    resource: ExternalResource


@attrs.frozen(kw_only=True)
class Strip:
    """A finalizer of another owner that the manager removed from a seed object."""

    shoot: str
    text: str


@attrs.frozen(kw_only=True)
class Bystander:
    """An object or finalizer of another controller, and whether it was changed."""

    name: str
    problem: str | None
    """None: unchanged."""


@attrs.frozen(kw_only=True)
class Refusal:
    """A request that a failing webhook refused."""

    shoot: str
    webhook: str
    """The webhook and its configuration."""
    policy: str
    failure: str
    request: str
    """The refused request, and who sent it."""
    error: str
    seconds: float | None = None
    """The duration of the shoot's force deletion; None: it did not end before the webhook."""


@attrs.define(kw_only=True)
class DrillEvidence:
    """The observations that all drills have in common."""

    drill: str
    title: str
    scenario: str
    scenario_text: str
    """The failure that it caused."""
    broken: str = ""
    """The bug that `--break` planted on purpose, and its rule; "": none."""
    started: str = ""
    """Start time, RFC 3339."""
    shoots_only: bool = False
    """Whether the outside world is the shoots themselves: then no Orphan or state is expected."""
    resources_before: list[ExternalResource] = attrs.field(factory=list)
    """The external resources before the failure."""
    resources_after: list[ExternalResource] = attrs.field(factory=list)
    """The external resources at the end."""
    seconds: float = 0.0
    origin: Origin = attrs.field(factory=Origin)


@attrs.define(kw_only=True)
class Evidence(DrillEvidence):
    """All input of the judge."""

    target: DrillCluster | None = None
    """The cluster; None in a landscape."""
    manager: str = ""
    """The manager that the drill tests."""
    path: str = ""
    """Name and steps of the rehearsed flows; "": a force deletion of stuck objects."""
    acts: list[Act] = attrs.field(factory=list)
    stopped: str = ""
    """Why the drill ended before its end."""
    scale: float | None = None
    """Factor on gardenlet's timeouts and thresholds for errors; None: they did not apply."""
    unfinished: list[str] = attrs.field(factory=list)
    """Steps that did not end as expected."""
    gaps: list[str] = attrs.field(factory=list)
    """The reasons why the evidence log may be incomplete."""
    finalizers: dict[str, list[str]] = attrs.field(factory=dict)
    """The finalizers of our actuators, by kind."""
    lives: list[Life] = attrs.field(factory=list)
    records: list[Record] = attrs.field(factory=list)
    strips: list[Strip] = attrs.field(factory=list)
    stripped: int | None = None
    """The finalizers of others that the manager counted as removed; None: it cannot be asked."""
    bystanders: list[Bystander] = attrs.field(factory=list)
    remaining_objects: list[str] = attrs.field(factory=list)
    """Our objects that still exist in the seed at the end."""
    counted: dict[str, int] = attrs.field(factory=dict)
    """actuator_deletions_total by outcome, at the end."""
    removed_externally: int = 0
    """Objects deleted before we removed our finalizer, which therefore have no outcome."""
    failed_while_stuck: dict[str, int] = attrs.field(factory=dict)
    """actuator_deletions_total{outcome="failed"} by kind, while the objects were stuck."""
    requests: dict[str, int] = attrs.field(factory=dict)
    """The manager's requests by method."""
    webhooks: list[Refusal] = attrs.field(factory=list)
    """Of the scenario webhooks-down."""

    @property
    def rehearsed(self) -> list[Life]:
        """The objects that are not intentionally invalid."""
        return [life for life in self.lives if not life.bad]
