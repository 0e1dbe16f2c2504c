"""Values of our classes as plain data, for JSON and YAML that other programs read."""

import json
from collections.abc import Mapping
from typing import Any

import attrs

from actuator.meta import wire_name


def plain(value: Any) -> Any:
    """Return objects as mappings with keys in camelCase, without unknown fields; others as is.

    Keys of mappings are data, such as labels, and stay.
    """
    if attrs.has(type(value)):
        fields = (field for field in attrs.fields(type(value)) if field.name != "extra")
        return {wire_name(field): plain(getattr(value, field.name)) for field in fields}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, str) else value  # YAML knows no enum


def json_text(value: Any, *, sort_keys: bool = False) -> str:
    """Return a value of plain data and objects as indented JSON."""
    return json.dumps(plain(value), indent=2, sort_keys=sort_keys)
