"""What an extension author fills in, and what the framework hands to it.

`Actuator` is the author's side. `Context`, `Client`, `Clock` and `Events` are capabilities that
the machinery puts into an actuator's hands; only their shape is here, so that the contract
imports nothing above it.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Generic, Literal, Protocol, TypeVar, get_args

import attrs

from actuator.cluster import Cluster
from actuator.errors import ActuatorError, ConfigurationError, check_seconds
from actuator.meta import Kind, Object, Raw

__all__ = [
    "Actuator",
    "Client",
    "Clock",
    "Context",
    "ExternalResource",
    "FieldProblem",
    "K",
    "Permission",
    "Provisioned",
    "Resource",
    "Result",
    "SeedObjects",
    "WrappedActuator",
    "innermost",
    "invalid",
    "kind_of",
    "object_class",
    "resource_of",
]

K = TypeVar("K", bound=Object)
T = TypeVar("T")


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
    namespace: str = ""
    """Where it does that alone: a rule of a Role there. "": in all namespaces."""


@attrs.frozen(kw_only=True)
class Result:
    """Done; with `requeue_after` (seconds) the object is looked at again.

    Raises ValueError for seconds that are no finite number of at least 0.
    """

    requeue_after: float | None = attrs.field(
        default=None, converter=attrs.converters.optional(check_seconds)
    )


@attrs.frozen(kw_only=True)
class Provisioned(Result):
    """What an actuator of OperatingSystemConfigs returns: the user data of new machines.

    It goes into the Secret that gardenlet reads, never into the status. Units, files and what an
    in-place update needs belong into the status, where the actuator writes them.
    """

    user_data: bytes | None = attrs.field(default=None, repr=False)


@attrs.frozen(kw_only=True)
class FieldProblem:
    """Something in an object that cannot work: `field` like "spec.providerConfig.networks".

    `internal` says that the check itself failed, so the user may not be the one to mend it.
    """

    field: str
    detail: str
    internal: bool = False

    def __str__(self) -> str:
        return f"{self.field}: {self.detail}"


def invalid(obj: Object, problems: Sequence[FieldProblem]) -> ActuatorError:
    """The error that says all of the problems; the user's to mend, unless one is internal."""
    listed = "; ".join(str(problem) for problem in problems)
    message = f"{obj.KIND.name} {obj.key}: {listed}"
    if any(problem.internal for problem in problems):
        return ActuatorError(message)
    return ConfigurationError(message)


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
    """What one call of an actuator may use. After the call was abandoned, every use raises."""

    client: Client
    log: logging.LoggerAdapter[logging.Logger]
    clock: Clock
    deadline: float
    """When this call's time is over, in seconds of `clock.monotonic()`."""

    def check(self) -> None:
        """Call it before each step that has an effect outside.

        Raises DeadlineExceeded, CallAbandoned or LeaseLost when this call must stop.
        """

    def remaining(self) -> float:
        """Seconds until the deadline, at least 0."""

    def event(self, reason: str, message: str, *, warning: bool = False) -> None:
        """A Kubernetes event about the object; failing to write it is only logged."""

    def save(self, obj: Object) -> None:
        """Writes the status of `obj` ahead of the result (an id, before the next step)."""

    def secret(self, name: str, namespace: str) -> Raw:
        """A Secret that the object needs: its credentials, say.

        Of one that is gone, an object that is being deleted gets the state that this process read
        for it last; a restart forgets that. Raises NotFound where there is none, and ApiError.
        """

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

    watches: Sequence[Any] = ()
    """What else it wants to hear of: `generic.watches(...)`, `generic.owns(...)`."""

    finalizer: str = ""
    """Ours, in place of the kind's: Extensions have one each, "extensions.gardener.cloud/NAME"."""

    of: type[K] | None = None
    """K, for classes that cannot say it as Actuator[K]: wrappers of any actuator."""

    def validate(self, ctx: Context, obj: K, cluster: Cluster, /) -> Iterable[FieldProblem]:
        """What in `obj` cannot work. Asked before reconcile and restore; a problem stops both.

        The status then says ERR_CONFIGURATION_PROBLEM, unless one of them is internal (Gardener
        documentation, "Infrastructure", ConfigValidator).
        """
        return ()

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

    def still_exists(self, resource: ExternalResource, /) -> bool | None:
        """Whether something that was left behind is still there; None where nobody can say.

        Asked by `actuator orphans verify`, long after the object and its Secret are gone: it runs
        with the credentials of whoever asks. Raises ActuatorError where the outside cannot be
        reached.
        """
        return None


class WrappedActuator(Actuator[Any]):
    """Does what the inner one does: for those who change one thing about any actuator.

    It returns what the inner one returns, also where that is wrong: the framework checks it once.
    Override a method to change one operation, `_around` to change each of the five.
    """

    def __init__(self, inner: Actuator[Any]) -> None:
        self.inner = inner
        self.of = object_class(inner)
        self.seed_objects = inner.seed_objects
        self.permissions = inner.permissions
        self.watches = inner.watches
        self.finalizer = inner.finalizer

    def _around(
        self,
        operation: str,
        work: Callable[[Context, Any, Cluster], T],
        ctx: Context,
        obj: Any,
        cluster: Cluster,
    ) -> T:
        """Does the `work` of an operation, which is the inner actuator's method of that name."""
        return work(ctx, obj, cluster)

    def validate(self, ctx: Context, obj: Any, cluster: Cluster, /) -> Iterable[FieldProblem]:
        """See Actuator."""
        return self.inner.validate(ctx, obj, cluster)

    def reconcile(self, ctx: Context, obj: Any, cluster: Cluster, /) -> Result | None:
        """See Actuator."""
        return self._around("reconcile", self.inner.reconcile, ctx, obj, cluster)

    def delete(self, ctx: Context, obj: Any, cluster: Cluster, /) -> None:
        """See Actuator."""
        return self._around("delete", self.inner.delete, ctx, obj, cluster)

    def restore(self, ctx: Context, obj: Any, cluster: Cluster, /) -> Result | None:
        """See Actuator."""
        return self._around("restore", self.inner.restore, ctx, obj, cluster)

    def migrate(self, ctx: Context, obj: Any, cluster: Cluster, /) -> None:
        """See Actuator."""
        return self._around("migrate", self.inner.migrate, ctx, obj, cluster)

    def force_delete(self, ctx: Context, obj: Any, cluster: Cluster, /) -> None:
        """See Actuator."""
        return self._around("force_delete", self.inner.force_delete, ctx, obj, cluster)

    def external_resources(self, obj: Any, /) -> Iterable[ExternalResource]:
        """See Actuator."""
        return self.inner.external_resources(obj)

    def still_exists(self, resource: ExternalResource, /) -> bool | None:
        """See Actuator."""
        return self.inner.still_exists(resource)


def innermost(actuator: Actuator[Any]) -> Actuator[Any]:
    """The author's actuator, behind all wrappers."""
    while isinstance(actuator, WrappedActuator):
        actuator = actuator.inner
    return actuator


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


def kind_of(actuator: Actuator[Any]) -> Kind:
    """The kind that an actuator serves, with its own finalizer where it has one.

    Raises TypeError where the class does not say its kind.
    """
    kind = object_class(actuator).KIND
    return attrs.evolve(kind, finalizer=actuator.finalizer or kind.finalizer)
