"""JSON text as Go's encoding/json writes it, for what the API server or Gardener compares by text.

Not here: objects to JSON values and back (`actuator.codec`).
"""

from __future__ import annotations

import json
import re

_ESCAPED_BY_GO = re.compile("[&<>\u2028\u2029]")


def go_json(body: object, *, sort_keys: bool = False) -> str:
    """JSON without spaces, with the escapes of Go's encoding/json and no others.

    Raises ValueError or TypeError for what is not JSON, NaN and Infinity included.
    """
    text = json.dumps(
        body, separators=(",", ":"), ensure_ascii=False, allow_nan=False, sort_keys=sort_keys
    )
    return _ESCAPED_BY_GO.sub(escaped, text)


def escaped(found: re.Match[str]) -> str:
    """The escape of a matched character in JSON."""
    return f"\\u{ord(found.group()):04x}"
