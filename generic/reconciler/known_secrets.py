"""Secrets as last read, for deletions whose Secret is deleted before the object.

Guarantees: a Secret is kept in memory alone, never in a log, a repr or the API; content that
several objects have in common is kept once, and is freed with the last object that was read for.
Which object knows which Secret is in its `track`; when the last known one is good enough is
decided by the `invoker`.
"""

from __future__ import annotations

import hashlib
import json
import threading
from weakref import WeakValueDictionary

import attrs

from actuator.meta import Raw

_BULK = "managedFields"
"""Not needed by any reader of a Secret."""


@attrs.frozen(repr=False, eq=False)
class SharedSecret:
    """A Secret as JSON."""

    _raw: bytes

    def read(self) -> Raw:
        """Return the Secret."""
        found: Raw = json.loads(self._raw)
        return found


class SharedSecrets:
    """The contents that are in use; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._contents: WeakValueDictionary[bytes, SharedSecret] = WeakValueDictionary()

    def share(self, secret: Raw) -> SharedSecret:
        """Return the kept copy of this content."""
        meta = {name: value for name, value in secret["metadata"].items() if name != _BULK}
        raw = json.dumps({**secret, "metadata": meta}, separators=(",", ":")).encode()
        with self._lock:
            return self._contents.setdefault(hashlib.sha256(raw).digest(), SharedSecret(raw))
