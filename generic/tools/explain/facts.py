"""The content of an explanation: plain data, the same for people and for machines.

Texts are complete phrases for people. Not here: provider configs, states, contents of Secrets.
Timestamps are the API server's text; ages are seconds.
"""

from collections.abc import Iterator, Sequence

import attrs

from actuator.interface import ExternalResource
from actuator.meta import Condition, LastError, LastOperation


@attrs.frozen(kw_only=True)
class Subject:
    """The explained object."""

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
    """The reconciler's next operation; `operation` is empty if it would do nothing."""

    operation: str
    why: str
    blocked: bool = False


@attrs.frozen(kw_only=True)
class Deleting:
    """Since when the object is being deleted."""

    timestamp: str
    seconds: float


@attrs.frozen(kw_only=True)
class FinalizerHolder:
    """A finalizer, and the controller that removes it."""

    finalizer: str
    owner: str
    ours: bool


@attrs.frozen(kw_only=True)
class Reference:
    """The Secret that the object refers to; `exists` is None if it may not be read."""

    namespace: str
    name: str
    exists: bool | None


@attrs.frozen(kw_only=True)
class Forcing:
    """Whether a force deletion is requested, whether it is effective, and whether it is allowed."""

    place: str
    """The object that needs the annotation; empty if the deletion cannot be forced."""
    value: str | None
    """The annotation's value there."""
    counts: bool | None
    """None if the Cluster could not be read."""
    verdict: str
    allowed: bool | None = None
    """Whether Gardener would accept the annotation; None without a Shoot."""
    not_allowed_because: str = ""
    shoot_codes: tuple[str, ...] = ()
    own_codes: tuple[str, ...] = ()
    """Codes of the object's last error that would allow it, once the Shoot has them."""


@attrs.frozen(kw_only=True)
class Standing:
    """The state of an object: the row of a table, and the head of a page."""

    subject: Subject
    decision: Decision
    deleting: Deleting | None
    last_operation: LastOperation | None
    last_error: LastError | None
    finalizers: tuple[FinalizerHolder, ...]
    secret: Reference | None
    conditions: tuple[Condition, ...]
    forcing: Forcing
    untouched: bool = False
    """Whether no extension has worked on the object since its creation."""
    blockers: tuple[str, ...] = ()
    """The blockers, in the order of fixing them."""


@attrs.frozen(kw_only=True)
class SeedObject:
    """A seed object that a force deletion would delete."""

    resource: str
    namespace: str
    name: str
    deleting: bool
    stripped: tuple[str, ...]
    """Finalizers that would be removed."""
    holding: tuple[str, ...]
    """Undeclared finalizers, which would block its deletion."""


@attrs.frozen(kw_only=True)
class ForcedRemoval:
    """The effect of a force deletion, according to the actuator's declarations."""

    actuator: str
    own_way: bool
    """Whether it overrides force_delete, which may do less or more than it declares."""
    seed_objects: tuple[SeedObject, ...]
    remaining_resources: tuple[ExternalResource, ...]


@attrs.frozen(kw_only=True)
class CalledWebhook:
    """An admission webhook that the API server calls for our patches of this object."""

    configuration: str
    name: str
    mutating: bool
    failure_policy: str
    patches: tuple[str, ...]
    """The requests it may refuse: "finalizers" (and so the release), "status", "deletion"."""
    conditional: bool
    """Whether it has other matchConditions, which only the API server evaluates."""
    exempts_deletion: bool = False
    """Whether it is never called for objects under deletion."""
    ours: bool = False
    """Whether an extension of this framework declares it."""
    error: str = ""
    """The last error about it, from the object's status or events."""


@attrs.frozen(kw_only=True)
class Orphaned:
    """A remaining external resource recorded for this object's UID."""

    name: str
    resource: ExternalResource
    reason: str
    state: str
    recorded_at: str


@attrs.frozen(kw_only=True)
class WarningEvent:
    """A Warning event about the object."""

    reason: str
    message: str
    count: int
    last_seen: str
    source: str


@attrs.frozen(kw_only=True)
class Unread:
    """A read that the API server refused, so that its data is missing."""

    verb: str
    resource: str
    where: str
    """Namespace and name, if any."""
    reason: str

    def __str__(self) -> str:
        where = f" {self.where}" if self.where else ""
        return f"cannot {self.verb} {self.resource}{where}: {self.reason}"


FORBIDDEN = "forbidden (403)"


def grant(unread: Sequence[Unread]) -> Iterator[str]:
    """Yield the command that creates a role for the forbidden reads, if there are any."""
    resources = dict.fromkeys(item.resource for item in unread if item.reason == FORBIDDEN)
    if resources:
        yield (
            "create a role for the forbidden reads, and bind it to your user: kubectl create "
            f"clusterrole actuator-explain --verb=get,list --resource={','.join(resources)}"
        )


@attrs.frozen(kw_only=True)
class Explanation:
    """The explanation of one object."""

    standing: Standing
    removal: ForcedRemoval | None
    """None without an extension, or if it does not serve this object."""
    webhooks: tuple[CalledWebhook, ...]
    orphans: tuple[Orphaned, ...]
    warnings: tuple[WarningEvent, ...]
    """The latest ones, newest first."""
    notes: tuple[str, ...]
    unread: tuple[Unread, ...]


@attrs.frozen(kw_only=True)
class Overview:
    """The extension objects of a namespace, blocked ones first."""

    namespace: str
    deleting: Deleting | None
    remaining: tuple[str, ...]
    """The conditions with which the namespace controller explains the pending deletion."""
    objects: tuple[Standing, ...]
    unread: tuple[Unread, ...]
