"""The interface between an extension and the framework.

An author implements `Actuator`. The framework implements `Context`, `Client` and `Clock` and passes
them to the actuator; only their protocols are here, so that the contract imports nothing above it.
"""

import builtins
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from types import NoneType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    Protocol,
    Self,
    get_args,
    get_origin,
    overload,
)

import attrs
from typing_extensions import TypeVar

from actuator.cluster import Cluster
from actuator.errors import ActuatorError, ConfigurationError, check_seconds
from actuator.meta import CredentialsReference, Kind, Object, Raw
from actuator.places import place_of
from actuator.suggestions import closest

K = TypeVar("K", bound=Object)
T = TypeVar("T")
M = TypeVar("M")


def texts(values: Iterable[str]) -> tuple[str, ...]:
    """Return the texts as a tuple. Raises TypeError for one text instead of a list."""
    if isinstance(values, str):
        raise TypeError(f"expected a list, got the text {values!r}; write [{values!r}]")
    return tuple(values)


def _check_version(_of: object, _field: object, api_version: str) -> None:
    if "/" not in api_version and not re.match(r"v\d", api_version):
        raise ValueError(f"api_version={api_version!r} has no version; write it like 'apps/v1'")


def _check_plural(_of: object, _field: object, plural: str) -> None:
    if plural != plural.lower():
        raise ValueError(f"{plural!r} is no plural in lower case, such as 'configmaps'")


Propagation = Literal["Background", "Foreground", "Orphan"]


@attrs.frozen
class Resource:
    """The location of objects of one type in the API: `Resource("v1", "secrets")`."""

    api_version: str = attrs.field(validator=_check_version)
    plural: str = attrs.field(validator=_check_plural)
    namespaced: bool = attrs.field(default=True, kw_only=True)

    @property
    def group(self) -> str:
        """The API group; "" for core."""
        return self.api_version.rpartition("/")[0]

    def permission(
        self,
        *verbs: str,
        namespace: str = "",
        names: Iterable[str] = (),
        subresource: str = "",
    ) -> "Permission":
        """Return the permission for these verbs; see the fields of Permission."""
        part = f"{self.plural}/{subresource}" if subresource else self.plural
        resource = attrs.evolve(self, plural=part)
        return Permission(resource, verbs, namespace=namespace, names=names)

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


SECRETS = Resource("v1", "secrets")
CONFIG_MAPS = Resource("v1", "configmaps")


def resource_of(kind: Kind) -> Resource:
    """Return the location of objects of `kind`."""
    return Resource(kind.api_version, kind.plural, namespaced=kind.namespaced)


def _resource(given: Resource | type[Object]) -> Resource:
    if isinstance(given, type) and issubclass(given, Object):
        return resource_of(given.KIND)
    if not isinstance(given, Resource):
        raise TypeError(f'expected a Resource, got {given!r}; write Resource("v1", "secrets")')
    return given


@attrs.frozen
class SeedObjects:
    """A group of objects in the seed that a force deletion has to remove.

    Only the finalizers in `finalizers` are removed. Cluster-scoped objects, core kinds and
    ManagedResources require a `label_selector`; without one, objects of others would be deleted.
    The class of an own kind is accepted as `resource`, too.
    """

    resource: Resource = attrs.field(converter=_resource)
    finalizers: Sequence[str] = attrs.field(default=(), converter=texts)
    label_selector: str = attrs.field(default="", kw_only=True)

    def __attrs_post_init__(self) -> None:
        """Raise ValueError if a required selector is missing."""
        resource = self.resource
        own = resource.namespaced and resource.group and resource.plural != "managedresources"
        if not (own or self.label_selector):
            raise ValueError(
                f"SeedObjects({resource.api_version!r}, {resource.plural!r}): objects of this kind "
                "are shared with other controllers; set label_selector to delete only yours"
            )


@attrs.frozen(kw_only=True)
class ExternalResource:
    """A resource that may exist outside the seed, identified by its id or by search tags.

    `type` is the provider's name for it ("AWS::EC2::VPC"), or "unknown". Never store a secret or
    raw state here: the fields are written into events and reports.
    """

    type: str
    id: str = ""
    tags: dict[str, str] = attrs.field(factory=dict)
    region: str = ""

    def __str__(self) -> str:
        tags = ",".join(f"{key}={value}" for key, value in sorted(self.tags.items()))
        where = f" in {self.region}" if self.region else ""
        return f"{self.type} {self.id or tags or 'with unknown id'}{where}"


@attrs.frozen
class Permission:
    """API access that an actuator needs beyond its own kind; becomes a rule of its ClusterRole."""

    resource: Resource = attrs.field(converter=_resource)
    verbs: Sequence[str] = attrs.field(converter=texts)
    namespace: str = attrs.field(default="", kw_only=True)
    """Limits the access to one namespace, by a rule of a Role there. "" means all namespaces."""
    names: Sequence[str] = attrs.field(default=(), converter=texts, kw_only=True)
    """Limits the access to objects with these names; empty means all."""


SHOOT_ACCESS = SECRETS.permission("get", names=["gardener-internal", "gardener"])
"""The permission for `Context.shoot`: kubeconfigs of shoots are in these Secrets of the seed."""


@attrs.frozen(kw_only=True)
class Result:
    """The operation is done; with `requeue_after` (seconds), the object is reconciled again.

    Raises ValueError unless `requeue_after` is a finite number of at least 0.
    """

    requeue_after: float | None = attrs.field(
        default=None, converter=attrs.converters.optional(check_seconds)
    )


@attrs.frozen(kw_only=True)
class Provisioned(Result):
    """The result of an actuator for OperatingSystemConfigs: the user data of new machines.

    The framework writes it to the Secret that gardenlet reads, never to the status. The actuator
    writes units, files and the data for in-place updates to the status.
    """

    user_data: bytes | None = attrs.field(default=None, repr=False)


@attrs.frozen(kw_only=True)
class FieldProblem:
    """A problem in an object; `field` is a path like "spec.providerConfig.networks".

    `internal` means that the check itself failed, so the user may be unable to fix it.
    """

    field: str
    detail: str
    internal: bool = False

    def __str__(self) -> str:
        return f"{self.field}: {self.detail}"


@attrs.frozen(kw_only=True)
class ProviderConfig:
    """Base class of the configuration in providerConfig: an attrs class, decoded strictly.

    A subclass gives `api_version` and `kind` their only valid values as defaults. `Schema` declares
    the constraints of a field, the text below it is its description.
    """

    api_version: str
    """The group and version of this configuration."""
    kind: str
    """The name of this configuration."""

    versions: ClassVar[Mapping[Any, Callable[[Any], Any]]] = {}
    """The older classes that are accepted as well, each with a function that converts an object of
    it to one of this class. An older class may have older versions in turn; subclasses have none
    of these."""

    def problems(self) -> Iterable[FieldProblem]:
        """Return the problems that types and `Schema` cannot express, with fields of this class.

        Called only if there are no others; "zones[0].name" is such a field. An admission calls it,
        and a reconciliation of a generation that was never accepted: a new rule stops no shoot.
        """
        return ()


def invalid(obj: Object, problems: Sequence[FieldProblem]) -> ActuatorError:
    """Return an error that lists all problems: a ConfigurationError, unless one is internal."""
    listed = "; ".join(str(problem) for problem in problems)
    message = f"{obj.KIND.name} {obj.key}: {listed}"
    if any(problem.internal for problem in problems):
        return ActuatorError(message)
    return ConfigurationError(message)


C = TypeVar("C", bound=ProviderConfig | Raw | None, default=Any)
C_co = TypeVar("C_co", covariant=True, default=object)


class Clock(Protocol):
    """Two clocks: one for timestamps, one for durations."""

    def now(self) -> datetime:
        """Return the current time, timezone-aware, in UTC."""

    def monotonic(self) -> float:
        """Return the seconds of a clock that never jumps."""


class Client(Protocol):
    """Access to objects as JSON. Every call has a timeout, none retries, all raise ApiError.

    `get` and `list` take a Resource, or a class of objects: a model of the package `kubernetes`,
    such as V1Secret, or the class of an own kind. They then return its instances.
    """

    @overload
    def get(self, resource: Resource, name: str, namespace: str = "") -> Raw: ...
    @overload
    def get(self, resource: type[M], name: str, namespace: str = "") -> M: ...
    def get(self, resource: Resource | type[M], name: str, namespace: str = "") -> Raw | M:
        """Return one object. Raises NotFound, and DecodeError if it does not fit the class."""

    @overload
    def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        metadata_only: bool = False,
    ) -> builtins.list[Raw]: ...
    @overload
    def list(
        self, resource: type[M], namespace: str = "", *, label_selector: str = ""
    ) -> builtins.list[M]: ...
    def list(
        self,
        resource: Resource | type[M],
        namespace: str = "",
        *,
        label_selector: str = "",
        metadata_only: bool = False,
    ) -> builtins.list[Raw] | builtins.list[M]:
        """Return all objects, or only those of one namespace; on request, their metadata alone."""

    def create(self, resource: Resource, obj: Raw) -> Raw:
        """Create the object and return it. Raises AlreadyExists."""

    def apply(self, resource: Resource, obj: Raw, *, field_manager: str = "actuator") -> Raw:
        """Create the object or own its given fields, by server-side apply; return it."""

    def patch(
        self,
        resource: Resource,
        name: str,
        namespace: str,
        patch: Sequence[Raw] | Raw,
        *,
        subresource: str = "",
    ) -> Raw:
        """Patch the object and return it: a sequence is a JSON patch, a dict a merge patch.

        Raises Invalid if a test of the JSON patch fails.
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
        """Request the deletion of the object, if `uid` is given only of the object with that uid.

        Raises NotFound, and Conflict if the uid differs.
        """


class Context(Protocol[C_co]):
    """The capabilities of one actuator call. Once the call is abandoned, every use raises.

    `Context[FilterConfig]` has the configuration of an `Actuator[Extension, FilterConfig]`; helpers
    that do not read it take a `Context`.
    """

    client: Client
    clock: Clock
    deadline: float
    """The deadline of this call, in seconds of `clock.monotonic()`."""

    @property
    def config(self) -> C_co:
        """The configuration in spec.providerConfig, decoded at first use; omitted, its defaults.

        Before reconcile and restore, the framework has checked it. In another operation, the first
        use raises ConfigurationError, with all problems, if it is invalid.
        """

    def pool_config(self, index: int) -> C_co:
        """Return the configuration of the pool of a Worker with this index, like `config`."""

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger whose lines name the object."""

    @property
    def shoot(self) -> Client:
        """The API server of the object's shoot; needs SHOOT_ACCESS in `permissions`.

        Raises ShootUnreachable, here or at a request, while the shoot is hibernated or without a
        control plane. A force deletion waits for the shoot once, for a few seconds.
        """

    @property
    def garden(self) -> Client:
        """The API server of the garden; raises ConfigurationError without access.

        Needs `injectGardenKubeconfig: true` in the registration of the extension.
        """

    def check(self) -> None:
        """Check that the call may continue; call this before each step with an external effect.

        `save`, `secret` and `credentials` check it as well, also when they return. Raises
        DeadlineExceeded, CallAbandoned or LeaseLost if the call must stop.
        """

    def remaining(self) -> float:
        """Return the seconds until the deadline, at least 0."""

    def event(self, reason: str, message: str, *, warning: bool = False) -> None:
        """Write a Kubernetes event about the object; a failure is only logged."""

    def save(self, obj: Object) -> None:
        """Write the status of `obj` before the call returns (an id, before the next step).

        Raises ApiError if the API server does not store all of it, as with an older CRD.
        """

    def secret(self, name: str, namespace: str) -> Raw:
        """Return a Secret that the object needs, such as its credentials.

        If the Secret is gone, an object that is being deleted gets the state that this process last
        read for it; a restart loses it. Raises NotFound if there is none, and ApiError.
        """

    @overload
    def credentials(self, of: Object | CredentialsReference, key: str, /) -> str: ...
    @overload
    def credentials(
        self, of: Object | CredentialsReference, key: str, second: str, /, *more: str
    ) -> tuple[str, ...]: ...
    def credentials(
        self, of: Object | CredentialsReference, key: str, /, *more: str
    ) -> str | tuple[str, ...]:
        """Return the text of one data key in a Secret, or the texts of several, like `secret`.

        The Secret is that of an object (`credentials_of`), or the one of a reference.

        Raises ConfigurationError, which names the Secret and the key and contains no text, if one
        of them is missing, empty or no text, and ApiError. Do not write the texts to a status, a
        log or a message.
        """

    def delete_seed_objects(self, groups: Iterable[SeedObjects]) -> None:
        """Delete these objects in the object's namespace and remove the declared finalizers.

        Raises ActuatorError, which names the remaining objects and the cause that blocks them.
        """


class Actuator(ABC, Generic[K, C]):
    """The operations of one kind of extension, for objects of class K configured by class C.

    C is the class of the configuration in spec.providerConfig (for a Worker: of its pools), which
    `Context.config` returns; `actuator docs` and `actuator validate` know it. Without C, or with
    None, an object with a configuration is refused; with `Raw`, it is read as it is.

    All operations are plain, blocking calls. The framework may repeat each after any crash, so they
    must be idempotent. Return when done; otherwise raise ActuatorError (with codes), RequeueAfter,
    or any other exception. An actuator writes to `obj.status`; the framework owns finalizers,
    lastOperation and lastError.
    """

    seed_objects: Sequence[SeedObjects] = ()
    """Objects that the default force_delete removes from the shoot's namespace in the seed."""

    permissions: Sequence[Permission] = ()
    """API access of this actuator besides its own kind (for `actuator rbac`)."""

    watches: Sequence[Any] = ()
    """Additional triggers: `generic.watches(...)`, `generic.owns(...)`."""

    leaves_nothing: bool = False
    """Declares that nothing exists outside the seed; then do not override external_resources."""

    finalizer: str = ""
    """Replaces the kind's finalizer; each Extension type has "extensions.gardener.cloud/NAME"."""

    of: type[K] | None = None
    """K, for classes that cannot be declared as Actuator[K]: wrappers of any actuator."""

    if not TYPE_CHECKING:  # type checkers know the constructor of each subclass

        def __new__(cls, *_args: Any, **_named: Any) -> Self:
            """Create an actuator. Raises TypeError for a missing operation, with a misspelt one."""
            _check_complete(cls)
            if (_args or _named) and cls.__init__ is object.__init__:
                raise TypeError(f"{cls.__name__}() takes no arguments; define __init__ for them")
            return super().__new__(cls)

    def validate(self, ctx: Context[C], obj: K, cluster: Cluster, /) -> Iterable[FieldProblem]:
        """Return the problems of `obj` besides those of its configuration; none by default.

        Called before reconcile and restore, with a valid configuration; a problem stops both. The
        status then reports ERR_CONFIGURATION_PROBLEM, unless a problem is internal (Gardener
        documentation, "Infrastructure", ConfigValidator).
        """
        return ()

    @abstractmethod
    def reconcile(self, ctx: Context[C], obj: K, cluster: Cluster, /) -> Result | None:
        """Create or update the resources that `obj.spec` requests; report them in `obj.status`."""

    @abstractmethod
    def delete(self, ctx: Context[C], obj: K, cluster: Cluster, /) -> None:
        """Delete every resource that reconcile created; an already deleted one is success."""

    def restore(self, ctx: Context[C], obj: K, cluster: Cluster, /) -> Result | None:
        """Reconcile on the destination seed, starting from `obj.status.state`."""
        return self.reconcile(ctx, obj, cluster)

    def migrate(self, ctx: Context[C], obj: K, cluster: Cluster, /) -> None:
        """Stop this seed from managing the resources; keep the resources themselves."""
        return None

    def force_delete(self, ctx: Context[C], obj: K, cluster: Cluster, /) -> None:
        """Remove everything of the extension from the seed; external resources may remain.

        Must not need a working cloud, nor the shoot's API server (Gardener documentation, "Force
        Deletion").
        """
        ctx.delete_seed_objects(self.seed_objects)

    def external_resources(self, obj: K, /) -> Iterable[ExternalResource]:
        """Return the resources that may exist outside the seed, from `obj` alone, without I/O.

        By default, one of type "unknown" if the status has data of the provider.
        """
        if self.leaves_nothing:
            return
        status: Any = getattr(obj, "status", None)
        if getattr(status, "provider_status", None) or getattr(status, "state", None):
            yield ExternalResource(type="unknown")

    def cloud_account(self, ctx: Context[C], obj: K, cluster: Cluster, /) -> str:
        """Return the cloud account of the object's credentials, such as "123456789012".

        Called before reconcile and restore until the status has the account, in the condition
        CloudAccount: records of a deletion name it, also after the credentials are revoked. An
        error is logged, and asked again in the next reconcile. At most 253 printable characters,
        and no secret. By default "": unknown.
        """
        return ""

    def verifying_account(self) -> str:
        """Return the account of the credentials that `still_exists` uses; "" if unknown.

        At most 253 printable characters.
        `actuator orphans verify` refuses credentials of another account than the record's: there,
        every resource would appear to be gone.
        """
        return ""

    def still_exists(self, resource: ExternalResource, /) -> bool | None:
        """Return whether an orphaned resource still exists; None if that cannot be determined.

        `actuator orphans verify` calls it, long after the object and its Secret are gone, with the
        credentials of the user who runs the command. Raises ActuatorError if the provider cannot be
        reached.
        """
        return None


def _check_complete(cls: type[Actuator[Any]]) -> None:
    for name in sorted(cls.__abstractmethods__):
        known = {*dir(Actuator), *cls.__abstractmethods__}
        found = closest(name, set(dir(cls)) - known)
        remedy = f"rename {found} to {name}" if found else f"define {name}"
        place = place_of(getattr(cls, found or "", cls), cls)
        raise TypeError(f"{cls.__name__} has no method {name}; {remedy}{place}")


class WrappedActuator(Actuator[Any]):
    """Delegates to an inner actuator: a base class that changes one aspect of any actuator.

    It returns the inner actuator's values, also invalid ones: the framework checks them once.
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
        work: Callable[[Context[Any], Any, Cluster], T],
        ctx: Context[Any],
        obj: Any,
        cluster: Cluster,
    ) -> T:
        """Run the `work` of an operation, which is the inner actuator's method of that name."""
        return work(ctx, obj, cluster)

    def validate(self, ctx: Context[Any], obj: Any, cluster: Cluster, /) -> Iterable[FieldProblem]:
        """See Actuator."""
        return self.inner.validate(ctx, obj, cluster)

    def reconcile(self, ctx: Context[Any], obj: Any, cluster: Cluster, /) -> Result | None:
        """See Actuator."""
        return self._around("reconcile", self.inner.reconcile, ctx, obj, cluster)

    def delete(self, ctx: Context[Any], obj: Any, cluster: Cluster, /) -> None:
        """See Actuator."""
        return self._around("delete", self.inner.delete, ctx, obj, cluster)

    def restore(self, ctx: Context[Any], obj: Any, cluster: Cluster, /) -> Result | None:
        """See Actuator."""
        return self._around("restore", self.inner.restore, ctx, obj, cluster)

    def migrate(self, ctx: Context[Any], obj: Any, cluster: Cluster, /) -> None:
        """See Actuator."""
        return self._around("migrate", self.inner.migrate, ctx, obj, cluster)

    def force_delete(self, ctx: Context[Any], obj: Any, cluster: Cluster, /) -> None:
        """See Actuator."""
        return self._around("force_delete", self.inner.force_delete, ctx, obj, cluster)

    def external_resources(self, obj: Any, /) -> Iterable[ExternalResource]:
        """See Actuator."""
        return self.inner.external_resources(obj)

    def cloud_account(self, ctx: Context[Any], obj: Any, cluster: Cluster, /) -> str:
        """See Actuator."""
        return self.inner.cloud_account(ctx, obj, cluster)

    def verifying_account(self) -> str:
        """See Actuator."""
        return self.inner.verifying_account()

    def still_exists(self, resource: ExternalResource, /) -> bool | None:
        """See Actuator."""
        return self.inner.still_exists(resource)


def innermost(actuator: Actuator[Any]) -> Actuator[Any]:
    """Return the author's actuator, inside all wrappers."""
    while isinstance(actuator, WrappedActuator):
        actuator = actuator.inner
    return actuator


def object_class(actuator: Actuator[Any]) -> type[Object]:
    """Return the K of an Actuator[K]. Raises TypeError if the class does not declare it."""
    if actuator.of is not None:
        declared: type[Object] = actuator.of
        return declared
    found = _arguments(type(actuator)).get(K)
    if isinstance(found, type) and issubclass(found, Object):
        return found
    raise TypeError(
        f"{type(actuator).__name__} does not declare its kind; "
        "derive it from Actuator[KIND], for example Actuator[Infrastructure]"
    )


def config_class(actuator: Actuator[Any]) -> Any:
    """Return the C of an Actuator[K, C]: a class of configurations, Raw, or None."""
    found = _arguments(type(innermost(actuator))).get(C)
    return None if found in (Any, NoneType) or isinstance(found, type(C)) else found


def _origin(base: Any) -> Any:
    return get_origin(base) or base


@lru_cache(maxsize=256)
def _arguments(cls: type) -> dict[Any, Any]:
    """Return the values of K and C in a subclass of Actuator, also through generic bases."""
    found: dict[Any, Any] = {}
    bases = vars(cls).get("__orig_bases__", cls.__bases__)
    for base in sorted(bases, key=lambda base: _origin(base) is not Actuator):
        origin = _origin(base)
        if not (isinstance(origin, type) and issubclass(origin, Actuator)):
            continue
        given = dict(zip(getattr(origin, "__parameters__", ()), get_args(base), strict=False))
        inherited = {K: K, C: C} if origin is Actuator else _arguments(origin)
        for parameter, value in inherited.items():
            if found.get(parameter, Any) is Any or isinstance(found[parameter], type(C)):
                found[parameter] = given.get(value, value)
    return found


def kind_of(actuator: Actuator[Any]) -> Kind:
    """Return the kind that an actuator serves, with its own finalizer if it has one.

    Raises TypeError if the class does not declare its kind.
    """
    kind = object_class(actuator).KIND
    return attrs.evolve(kind, finalizer=actuator.finalizer or kind.finalizer)
