"""Secrets as last read, for deletions whose Secret is deleted before the object.

Guarantees: a Secret is kept in memory only, never in a log, a repr or the API; equal content of
several objects is kept once, and freed with the last object it was read for.
Not here: the Secrets known for an object (`track`), and the decision to use the last known one
(`invoker`).
"""

import hashlib
import json
import threading
from weakref import WeakValueDictionary

import attrs

from actuator.meta import Raw

_BULK = "managedFields"
"""Not needed by any user of a Secret."""


@attrs.frozen(repr=False, eq=False)
class SharedSecret:
    """A Secret as JSON."""

    _raw: bytes

    def read(self) -> Raw:
        """Return the Secret."""
        found: Raw = json.loads(self._raw)
        return found


class SharedSecrets:
    """The Secret contents in use; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._contents: WeakValueDictionary[bytes, SharedSecret] = WeakValueDictionary()

    def share(self, secret: Raw) -> SharedSecret:
        """Return the kept copy of this content."""
        meta = {name: value for name, value in secret["metadata"].items() if name != _BULK}
        raw = json.dumps({**secret, "metadata": meta}, separators=(",", ":")).encode()
        with self._lock:
            return self._contents.setdefault(hashlib.sha256(raw).digest(), SharedSecret(raw))
