"""What an extension author fills in, and what the framework hands to it.

`Actuator` is the author's side. `Context`, `Client`, `Clock` and `Events` are capabilities that
the machinery puts into an actuator's hands; only their shape is here, so that the contract
imports nothing above it.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Generic, Literal, Protocol, TypeVar, get_args

import attrs

from actuator.cluster import Cluster
from actuator.errors import check_seconds
from actuator.meta import Kind, Object, Raw

__all__ = [
    "Actuator",
    "Client",
    "Clock",
    "Context",
    "ExternalResource",
    "K",
    "Permission",
    "Resource",
    "Result",
    "SeedObjects",
    "object_class",
    "resource_of",
]

K = TypeVar("K", bound=Object)


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(values)


Propagation = Literal["Background", "Foreground", "Orphan"]


@attrs.frozen
class Resource:
    """Where objects of one type live in the API: `Resource("v1", "secrets")`."""

    api_version: str
    plural: str
    namespaced: bool = True

    @property
    def group(self) -> str:
        """The API group, "" for core."""
        return self.api_version.rpartition("/")[0]

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


def resource_of(kind: Kind) -> Resource:
    """Where objects of `kind` live."""
    return Resource(kind.api_version, kind.plural, kind.namespaced)


@attrs.frozen
class SeedObjects:
    """A group of objects in the seed that a force deletion has to remove.

    Only the declared `finalizers` are stripped. Cluster-scoped objects, core kinds and
    ManagedResources need a `label_selector`: without one, others' objects would be hit.
    """

    api_version: str
    plural: str
    finalizers: Sequence[str] = attrs.field(default=(), converter=_texts)
    label_selector: str = attrs.field(default="", kw_only=True)
    namespaced: bool = attrs.field(default=True, kw_only=True)

    def __attrs_post_init__(self) -> None:
        """Raises ValueError where a selector is missing."""
        shared = (
            not self.namespaced or "/" not in self.api_version or self.plural == "managedresources"
        )
        if shared and not self.label_selector:
            raise ValueError(
                f"SeedObjects({self.api_version!r}, {self.plural!r}): these objects are shared "
                "with others; set label_selector so that only yours are deleted"
            )

    @property
    def resource(self) -> Resource:
        """Where these objects live."""
        return Resource(self.api_version, self.plural, self.namespaced)


@attrs.frozen(kw_only=True)
class ExternalResource:
    """Something that may exist outside the seed: found by its id, or by search tags.

    `type` is the provider's name of it ("AWS::EC2::VPC"), "unknown" where nobody can say. Never
    put a secret, or raw state, in here: it is written into events and reports.
    """

    type: str
    id: str = ""
    tags: dict[str, str] = attrs.field(factory=dict)
    region: str = ""

    def __str__(self) -> str:
        tags = ",".join(f"{key}={value}" for key, value in sorted(self.tags.items()))
        where = f" in {self.region}" if self.region else ""
        return f"{self.type} {self.id or tags or 'of unknown id'}{where}"


@attrs.frozen(kw_only=True)
class Permission:
    """What an actuator does in the API beyond its own kind; becomes a rule of its ClusterRole."""

    api_version: str
    resource: str
    verbs: Sequence[str] = attrs.field(converter=_texts)


@attrs.frozen(kw_only=True)
class Result:
    """Done; with `requeue_after` (seconds) the object is looked at again.

    Raises ValueError for seconds that are no finite number of at least 0.
    """

    requeue_after: float | None = attrs.field(
        default=None, converter=attrs.converters.optional(check_seconds)
    )


class Clock(Protocol):
    """The two clocks: one for timestamps, one for durations."""

    def now(self) -> datetime:
        """The time of day, aware, UTC."""

    def monotonic(self) -> float:
        """Seconds that never jump."""


class Client(Protocol):
    """Kubernetes objects as JSON; every call has a timeout, none retries, all raise ApiError."""

    def get(self, resource: Resource, name: str, namespace: str = "") -> Raw:
        """One object. Raises NotFound."""

    def list(
        self, resource: Resource, namespace: str = "", *, label_selector: str = ""
    ) -> list[Raw]:
        """All objects, of one namespace if one is given."""

    def create(self, resource: Resource, obj: Raw) -> Raw:
        """The object as created. Raises AlreadyExists."""

    def apply(self, resource: Resource, obj: Raw, *, field_manager: str = "actuator") -> Raw:
        """Server-side apply: creates the object, or owns the fields it names."""

    def patch(
        self,
        resource: Resource,
        name: str,
        namespace: str,
        patch: Sequence[Raw] | Raw,
        *,
        subresource: str = "",
    ) -> Raw:
        """The object as patched: a sequence is a JSON patch, a dict a merge patch.

        Raises Invalid where a test of the JSON patch failed.
        """

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        uid: str | None = None,
        propagation: Propagation = "Background",
    ) -> None:
        """Asks for the deletion, of the object with that uid if one is given.

        Raises NotFound, and Conflict where the uid differs.
        """


class Context(Protocol):
    """What one call of an actuator may use. After the call was set aside, every use raises."""

    client: Client
    log: logging.LoggerAdapter[logging.Logger]
    clock: Clock
    deadline: float
    """When this call's time is over, in seconds of `clock.monotonic()`."""

    def check(self) -> None:
        """Call it before each step that has an effect outside.

        Raises DeadlineExceeded, SetAside or LeaseLost when this call must stop.
        """

    def remaining(self) -> float:
        """Seconds until the deadline, at least 0."""

    def event(self, reason: str, message: str, *, warning: bool = False) -> None:
        """A Kubernetes event about the object; failing to write it is only logged."""

    def save(self, obj: Object) -> None:
        """Writes the status of `obj` ahead of the result (an id, before the next step)."""

    def delete_seed_objects(self, groups: Iterable[SeedObjects]) -> None:
        """Deletes these objects in the object's namespace and strips declared finalizers.

        Raises ActuatorError naming what is still there and what holds it.
        """


class Actuator(ABC, Generic[K]):
    """One kind of extension: what to do for an object of class K.

    All operations are plain, blocking calls, may run again after any crash, and have to be
    idempotent. Return when done; raise when not: ActuatorError (with codes), RequeueAfter, or
    anything else. An actuator writes into `obj.status`; finalizers, lastOperation and lastError
    are the framework's.
    """

    seed_objects: Sequence[SeedObjects] = ()
    """What the default force_delete removes from the shoot's namespace in the seed."""

    permissions: Sequence[Permission] = ()
    """What this actuator does in the API besides its own kind (for `actuator rbac`)."""

    of: type[K] | None = None
    """K, for classes that cannot say it as Actuator[K]: wrappers of any actuator."""

    @abstractmethod
    def reconcile(self, ctx: Context, obj: K, cluster: Cluster, /) -> Result | None:
        """Afterwards what `obj.spec` asks for exists, and `obj.status` says what it is."""

    @abstractmethod
    def delete(self, ctx: Context, obj: K, cluster: Cluster, /) -> None:
        """Afterwards nothing of what reconcile made exists. What is gone already is success."""

    def restore(self, ctx: Context, obj: K, cluster: Cluster, /) -> Result | None:
        """Like reconcile, on the destination seed, from `obj.status.state`."""
        return self.reconcile(ctx, obj, cluster)

    def migrate(self, ctx: Context, obj: K, cluster: Cluster, /) -> None:
        """Afterwards this seed no longer touches the resources; they themselves stay."""
        return None

    def force_delete(self, ctx: Context, obj: K, cluster: Cluster, /) -> None:
        """Afterwards nothing of ours is left in the seed; what is outside may stay behind.

        Must not need a working cloud, nor the shoot's API server (Gardener documentation,
        "Force Deletion").
        """
        ctx.delete_seed_objects(self.seed_objects)

    def external_resources(self, obj: K, /) -> Iterable[ExternalResource]:
        """What may exist outside the seed for `obj`: from the object alone, without I/O."""
        status: Any = getattr(obj, "status", None)
        if getattr(status, "provider_status", None) or getattr(status, "state", None):
            yield ExternalResource(type="unknown")


def object_class(actuator: Actuator[Any]) -> type[Object]:
    """The K of an Actuator[K]. Raises TypeError where the class does not say it."""
    if actuator.of is not None:
        declared: type[Object] = actuator.of
        return declared
    for cls in type(actuator).__mro__:
        for base in getattr(cls, "__orig_bases__", ()):
            for argument in get_args(base):
                if isinstance(argument, type) and issubclass(argument, Object):
                    return argument
    raise TypeError(
        f"{type(actuator).__name__} does not say its kind; "
        "derive from Actuator[Infrastructure], or another kind"
    )
