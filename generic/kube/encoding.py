"""JSON text as Go's encoding/json writes it, for text that the API server or Gardener compares.

Not here: conversion between objects and JSON values (`actuator.codec`).
"""

import json
import re

_PLAIN, _SORTED = (
    json.JSONEncoder(
        separators=(",", ":"), ensure_ascii=False, allow_nan=False, sort_keys=is_sorted
    )
    for is_sorted in (False, True)
)
_ESCAPED_BY_GO = re.compile("[&<>\u2028\u2029]")


def go_json(body: object, *, sort_keys: bool = False) -> str:
    """Return JSON without spaces, with exactly the escapes of Go's encoding/json.

    Raises ValueError or TypeError for values that are not JSON, NaN and Infinity included.
    """
    text = (_SORTED if sort_keys else _PLAIN).encode(body)
    return _ESCAPED_BY_GO.sub(escaped, text)


def escaped(found: re.Match[str]) -> str:
    """Return the JSON escape of a matched character."""
    return f"\\u{ord(found.group()):04x}"
