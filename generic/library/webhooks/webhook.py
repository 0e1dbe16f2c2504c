"""Webhook: the declaration of one admission webhook, and the request that its handler receives.

Data only: `review` evaluates a request, `configurations` renders the declaration for the API server
(Kubernetes documentation, "Dynamic Admission Control"). Objects under deletion never reach a
handler, so that no webhook can block a deletion.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Generic, Literal, TypedDict, TypeVar, Unpack

import attrs

from actuator.cluster import Cluster
from actuator.codec import decode
from actuator.interface import Client, FieldProblem, Permission, resource_of, texts
from actuator.meta import Object

K = TypeVar("K", bound=Object)
Operation = Literal["CREATE", "UPDATE"]
FailurePolicy = Literal["Fail", "Ignore"]

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
MAX_TIMEOUT = 10
"""Seconds; gardenlet gives most of its requests not much more."""


class Denied(Exception):
    """Raised by a handler: the object is not admitted, for this reason, which the user sees."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@attrs.frozen(kw_only=True)
class AdmissionRequest(Generic[K]):
    """One request for admission of an object of class K."""

    operation: Operation
    new: K
    """The object to admit; a mutating handler changes it in place."""
    old: K | None
    """The stored object; None if it is created."""
    namespace: str
    subresource: str = ""
    dry_run: bool = False
    """Whether the API server stores nothing afterwards; a handler has no side effects anyway."""
    user: str = ""
    client: Client = attrs.field(repr=False)
    """Reads from the manager's cluster."""

    def cluster(self) -> Cluster:
        """Return the Cluster of the object's namespace; not for an object in a shoot.

        Raises ApiError and DecodeError.
        """
        return decode(Cluster, self.client.get(resource_of(Cluster.KIND), self.namespace))


Handler = Callable[[AdmissionRequest[K]], Iterable[FieldProblem] | None]
"""Admits the object by returning None or no problems. Raises Denied; any other exception is a
failure of the webhook, which its failure policy decides."""


READ_CLUSTER = resource_of(Cluster.KIND).permission("get")
"""The permission for `AdmissionRequest.cluster`."""


class WebhookTarget(StrEnum):
    """The cluster whose API server calls a webhook."""

    CLUSTER = "cluster"
    """The cluster of the manager: a seed, or the garden for admission."""
    SHOOT = "shoot"
    """Each shoot of the extension."""


def _check_name(_webhook: object, _field: object, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"webhook {name!r}: use at most 63 lower-case letters, digits and hyphens as its name"
        )


def _check_timeout(webhook: "Webhook", _field: object, seconds: int) -> None:
    if not 1 <= seconds <= MAX_TIMEOUT:
        raise ValueError(
            f"webhook {webhook.name}: timeout_seconds={seconds}; set 1 to {MAX_TIMEOUT} seconds"
        )


def _kinds(kinds: Iterable[type[Object]]) -> tuple[type[Object], ...]:
    return tuple(kinds)


def _operations(operations: Iterable[Operation]) -> tuple[Operation, ...]:
    return tuple(operations)


@attrs.frozen(kw_only=True)
class Webhook:
    """An admission webhook for objects of `kinds` that match every selector.

    A selector that is empty selects everything. Raises ValueError for an invalid name or timeout.
    """

    name: str = attrs.field(validator=_check_name)
    """One DNS label, unique in an extension: part of the path, of flags and of metrics."""
    kinds: Sequence[type[Object]] = attrs.field(converter=_kinds)
    handle: Handler[Any]
    mutating: bool
    failure_policy: FailurePolicy
    """Whether the API server refuses the object (Fail) or admits it (Ignore) if the webhook fails
    or cannot be reached."""
    target: WebhookTarget = WebhookTarget.CLUSTER
    operations: Sequence[Operation] = attrs.field(
        default=("CREATE", "UPDATE"), converter=_operations
    )
    subresource: str = ""
    """For example "scale"; its object is read as an instance of the class in `kinds`."""
    names: Sequence[str] = attrs.field(default=(), converter=texts)
    """The names of the objects."""
    namespace_labels: Mapping[str, str] = attrs.field(factory=dict)
    """Labels of the object's namespace, for example shoot.gardener.cloud/provider."""
    object_labels: Mapping[str, str] = attrs.field(factory=dict)
    conditions: Mapping[str, str] = attrs.field(factory=dict)
    """CEL expressions by name; the API server calls the webhook only if all are true (Kubernetes
    documentation, matchConditions)."""
    timeout_seconds: int = attrs.field(default=5, validator=_check_timeout)
    permissions: Sequence[Permission] = ()
    """API access of the handler, for `actuator rbac`; `READ_CLUSTER` for `request.cluster()`."""

    @property
    def never_refuses(self) -> bool:
        """Whether it only changes statuses, and a failure or a refusal of it is ignored.

        So a deletion that waits for a status is never blocked.
        """
        is_ignored = self.mutating and self.failure_policy == "Ignore"
        return self.subresource == "status" and is_ignored

    @property
    def path(self) -> str:
        """The path of its URL."""
        return f"/webhooks/{self.name}"


class WebhookFields(TypedDict, total=False):
    """The fields of a Webhook that have defaults."""

    target: WebhookTarget
    operations: Sequence[Operation]
    subresource: str
    names: Sequence[str]
    namespace_labels: Mapping[str, str]
    object_labels: Mapping[str, str]
    conditions: Mapping[str, str]
    timeout_seconds: int
    permissions: Sequence[Permission]


def mutates(
    *kinds: type[K], failure_policy: FailurePolicy, name: str = "", **more: Unpack[WebhookFields]
) -> Callable[[Handler[K]], Webhook]:
    """Declare the decorated function as a webhook that changes `request.new`.

    Its default name is that of the function. `more` are other fields of Webhook.
    """
    return _declare(kinds, failure_policy, name, True, more)


def validates(
    *kinds: type[K], failure_policy: FailurePolicy, name: str = "", **more: Unpack[WebhookFields]
) -> Callable[[Handler[K]], Webhook]:
    """Declare the decorated function as a webhook that admits or denies an object.

    It yields FieldProblems or raises Denied; changes to the object are ignored.
    """
    return _declare(kinds, failure_policy, name, False, more)


def _declare(
    kinds: Sequence[type[K]],
    failure_policy: FailurePolicy,
    name: str,
    mutating: bool,
    more: WebhookFields,
) -> Callable[[Handler[K]], Webhook]:
    def declared(handle: Handler[K]) -> Webhook:
        chosen = name or getattr(handle, "__name__", "").strip("_").replace("_", "-")
        return Webhook(
            name=chosen,
            kinds=kinds,
            handle=handle,
            mutating=mutating,
            failure_policy=failure_policy,
            **more,
        )

    return declared
