"""Documents: objects as JSON text, of which only the fields of a header are decoded.

A typed decoder reads these fields and skips the rest, which takes a tenth of the time of a complete
decode. It refuses fields of unexpected types, and text that only Python's decoder accepts (NaN,
lone surrogates): such an object is decoded completely. Both ways return the same header.

Not here: the definition of a header (`headers`), and complete decoding (`actuator.codec`).
"""

import json
from contextlib import suppress
from typing import Any, TypedDict

import msgspec

from actuator.codec import is_deep, read_json
from actuator.meta import Raw
from generic.kube.headers import as_dict, request_of, uid_of, version_of

_Text = str | None
_Texts = dict[str, str] | None


class _OwnerFields(TypedDict, total=False):
    apiVersion: _Text
    kind: _Text
    name: _Text
    uid: _Text
    controller: bool | None
    blockOwnerDeletion: bool | None


class _MetaFields(TypedDict, total=False):
    """All fields of ObjectMeta, because a Cluster with one field of a wrong type is unreadable."""

    name: _Text
    namespace: _Text
    uid: _Text
    resourceVersion: _Text
    generation: int | None
    creationTimestamp: _Text
    deletionTimestamp: _Text
    deletionGracePeriodSeconds: int | None
    generateName: _Text
    labels: _Texts
    annotations: _Texts
    finalizers: list[str] | None
    ownerReferences: list[_OwnerFields] | None


class _ReferenceFields(TypedDict, total=False):
    kind: _Text
    name: _Text
    namespace: _Text


class _OperationFields(TypedDict, total=False):
    type: _Text
    state: _Text


class _ConditionFields(TypedDict, total=False):
    type: _Text
    status: _Text


class _Status(TypedDict, total=False):
    lastOperation: _OperationFields | None
    lastError: dict[str, msgspec.Raw] | None
    conditions: list[_ConditionFields] | None


class _ShootMeta(TypedDict, total=False):
    annotations: _Texts


class _ShootFields(TypedDict, total=False):
    metadata: _ShootMeta | None
    status: _Status | None


_Spec = TypedDict(
    "_Spec",
    {
        "type": _Text,
        "class": _Text,
        "secretRef": _ReferenceFields | None,
        "credentialsRef": _ReferenceFields | None,
        "shoot": _ShootFields | None,
    },
    total=False,
)


class _ObjectFields(TypedDict, total=False):
    apiVersion: _Text
    kind: _Text
    metadata: _MetaFields
    spec: _Spec | None
    status: _Status | None


class _WatchEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


_EVENT = msgspec.json.Decoder(_WatchEvent)
_FIELDS = msgspec.json.Decoder(_ObjectFields)
_ENCODER = msgspec.json.Encoder()
_TEXT = msgspec.json.Decoder(msgspec.Raw)
_PARTS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class DecodedObject(dict[str, Any]):
    """A completely decoded object, with its source text."""

    def __init__(self, obj: Raw, text: bytes) -> None:
        super().__init__(obj)
        self.text = text


class Document:
    """An object from the API server: `fields` has at least the fields of a header."""

    __slots__ = ("_text", "fields", "meta", "request", "uid", "version")

    def __init__(self, fields: Raw, text: msgspec.Raw | None = None) -> None:
        """`text` is the JSON of the object; None if `fields` is the whole object."""
        self.fields = fields
        self._text = text
        self.request = request_of(fields)
        self.meta = as_dict(fields.get("metadata"))
        self.uid = uid_of(self.meta)
        self.version = version_of(self.meta)

    @classmethod
    def of(cls, obj: "Raw | Document") -> "Document":
        """Return the document of an object; the text of a DecodedObject is reused."""
        if isinstance(obj, Document):
            return obj
        if isinstance(obj, DecodedObject) and _is_plain(obj.text):
            with suppress(msgspec.MsgspecError):
                return cls(obj, _TEXT.decode(obj.text))
        return cls(obj)

    def encoded(self) -> bytes:
        """Return the whole object as JSON, without managedFields."""
        if self._text is None:
            self.meta.pop("managedFields", None)
            return json.dumps(self.fields, separators=(",", ":"), ensure_ascii=False).encode()
        text = bytes(self._text)
        if b'"managedFields"' not in text:
            return text
        parts = _PARTS.decode(text)
        if "metadata" not in parts:  # the name occurs elsewhere
            return text
        metadata = _PARTS.decode(parts["metadata"])
        metadata.pop("managedFields", None)
        buffer = bytearray(len(text))
        _ENCODER.encode_into({**parts, "metadata": metadata}, buffer)
        return bytes(buffer)  # `encode` would shrink a larger buffer, whose end stays unused


def read_event(line: bytes) -> tuple[str, Document]:
    """Return the type and the object of a line of a watch.

    Raises ValueError for text that is not JSON; KeyError, TypeError or AttributeError for JSON that
    is not an event.
    """
    try:
        event = _EVENT.decode(line)
        fields: Any = _FIELDS.decode(event.object)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        pass
    else:
        if _is_plain(line):
            return event.type, Document(fields, event.object)
    decoded = read_json(line)
    return decoded["type"], Document(decoded["object"])


def _is_plain(text: bytes) -> bool:
    """Whether a complete decode accepts the skipped parts, and cuts none of them.

    The typed decoder checks the syntax of what it skips, but neither the encoding nor the depth.
    """
    try:
        text.isascii() or text.decode()
    except UnicodeDecodeError:
        return False
    return not is_deep(text)
