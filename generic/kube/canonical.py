"""Canonical JSON: one text for each value, so that its SHA-256 can be compared later."""

import hashlib
import json
from typing import Any


def canonical(value: Any) -> str:
    """Return plain JSON in ASCII, with sorted keys and without spaces or control characters.

    The text has one line and is safe on a terminal. Raises ValueError for NaN and infinity.
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.replace("\x7f", "\\u007f")


def digest(value: Any) -> str:
    """Return the SHA-256 of the canonical JSON, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()
