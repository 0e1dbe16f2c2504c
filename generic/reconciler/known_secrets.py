"""KnownSecrets: what this process read for an object, for when the Secret goes before the object.

Guarantees: it is kept in memory alone, never in a log, a repr or the API; content that several
objects have in common is kept once; an object that is gone, or let go of, is forgotten
(`forget`, by the reconciler). A restart forgets all.

Reading, and when the last known one is good enough, is not decided here (`invoker`).
"""

from __future__ import annotations

import hashlib
import json
import threading
from weakref import WeakValueDictionary

import attrs

from actuator.meta import Raw
from generic.kube.headers import Request

__all__ = ["KnownSecrets"]

_BULK = "managedFields"
"""What nobody who uses a Secret asks for."""


@attrs.frozen(repr=False, eq=False)
class _Content:
    """A Secret as JSON; shared, and gone with the last object that it was read for."""

    raw: bytes


@attrs.frozen(repr=False)
class _Object:
    """The Secrets of one object, by namespace and name."""

    uid: str
    secrets: dict[Request, _Content] = attrs.field(factory=dict)


class KnownSecrets:
    """The Secrets that were read for the objects of one controller. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._objects: dict[Request, _Object] = {}
        self._contents: WeakValueDictionary[bytes, _Content] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._objects)

    def remember(self, request: Request, uid: str, secret: Raw) -> None:
        """Keeps a Secret that was read for the object of that uid, in place of an older state."""
        meta = {name: value for name, value in secret["metadata"].items() if name != _BULK}
        raw = json.dumps({**secret, "metadata": meta}, separators=(",", ":")).encode()
        key = Request(meta["namespace"], meta["name"])
        with self._lock:
            known = self._objects.get(request)
            if known is None or known.uid != uid:
                known = self._objects[request] = _Object(uid)
            digest = hashlib.sha256(raw).digest()
            known.secrets[key] = self._contents.setdefault(digest, _Content(raw))

    def last(self, request: Request, uid: str, secret: Request) -> Raw | None:
        """The Secret as last read for the object of that uid; None where it never was."""
        with self._lock:
            known = self._objects.get(request)
            content = known.secrets.get(secret) if known and known.uid == uid else None
        if content is None:
            return None
        found: Raw = json.loads(content.raw)
        return found

    def forget(self, request: Request, uid: str) -> None:
        """The object of that uid needs no Secret any more."""
        with self._lock:
            known = self._objects.get(request)
            if known is not None and known.uid == uid:
                del self._objects[request]
