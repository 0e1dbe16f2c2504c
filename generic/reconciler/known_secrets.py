"""Secrets as last read, for deletions whose Secret is deleted before the object.

Guarantees: a Secret is kept in memory only, never in a log, a repr or the API; equal content of
several objects is kept once, and freed with the last object it was read for. The token of a
workload identity is dropped when it expires.
Errors of clouds may quote credentials: `hide` removes the values of Secrets from their texts.
Not here: the Secrets known for an object (`track`), and the decision to use the last known one
(`invoker`).
"""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from weakref import WeakValueDictionary

import attrs

from actuator.meta import Raw
from generic.kube.workload_identity import is_workload_identity, token_expiry

_BULK = "managedFields"
"""Not needed by any user of a Secret."""
_NEVER = datetime.max.replace(tzinfo=UTC)
_PAST = datetime.min.replace(tzinfo=UTC)
_MIN_VALUE = 8
"""Minimum characters of a value that is hidden; shorter ones are parts of other words."""
_MIN_PART = 16
"""The same of a word in a value, such as a token in a kubeconfig."""
_WORD = re.compile(r"[\w+/=.~-]+")


@attrs.define(repr=False, eq=False)
class SharedSecret:
    """A Secret as JSON, until it expires."""

    _raw: bytes
    expires: datetime

    def read(self, now: datetime) -> Raw | None:
        """Return the Secret; None if it has expired."""
        return json.loads(self._raw) if now < self.expires and self._raw else None

    def drop(self) -> None:
        """Forget the content."""
        self._raw = b""


class SharedSecrets:
    """The Secret contents in use; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._contents: WeakValueDictionary[bytes, SharedSecret] = WeakValueDictionary()
        self._due = _NEVER

    def share(self, secret: Raw) -> SharedSecret:
        """Return the kept copy of this content."""
        meta = {name: value for name, value in secret["metadata"].items() if name != _BULK}
        raw = json.dumps({**secret, "metadata": meta}, separators=(",", ":")).encode()
        expires = (token_expiry(secret) or _PAST) if is_workload_identity(secret) else _NEVER
        with self._lock:
            self._due = min(self._due, expires)
            shared = SharedSecret(raw, expires)
            return self._contents.setdefault(hashlib.sha256(raw).digest(), shared)

    def drop_expired(self, now: datetime) -> None:
        """Forget the contents that have expired; the watchdog calls this regularly."""
        if now < self._due:
            return
        with self._lock:
            for digest, content in list(self._contents.items()):
                if content.expires <= now:
                    content.drop()
                    del self._contents[digest]  # a later read keeps it again
            self._due = min(
                (content.expires for content in self._contents.values()), default=_NEVER
            )


def hide(text: str, secrets: Iterable[Raw]) -> str:
    """Return the text with `<KEY>` in place of the values of these Secrets, and of long words."""
    found = {value: key for secret in secrets for value, key in _values(secret)}
    for value in sorted(found, key=len, reverse=True):
        text = text.replace(value, f"<{found[value]}>")
    return text


def _values(secret: Raw) -> Iterator[tuple[str, str]]:
    """Yield each value in its forms, and its key."""
    for key, encoded in (secret.get("data") or {}).items():
        value = ""
        with suppress(ValueError):  # no base64, or no text
            value = " ".join(base64.b64decode(encoded).decode().split())  # as errors have it
        words = [word for word in _WORD.findall(value) if len(word) >= _MIN_PART]
        for form in (encoded, encoded.rstrip("="), value, *words):
            if len(form) >= _MIN_VALUE:
                yield form, key
