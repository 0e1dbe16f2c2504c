"""What every Kubernetes object, and every Gardener extension object, has in common.

Shapes only: metadata, the inlined DefaultSpec and DefaultStatus, lastOperation, lastError and
conditions (Gardener documentation, "Extension contract"), and `Kind`, the data that turns a
class into something the one reconciler can run. Reading and writing JSON is `codec`'s business.

Metadata and specs are frozen, a status is mutable: an actuator changes only `obj.status`.
Every class keeps the fields it does not know in `extra`.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar

import attrs

__all__ = [
    "GROUP",
    "VERSION",
    "Base64",
    "ClusterNeed",
    "Column",
    "Condition",
    "ConditionedStatus",
    "DefaultSpec",
    "DefaultStatus",
    "ForceSource",
    "Kind",
    "LastError",
    "LastOperation",
    "LastOperationState",
    "LastOperationType",
    "NamedResourceReference",
    "Object",
    "ObjectMeta",
    "OwnerReference",
    "Raw",
    "ReadyReasons",
    "ResourceReference",
    "Schema",
    "SecretReference",
    "format_time",
    "parse_time",
    "schema_of",
    "wire_name",
]

GROUP = "extensions.gardener.cloud"
VERSION = "v1alpha1"

Raw = dict[str, Any]
"""A raw JSON object (Kubernetes RawExtension): passed through, never looked into by us."""


class Base64(str):
    """Bytes as they stand on the wire; kept as text so that a round trip changes nothing."""

    __slots__ = ()

    @classmethod
    def encode_bytes(cls, data: bytes) -> Base64:
        """The wire form of `data`."""
        return cls(base64.b64encode(data).decode("ascii"))

    def decode_bytes(self) -> bytes:
        """The bytes. Raises ValueError (binascii.Error) when the text is no base64."""
        return base64.b64decode(self)


@attrs.frozen
class Schema:
    """What the CRD says of a field beyond its type; used as `Annotated[T, Schema(...)]`."""

    description: str = ""
    minimum: int | None = None
    maximum: int | None = None
    min_length: int | None = None
    default: str | None = None
    """What the API server writes where a user wrote nothing."""
    type: str | None = None  # for an annotation that does not say it: Any
    immutable: bool = False
    format: str | None = None
    required: bool = False


def parse_time(text: str) -> datetime:
    """A Kubernetes timestamp (RFC 3339, any fraction) as an aware datetime.

    Raises ValueError when the text is no timestamp.
    """
    head, dot, tail = text.partition(".")
    if dot:  # Go writes up to nine digits, Python reads six
        digits = tail[: len(tail) - len(tail.lstrip("0123456789"))]
        text = f"{head}.{digits[:6]}{tail[len(digits) :]}"
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"timestamp without a time zone: {text!r}")
    return moment


def format_time(moment: datetime) -> str:
    """An aware datetime as `metav1.Time` writes it: UTC, whole seconds, Z."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@attrs.frozen(kw_only=True)
class OwnerReference:
    """metav1.OwnerReference."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None
    extra: Raw = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class ObjectMeta:
    """metav1.ObjectMeta. Timestamps are the server's text (`parse_time` reads them)."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    generate_name: str = ""
    labels: dict[str, str] = attrs.field(factory=dict)
    annotations: dict[str, str] = attrs.field(factory=dict)
    finalizers: list[str] = attrs.field(factory=list)
    owner_references: list[OwnerReference] = attrs.field(factory=list)
    extra: Raw = attrs.field(factory=dict)


class LastOperationType(StrEnum):
    """What we write into lastOperation.type (core/v1beta1 LastOperationType)."""

    CREATE = "Create"
    RECONCILE = "Reconcile"
    DELETE = "Delete"
    MIGRATE = "Migrate"
    RESTORE = "Restore"


class LastOperationState(StrEnum):
    """What we, or others, write into lastOperation.state (core/v1beta1 LastOperationState)."""

    PROCESSING = "Processing"
    SUCCEEDED = "Succeeded"
    ERROR = "Error"
    FAILED = "Failed"
    PENDING = "Pending"
    ABORTED = "Aborted"


@attrs.frozen(kw_only=True)
class LastOperation:
    """core/v1beta1 LastOperation; gardenlet reads type, state and lastUpdateTime."""

    description: Annotated[str, Schema(required=True)] = ""
    last_update_time: Annotated[str, Schema(format="date-time", required=True)] = ""
    progress: Annotated[int, Schema(format="int32", required=True)] = 0
    state: Annotated[str, Schema(required=True)] = ""
    type: Annotated[str, Schema(required=True)] = ""
    extra: Raw = attrs.field(factory=dict)

    def is_(self, type: LastOperationType, state: LastOperationState) -> bool:
        """Whether this is that operation in that state."""
        return self.type == type and self.state == state


@attrs.frozen(kw_only=True)
class LastError:
    """core/v1beta1 LastError; `task_id` is gardenlet's alone."""

    description: Annotated[str, Schema(required=True)] = ""
    task_id: str | None = attrs.field(default=None, metadata={"wire": "taskID"})
    codes: list[str] = attrs.field(factory=list)
    last_update_time: Annotated[str | None, Schema(format="date-time")] = None
    extra: Raw = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Condition:
    """core/v1beta1 Condition; status is True, False, Unknown or Progressing."""

    type: Annotated[str, Schema(required=True)] = ""
    status: Annotated[str, Schema(required=True)] = ""
    reason: Annotated[str, Schema(required=True)] = ""
    message: Annotated[str, Schema(required=True)] = ""
    last_transition_time: Annotated[str | None, Schema(format="date-time", required=True)] = None
    last_update_time: Annotated[str | None, Schema(format="date-time", required=True)] = None
    codes: list[str] = attrs.field(factory=list)
    extra: Raw = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class SecretReference:
    """corev1.SecretReference."""

    name: str = ""
    namespace: str = ""
    extra: Raw = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class ResourceReference:
    """autoscaling/v1 CrossVersionObjectReference, as status.resources uses it."""

    kind: Annotated[str, Schema(required=True)] = ""
    name: Annotated[str, Schema(required=True)] = ""
    api_version: str = ""
    extra: Raw = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class NamedResourceReference:
    """An entry of status.resources: what control plane migration has to carry along."""

    name: Annotated[str, Schema(required=True)] = ""
    resource_ref: Annotated[ResourceReference, Schema(required=True)] = attrs.field(
        factory=ResourceReference
    )
    extra: Raw = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class DefaultSpec:
    """Inlined in the spec of every extension kind."""

    type: Annotated[str, Schema(required=True)] = ""
    class_: Annotated[str | None, Schema(immutable=True)] = attrs.field(
        default=None, metadata={"wire": "class"}
    )
    provider_config: Raw | None = None
    extra: Raw = attrs.field(factory=dict)


@attrs.define(kw_only=True)
class DefaultStatus:
    """Inlined in the status of every extension kind. Mutable: an actuator writes into it.

    lastOperation, lastError and observedGeneration belong to the reconciler.
    """

    provider_status: Raw | None = None
    conditions: list[Condition] = attrs.field(factory=list)
    last_error: LastError | None = None
    last_operation: LastOperation | None = None
    observed_generation: Annotated[int | None, Schema(format="int64")] = None
    state: Raw | None = None
    resources: list[NamedResourceReference] = attrs.field(factory=list)
    extra: Raw = attrs.field(factory=dict)


@attrs.define(kw_only=True)
class ConditionedStatus:
    """Inlined in the status of kinds outside Gardener: conditions say it all (`Kind.ready`).

    The condition Ready and observedGeneration belong to the reconciler.
    """

    conditions: list[Condition] = attrs.field(factory=list)
    observed_generation: Annotated[int | None, Schema(format="int64")] = None
    extra: Raw = attrs.field(factory=dict)


class ClusterNeed(StrEnum):
    """Whether an object of a kind has a Cluster, named like its namespace."""

    REQUIRED = "required"
    IN_SHOOT_NAMESPACE = "in-shoot-namespace"
    NEVER = "never"


class ForceSource(StrEnum):
    """Where the force-deletion annotation of a kind is read."""

    SHOOT = "shoot"
    OBJECT = "object"
    OBJECT_LITERAL = "object-literal"
    """On the object, and only the literal "true" counts (Bastion)."""
    NONE = "none"


@attrs.frozen
class Column:
    """A printer column of the CRD."""

    name: str
    json_path: str
    type: str = "string"


@attrs.frozen(kw_only=True)
class ReadyReasons:
    """What the condition Ready gives as its reason: one CamelCase word for each outcome.

    An ActuatorError with a reason of its own says that instead (Kubernetes documentation, "API
    Conventions", typical status properties).
    """

    succeeded: str = "Succeeded"
    failed: str = "Failed"
    deletion_failed: str = "DeletionFailed"
    given_up: str = "DeletionFailedPermanently"


@attrs.frozen(kw_only=True)
class Kind:
    """What the one reconciler has to know of a kind; data, no behaviour.

    `timeout` is the time in seconds one call of an actuator may take.
    """

    name: str
    plural: str
    finalizer: str
    group: str = GROUP
    version: str = VERSION
    short_names: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    namespaced: bool = True
    timeout: float = 180.0
    cluster: ClusterNeed = ClusterNeed.REQUIRED
    skips_failed_shoot: bool = True
    force_from: ForceSource = ForceSource.SHOOT
    migratable: bool = True
    """Whether the kind knows migrate and restore."""
    has_operation_annotation: bool = True
    """Whether Gardener's operation annotation asks for work; else every change of the spec does."""
    ready: ReadyReasons | None = None
    """Set for kinds that report by a condition Ready instead of lastOperation and lastError."""

    @property
    def api_version(self) -> str:
        """`group/version`."""
        return f"{self.group}/{self.version}"


@attrs.define(kw_only=True)
class Object:
    """An object of a custom resource; a subclass adds `KIND`, `spec` and `status`."""

    KIND: ClassVar[Kind]

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    extra: Raw = attrs.field(factory=dict)

    @property
    def key(self) -> str:
        """`namespace/name`, or the name alone where there is no namespace."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


def wire_name(field: attrs.Attribute[Any]) -> str:
    """The field's name on the wire: camelCase, or what its metadata says."""
    explicit = field.metadata.get("wire")
    if isinstance(explicit, str):
        return explicit
    head, *rest = field.name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def schema_of(annotation: object) -> Schema | None:
    """The Schema inside an `Annotated[...]`, or None."""
    metadata: tuple[object, ...] = getattr(annotation, "__metadata__", ())
    return next((item for item in metadata if isinstance(item, Schema)), None)
