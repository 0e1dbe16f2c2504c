"""What an explanation says: data alone, the same for people and for machines.

Texts are whole phrases for people. Never in here: provider configs, states, contents of Secrets.
Timestamps are the API server's text; ages are seconds.
"""

from __future__ import annotations

import attrs

from actuator.interface import ExternalResource
from actuator.meta import Condition, LastError, LastOperation


@attrs.frozen(kw_only=True)
class Subject:
    """The object that is explained."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    type: str
    """The extension type, "aws"."""
    class_: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}".replace(" /", " ")


@attrs.frozen(kw_only=True)
class Decision:
    """What the reconciler would do now; `operation` is empty where it would do nothing."""

    operation: str
    why: str
    blocked: bool = False


@attrs.frozen(kw_only=True)
class Deleting:
    """Since when the object is being deleted."""

    timestamp: str
    seconds: float


@attrs.frozen(kw_only=True)
class Held:
    """A finalizer, and who takes it off."""

    finalizer: str
    owner: str
    ours: bool


@attrs.frozen(kw_only=True)
class Reference:
    """The Secret that the object names; `exists` is None where nobody may look."""

    namespace: str
    name: str
    exists: bool | None


@attrs.frozen(kw_only=True)
class Forcing:
    """Whether a force deletion is asked for, whether that counts, whether Gardener allows it."""

    place: str
    """Where the annotation has to stand; empty where nothing can force the deletion."""
    value: str | None
    """The annotation as written there."""
    counts: bool | None
    """None where the Cluster could not be read."""
    verdict: str
    allowed: bool | None = None
    """Whether Gardener would take the annotation; None where no Shoot is asked."""
    not_allowed_because: str = ""
    shoot_codes: tuple[str, ...] = ()
    own_codes: tuple[str, ...] = ()
    """Codes of the object's last error that would allow it, once the shoot shows them."""


@attrs.frozen(kw_only=True)
class Standing:
    """How an object stands: the row of a table, and the head of a page."""

    subject: Subject
    decision: Decision
    deleting: Deleting | None
    last_operation: LastOperation | None
    last_error: LastError | None
    finalizers: tuple[Held, ...]
    secret: Reference | None
    conditions: tuple[Condition, ...]
    forcing: Forcing
    blockers: tuple[str, ...] = ()
    """What stands in the way; what has to be mended first comes first."""


@attrs.frozen(kw_only=True)
class SeedObject:
    """Something in the seed that a force deletion would delete."""

    resource: str
    namespace: str
    name: str
    deleting: bool
    stripped: tuple[str, ...]
    """Finalizers that would come off."""
    holding: tuple[str, ...]
    """Finalizers that nobody declared, which would hold it."""


@attrs.frozen(kw_only=True)
class Removal:
    """What a force deletion would do, by what the actuator declares."""

    actuator: str
    own_way: bool
    """It has a force_delete of its own, which may do less, or more, than what it declares."""
    seed_objects: tuple[SeedObject, ...]
    left_outside: tuple[ExternalResource, ...]


@attrs.frozen(kw_only=True)
class Webhook:
    """An admission webhook that is asked about our patches of this object."""

    configuration: str
    name: str
    mutating: bool
    failure_policy: str
    patches: tuple[str, ...]
    """What it may refuse: "finalizers" (and with that the release), "status", or both."""
    conditional: bool
    """It has matchConditions, which only the API server evaluates."""


@attrs.frozen(kw_only=True)
class Orphaned:
    """What is on record as left behind by this very object."""

    name: str
    resource: ExternalResource
    reason: str
    state: str
    recorded_at: str


@attrs.frozen(kw_only=True)
class WarningEvent:
    """A Warning about the object."""

    reason: str
    message: str
    count: int
    last_seen: str
    source: str


@attrs.frozen(kw_only=True)
class Unread:
    """What the API server did not let us read, so that nothing is said of it."""

    verb: str
    resource: str
    where: str
    """Namespace and name, as far as there are any."""
    reason: str

    def __str__(self) -> str:
        where = f" {self.where}" if self.where else ""
        return f"cannot {self.verb} {self.resource}{where}: {self.reason}"


@attrs.frozen(kw_only=True)
class Explanation:
    """Everything about one object."""

    standing: Standing
    removal: Removal | None
    """None where no extension was given, or none that serves this object."""
    webhooks: tuple[Webhook, ...]
    orphans: tuple[Orphaned, ...]
    warnings: tuple[WarningEvent, ...]
    """The latest ones, the newest first."""
    notes: tuple[str, ...]
    unread: tuple[Unread, ...]


@attrs.frozen(kw_only=True)
class Overview:
    """A namespace: all extension objects in it, the ones in trouble first."""

    namespace: str
    deleting: Deleting | None
    remaining: tuple[str, ...]
    """What the namespace controller says still stands in the way of the namespace's deletion."""
    objects: tuple[Standing, ...]
    unread: tuple[Unread, ...]
