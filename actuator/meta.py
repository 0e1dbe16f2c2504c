"""The parts that all Kubernetes objects, and all Gardener extension objects, have in common.

Only shapes: metadata, the inlined DefaultSpec and DefaultStatus, lastOperation, lastError and
conditions (Gardener documentation, "Extension contract"), and `Kind`, the data with which the one
reconciler runs a class. Reading and writing JSON belongs to `codec`.

Metadata and specs are frozen, a status is mutable: an actuator changes only `obj.status`. Every
class keeps unknown fields in `extra` (`KeepsUnknownFields`).
"""

import base64
import re
from datetime import UTC, datetime
from enum import Enum, StrEnum, auto
from typing import Annotated, Any, ClassVar, Literal, TypedDict, Unpack

import attrs

GROUP = "extensions.gardener.cloud"
VERSION = "v1alpha1"

Raw = dict[str, Any]
"""A raw JSON object (Kubernetes RawExtension), passed through without interpretation."""


class Base64(str):
    """Base64 text as it is on the wire; kept as text so that a round trip changes nothing."""

    __slots__ = ()

    @classmethod
    def encode_bytes(cls, data: bytes) -> "Base64":
        """Return the base64 text of `data`."""
        return cls(base64.b64encode(data).decode("ascii"))

    def decode_bytes(self) -> bytes:
        """Return the bytes. Raises ValueError (binascii.Error) if the text is not base64."""
        return base64.b64decode(self)


MAX_KEYED = 128
_PAIR = re.compile(r"\\.", re.DOTALL)
_ATOM = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
"""An escape, or a class of characters."""
_SYNTAX = re.compile(
    r"\(\?(?!:|P<).?|[*+?}]\+|\{,\d*\}|\{(?:\d*,)?\d{4,}(?:,\d*)?\}", re.DOTALL
)  # of a pattern with x for each atom


def _check_pattern(_schema: "Schema", _field: "attrs.Attribute[str]", pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"Schema(pattern={pattern!r}): {error}; correct it") from None
    if found := _difference(pattern):
        raise ValueError(
            f"Schema(pattern={pattern!r}): {found} differs between Python and RE2, which the "
            "API server uses; write it without"
        )


def _difference(pattern: str) -> str:
    """Return the first part that RE2 refuses or reads in another way than Python, else ""."""
    for atom in _ATOM.findall(pattern):
        for pair in _PAIR.findall(atom):
            if (
                pair[1] in "sSZuUN123456789"
                or not pair.isascii()
                or (pair == r"\b" and pair != atom)
            ):
                return str(pair)
        if "[:" in _PAIR.sub("", atom)[1:]:
            return "[:"
    found = _SYNTAX.search(_ATOM.sub("x", pattern))
    return found[0] if found else ""


@attrs.frozen(kw_only=True)
class Schema:
    """Schema of a field, or of a list's entries, beyond the type: `Annotated[T, Schema(...)]`.

    The API server checks it for the fields of custom resources, `actuator.checking` for those of
    configurations; both use `actuator.schema`.
    """

    description: str = ""
    """Replaces the text below the field."""
    minimum: int | None = None
    maximum: int | None = None
    min_length: int | None = None
    """Characters of a text, entries of a list or a map."""
    max_length: int | None = None
    pattern: str = attrs.field(default="", validator=_check_pattern)
    """A regular expression for the whole text, in the syntax that RE2 and Python share."""
    example: str | int | float | None = None
    default: str | None = None
    """The value that the API server sets if the user sets none."""
    type: str | None = None  # for an annotation without a type: Any
    immutable: bool | Literal["always"] = attrs.field(
        default=False, validator=attrs.validators.in_((False, True, "always"))
    )
    """True: an empty field can be set once, a value cannot be changed. "always": neither. A value
    that equals the default is no change."""
    key: str = ""
    """The field that identifies an entry of a list of objects, by its name on the wire. No two
    entries have the same; fields of entries may be immutable. Needs a max_length of at most 128."""
    format: str | None = None
    """Checked are "cidr" (a range without host bits), "ip", "quantity" (a text, or a number for the
    type int | str or int | float | str), "duration" (of Go), "dns-label", "dns-name" and "url". In
    an own kind, a list of ranges or addresses needs a max_length. No message has a value of format
    "password"."""
    required: bool = False
    """Whether the user must set the field although it has a default in Python."""

    def __attrs_post_init__(self) -> None:
        """Raise ValueError for a key whose comparisons could cost too much."""
        if self.key and not 0 < (self.max_length or 0) <= MAX_KEYED:
            text = f"set a max_length of at most {MAX_KEYED}, because entries are compared"
            raise ValueError(f"Schema(key={self.key!r}): {text}")


def value_at(data: object, *path: str) -> Any:
    """Return the value at `path`, or None if a step of the path is missing."""
    for step in path:
        if not isinstance(data, dict):
            return None
        data = data.get(step)
    return data


def conditions_in(status: object) -> dict[str, Raw]:
    """Return the conditions of a status as JSON, by type, without values of another form."""
    found = value_at(status, "conditions")
    listed = found if isinstance(found, list) else []
    return {str(item.get("type")): item for item in listed if isinstance(item, dict)}


def parse_time(text: str) -> datetime:
    """Return a Kubernetes timestamp (RFC 3339) as an aware datetime, rounded down to microseconds.

    Raises ValueError if the text is not a timestamp.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"timestamp without a time zone: {text!r}")
    return moment


def format_time(moment: datetime) -> str:
    """Format an aware datetime like `metav1.Time`: UTC, whole seconds, Z."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@attrs.define(kw_only=True)
class KeepsUnknownFields:
    """Base class of shapes that keep unknown fields, so that they survive a round trip."""

    extra: Raw = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class OwnerReference(KeepsUnknownFields):
    """metav1.OwnerReference."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


@attrs.frozen(kw_only=True)
class ObjectMeta(KeepsUnknownFields):
    """metav1.ObjectMeta. Timestamps are the API server's text (see `parse_time`)."""

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


class LastOperationType(StrEnum):
    """The framework's values of lastOperation.type (core/v1beta1 LastOperationType)."""

    CREATE = "Create"
    RECONCILE = "Reconcile"
    DELETE = "Delete"
    MIGRATE = "Migrate"
    RESTORE = "Restore"


class LastOperationState(StrEnum):
    """The values of lastOperation.state (core/v1beta1 LastOperationState)."""

    PROCESSING = "Processing"
    SUCCEEDED = "Succeeded"
    ERROR = "Error"
    FAILED = "Failed"
    PENDING = "Pending"
    ABORTED = "Aborted"


@attrs.frozen(kw_only=True)
class LastOperation(KeepsUnknownFields):
    """core/v1beta1 LastOperation; gardenlet reads type, state and lastUpdateTime."""

    description: Annotated[str, Schema(required=True)] = ""
    last_update_time: Annotated[str, Schema(format="date-time", required=True)] = ""
    progress: Annotated[int, Schema(format="int32", required=True)] = 0
    state: Annotated[str, Schema(required=True)] = ""
    type: Annotated[str, Schema(required=True)] = ""

    def is_(self, type: LastOperationType, state: LastOperationState) -> bool:
        """Whether the operation has this type and state."""
        return self.type == type and self.state == state


@attrs.frozen(kw_only=True)
class LastError(KeepsUnknownFields):
    """core/v1beta1 LastError; only gardenlet uses `task_id`."""

    description: Annotated[str, Schema(required=True)] = ""
    task_id: str | None = attrs.field(default=None, metadata={"wire": "taskID"})
    codes: list[str] = attrs.field(factory=list)
    last_update_time: Annotated[str | None, Schema(format="date-time")] = None


@attrs.frozen(kw_only=True)
class Condition(KeepsUnknownFields):
    """core/v1beta1 Condition; status is True, False, Unknown or Progressing."""

    type: Annotated[str, Schema(required=True)] = ""
    status: Annotated[str, Schema(required=True)] = ""
    reason: Annotated[str, Schema(required=True)] = ""
    message: Annotated[str, Schema(required=True)] = ""
    last_transition_time: Annotated[str | None, Schema(format="date-time", required=True)] = None
    last_update_time: Annotated[str | None, Schema(format="date-time", required=True)] = None
    codes: list[str] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class SecretReference(KeepsUnknownFields):
    """corev1.SecretReference."""

    name: str = ""
    namespace: str = ""


@attrs.frozen(kw_only=True)
class ObjectReference(KeepsUnknownFields):
    """corev1.ObjectReference."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


CredentialsReference = SecretReference | ObjectReference


def credentials_of(obj: "Object") -> CredentialsReference:
    """Return the reference of an object to its credentials: spec.secretRef or spec.credentialsRef.

    For a kind without one, such as Extension, it is the Secret `cloudprovider` of the shoot.
    """
    spec = getattr(obj, "spec", None)
    for field in ("secret_ref", "credentials_ref"):
        ref = getattr(spec, field, None)
        if isinstance(ref, CredentialsReference):
            return ref
    return SecretReference(name="cloudprovider", namespace=obj.metadata.namespace)


@attrs.frozen(kw_only=True)
class ResourceReference(KeepsUnknownFields):
    """autoscaling/v1 CrossVersionObjectReference, as status.resources uses it."""

    kind: Annotated[str, Schema(required=True)] = ""
    name: Annotated[str, Schema(required=True)] = ""
    api_version: str = ""


@attrs.frozen(kw_only=True)
class NamedResourceReference(KeepsUnknownFields):
    """An entry of status.resources: an object that control plane migration transfers."""

    name: Annotated[str, Schema(required=True)] = ""
    resource_ref: Annotated[ResourceReference, Schema(required=True)] = attrs.field(
        factory=ResourceReference
    )


@attrs.frozen(kw_only=True)
class DefaultSpec(KeepsUnknownFields):
    """Inlined in the spec of every extension kind."""

    type: Annotated[str, Schema(required=True)] = ""
    class_: Annotated[str | None, Schema(immutable=True)] = attrs.field(
        default=None, metadata={"wire": "class"}
    )
    provider_config: Raw | None = None


@attrs.define(kw_only=True)
class DefaultStatus(KeepsUnknownFields):
    """Inlined in the status of every extension kind. Mutable: an actuator writes to it.

    The reconciler owns lastOperation, lastError and observedGeneration.
    """

    OWNS_STATE: ClassVar[bool] = True
    """Whether the extension writes `state`; gardenlet writes that of a Worker."""

    provider_status: Raw | None = None
    conditions: list[Condition] = attrs.field(factory=list)
    last_error: LastError | None = None
    last_operation: LastOperation | None = None
    observed_generation: Annotated[int | None, Schema(format="int64")] = None
    state: Raw | None = None
    resources: list[NamedResourceReference] = attrs.field(factory=list)


@attrs.define(kw_only=True)
class ConditionedStatus(KeepsUnknownFields):
    """Inlined in the status of kinds outside Gardener, which report only conditions (`Kind.ready`).

    The reconciler owns the condition Ready and observedGeneration.
    """

    conditions: list[Condition] = attrs.field(factory=list)
    observed_generation: Annotated[int | None, Schema(format="int64")] = None


class ClusterNeed(StrEnum):
    """Whether an object of a kind has a Cluster, named like its namespace."""

    REQUIRED = "required"
    IN_SHOOT_NAMESPACE = "in-shoot-namespace"
    NEVER = "never"


class ForceSource(StrEnum):
    """The object from which a kind's force-deletion annotation is read."""

    SHOOT = "shoot"
    OBJECT = "object"
    OBJECT_LITERAL = "object-literal"
    """The object itself, and only with the literal value "true" (Bastion)."""
    NONE = "none"


class Trigger(Enum):
    """Another object whose changes trigger an object, as in Gardener's own controllers."""

    CLUSTER = auto()
    SECRET = auto()
    """The Secret in spec.secretRef."""
    NAMESPACE = auto()
    """The namespace of the shoot."""


class Behaviour(Enum):
    """Work that the framework does for a kind around every actuator (Gardener's library does)."""

    GUARDS_SECRET = auto()
    """Our finalizer is on the Secret in spec.secretRef while the object needs it."""
    NEEDS_SECRET_TO_DELETE = auto()
    """As above, and an object whose Secret is deleted anyway is not cleaned up."""
    REMEMBERS_CREATION = auto()
    """Whether the external resource was created is in a condition of the object."""
    WRITES_USER_DATA = auto()
    """The user data of a result is written into a Secret that the status names."""


@attrs.frozen
class Column:
    """A printer column of the CRD."""

    name: str
    json_path: str
    type: str = "string"


AGE = Column("Age", ".metadata.creationTimestamp", "date")


@attrs.frozen(kw_only=True)
class ReadyReasons:
    """The reasons of the condition Ready: one CamelCase word for each outcome.

    The reason of an ActuatorError takes precedence (Kubernetes documentation, "API Conventions",
    typical status properties).
    """

    succeeded: str = "Succeeded"
    failed: str = "Failed"
    deletion_failed: str = "DeletionFailed"
    given_up: str = "DeletionFailedPermanently"


@attrs.frozen(kw_only=True)
class Kind:
    """The properties of a kind that the one reconciler needs; data, no behaviour.

    `timeout` is the maximum duration of one actuator call, in seconds.
    """

    name: str
    group: str = GROUP
    version: str = VERSION
    plural: str = attrs.field()
    finalizer: str = attrs.field()
    """By default GROUP/NAME; "" for kinds without an actuator."""
    short_names: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    namespaced: bool = True
    timeout: float = 180.0
    cluster: ClusterNeed = ClusterNeed.REQUIRED
    skips_failed_shoot: bool = True
    force_from: ForceSource = ForceSource.SHOOT
    migratable: bool = True
    """Whether the kind supports migrate and restore."""
    has_operation_annotation: bool = True
    """Whether Gardener's operation annotation triggers work; else each change of the spec."""
    outcomes_are_watched: bool = False
    """Whether gardenlet watches for an outcome instead of polling: it misses one that is written
    while the operation annotation is on the object (Gardener, `pkg/controllerutils/predicate`)."""
    triggers: tuple[Trigger, ...] = ()
    behaviour: Behaviour | None = None
    ready: ReadyReasons | None = None
    """Set for kinds that report a condition Ready instead of lastOperation and lastError."""

    @plural.default
    def _plural(self) -> str:
        return plural_of(self.name)

    @finalizer.default
    def _finalizer(self) -> str:
        return f"{self.group}/{self.name.lower()}"

    @property
    def api_version(self) -> str:
        """`group/version`; only the version for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version


def plural_of(kind: str) -> str:
    """Return the plural of a kind that Kubernetes' naming implies: "policies" for Policy."""
    name = kind.lower()
    if name == "endpoints":
        return name
    if name.endswith(("s", "x", "ch")):
        return f"{name}es"
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return f"{name[:-1]}ies"
    return f"{name}s"


class OwnKindFields(TypedDict, total=False):
    """The fields of Kind that differ between kinds outside Gardener."""

    version: str
    plural: str
    finalizer: str
    short_names: tuple[str, ...]
    namespaced: bool
    timeout: float
    cluster: ClusterNeed
    skips_failed_shoot: bool
    force_from: ForceSource


def own_kind(
    name: str,
    group: str,
    *columns: Column,
    ready: ReadyReasons | None = ReadyReasons(),
    **more: Unpack[OwnKindFields],
) -> Kind:
    """Return a kind outside Gardener: without a shoot, triggered by each change of the spec.

    Its own annotation forces a deletion. The last columns are Ready and Reason, unless `ready` is
    None, and Age. `more` are other fields of Kind.
    """
    condition = '.status.conditions[?(@.type=="Ready")]'
    state = Column("Ready", f"{condition}.status"), Column("Reason", f"{condition}.reason")
    traits: dict[str, Any] = {
        "cluster": ClusterNeed.NEVER,
        "force_from": ForceSource.OBJECT,
        "skips_failed_shoot": False,
        "migratable": False,
        "has_operation_annotation": False,
        "columns": (*columns, *(state if ready else ()), AGE),
    }
    return Kind(name=name, group=group, ready=ready, **traits | {**more})


@attrs.define(kw_only=True)
class Object(KeepsUnknownFields):
    """An object of a custom resource; a subclass adds `KIND`, `spec` and `status`."""

    KIND: ClassVar[Kind]

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)

    @property
    def key(self) -> str:
        """`namespace/name`, or only the name if there is no namespace."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


def wire_name(field: "attrs.Attribute[Any]") -> str:
    """Return the field's JSON name: camelCase, or the name in its metadata."""
    explicit = field.metadata.get("wire")
    if isinstance(explicit, str):
        return explicit
    head, *rest = field.name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def schema_of(annotation: object) -> Schema | None:
    """Return the Schema in an `Annotated[...]`, or None."""
    metadata: tuple[object, ...] = getattr(annotation, "__metadata__", ())
    return next((item for item in metadata if isinstance(item, Schema)), None)
