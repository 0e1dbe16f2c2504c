"""Headers: the part of an object that the store keeps decoded, for predicates and decisions.

Requests, headers and events are plain data, the vocabulary that store, informer, predicates and
controllers share. Headers are small, since there are tens of thousands: repeated strings are
interned, and empty mappings are shared.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from sys import intern
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

import attrs
from msgspec import Struct, field
from msgspec.structs import replace

from actuator.cluster import Cluster, ClusterState, Verdict
from actuator.codec import decode
from actuator.errors import DecodeError
from actuator.meta import Raw

DELETION_BLOCKED = "DeletionBlocked"
"""The type of the condition that is True while a deletion is blocked."""

_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_SAYS_FAILING = frozenset({(DELETION_BLOCKED, "True")})
_NONE: Mapping[str, str] = MappingProxyType({})
H = TypeVar("H", bound="Header")


class Request(NamedTuple):
    """The key of an object, and of the work on it; it carries no event."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Owner(NamedTuple):
    """An owner of an object."""

    group: str
    kind: str
    name: str
    uid: str
    is_controller: bool


class Header(Struct, frozen=True, gc=False):
    """The part of an object that predicates and decisions read, without decoding the rest."""

    uid: str
    resource_version: int
    generation: int
    deletion_timestamp: str | None
    finalizers: tuple[str, ...]
    annotations: Mapping[str, str]
    """The annotations without kubectl's copy of the object, which may hold a Secret's content."""
    type: str
    class_: str
    last_operation: tuple[str, str] | None
    """The type and state of lastOperation."""
    has_error: bool
    labels: Mapping[str, str] = _NONE
    secret: Request | None = None
    """The Secret with the credentials: spec.secretRef, or spec.credentialsRef."""
    owners: tuple[Owner, ...] = ()
    conditions: tuple[tuple[str, str], ...] = ()
    """The type and status of each condition."""
    cause: str = ""
    """The first code of lastError, or else the reason of the condition DeletionBlocked."""
    unreadable: bool = False
    """Whether parts of the object are nested too deep to be read (`actuator.codec.CUT`)."""

    @property
    def succeeded(self) -> bool:
        """Whether the last operation of any type succeeded."""
        return self.last_operation is not None and self.last_operation[1] == "Succeeded"

    @property
    def is_untouched(self) -> bool:
        """Whether no controller has reported or guarded anything, as extensions do at once."""
        reported = self.last_operation or self.has_error or self.conditions
        return not reported and not self.finalizers

    @property
    def is_failing(self) -> bool:
        """Whether the last attempt failed, according to lastError or a condition of the object."""
        return self.has_error or not _SAYS_FAILING.isdisjoint(self.conditions)


class ClusterHeader(Header, frozen=True, gc=False):
    """The header of a Cluster."""

    verdict: Verdict = field(default_factory=Verdict)


class EventType(StrEnum):
    """The event types of a watch."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Event(Struct, Generic[H], frozen=True):
    """A change of an object; `own` if the answer to our own write already reported it."""

    type: EventType
    request: Request
    old: H | None
    new: H | None
    own: bool = False
    late: bool = False
    """Whether the store already had a newer state: `old` is then not the state before this one."""
    relisted: bool = False
    """Whether a list showed it, and not a watch: the states in between are unknown."""
    last: bytes = b""
    """The last known JSON of a deleted object."""

    @property
    def went_back(self) -> bool:
        """Whether etcd may have been restored to a state before the last known one."""
        old = self.old
        new = self.new
        if new is None or not self.relisted:
            return False
        if old is None or new.resource_version < old.resource_version:
            return True
        return old.deletion_timestamp is not None and new.deletion_timestamp is None


def request_of(obj: Raw) -> Request:
    """Return the key of an object."""
    meta = as_dict(obj.get("metadata"))
    return Request(intern(str(meta.get("namespace") or "")), str(meta.get("name") or ""))


def header(obj: Raw) -> Header:
    """Return the header of an object from the API server, complete or metadata only."""
    return Header(**_fields(obj))


def cluster_header(obj: Raw) -> ClusterHeader:
    """Return the header of a Cluster; one that cannot be decoded has the verdict UNREADABLE."""
    try:
        verdict = decode(Cluster, obj).verdict()
    except DecodeError:
        verdict = Verdict(ClusterState.UNREADABLE)
    return ClusterHeader(**_fields(obj), verdict=verdict)


def as_unreadable(header: H) -> H:
    """Return the header marked as unreadable; a Cluster can still force a deletion."""
    changes: dict[str, Any] = {"unreadable": True}
    if isinstance(header, ClusterHeader):
        changes["verdict"] = attrs.evolve(header.verdict, state=ClusterState.UNREADABLE)
    return replace(header, **changes)


def _fields(obj: Raw) -> dict[str, Any]:
    meta = as_dict(obj.get("metadata"))
    spec = as_dict(obj.get("spec"))
    status = as_dict(obj.get("status"))
    return {
        "uid": uid_of(meta),
        "resource_version": version_of(meta),
        "generation": _int(meta.get("generation")),
        "deletion_timestamp": meta.get("deletionTimestamp"),
        "finalizers": tuple(intern(f) for f in meta.get("finalizers") or ()),
        "annotations": _texts(meta.get("annotations")),
        "type": intern(_text(spec.get("type"))),
        "class_": intern(_text(spec.get("class"))),
        "last_operation": _operation(status.get("lastOperation")),
        "has_error": status.get("lastError") is not None,
        "labels": _texts(meta.get("labels")),
        "secret": _secret(spec, _text(meta.get("namespace"))),
        "owners": tuple(_owners(meta.get("ownerReferences"))),
        "conditions": _conditions(status.get("conditions")),
        "cause": intern(_cause(status)),
    }


def _texts(found: object) -> Mapping[str, str]:
    kept = {intern(k): v for k, v in as_dict(found).items() if k != _APPLIED}
    return kept or _NONE


def _operation(found: object) -> tuple[str, str] | None:
    if not isinstance(found, dict):
        return None
    return intern(_text(found.get("type"))), intern(_text(found.get("state")))


def _secret(spec: dict[str, Any], namespace: str) -> Request | None:
    found = as_dict(spec.get("secretRef") or spec.get("credentialsRef"))
    name = _text(found.get("name"))
    if not name or found.get("kind", "Secret") != "Secret":
        return None
    return Request(intern(_text(found.get("namespace")) or namespace), intern(name))


def _owners(references: object) -> Iterator[Owner]:
    for reference in references if isinstance(references, list) else ():
        if isinstance(reference, dict):
            group = str(reference.get("apiVersion") or "").rpartition("/")[0]
            kind, name, uid = (str(reference.get(field)) for field in ("kind", "name", "uid"))
            is_controller = reference.get("controller") is True
            yield Owner(intern(group), intern(kind), intern(name), intern(uid), is_controller)


def _conditions(found: object) -> tuple[tuple[str, str], ...]:
    dicts = (c for c in found if isinstance(c, dict)) if isinstance(found, list) else ()
    return tuple((intern(_text(c.get("type"))), intern(_text(c.get("status")))) for c in dicts)


def _cause(status: dict[str, Any]) -> str:
    codes = as_dict(status.get("lastError")).get("codes")
    if isinstance(codes, list) and codes:
        return _text(codes[0])
    conditions = status.get("conditions")
    for found in map(as_dict, conditions if isinstance(conditions, list) else ()):
        if (found.get("type"), found.get("status")) == (DELETION_BLOCKED, "True"):
            return _text(found.get("reason"))
    return ""


def as_dict(value: object) -> dict[str, Any]:
    """Return the value if it is a JSON object, else {}: other clients may write any type."""
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0


def uid_of(meta: Raw) -> str:
    """Return metadata.uid, or "" without one."""
    return _text(meta.get("uid"))


def version_of(meta: Raw) -> int:
    """Return metadata.resourceVersion as a number, or 0 without one."""
    text = str(meta.get("resourceVersion") or "0")
    return int(text) if text.isdecimal() else 0
