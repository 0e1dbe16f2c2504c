"""Wire objects made from the classes themselves: a new field is covered as soon as it is there."""

from __future__ import annotations

from enum import Enum
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import attrs
from hypothesis import strategies as st

from actuator.meta import Base64, Object, Raw, schema_of, wire_name

TIME = "2026-01-01T00:00:00Z"
_TEXT = st.text(max_size=5)
_RAW = st.dictionaries(_TEXT, st.none() | st.integers() | _TEXT, max_size=2)
_SCALARS: dict[object, tuple[Any, Any]] = {
    str: ("x", _TEXT),
    Base64: ("YWJj", _TEXT),
    int: (7, st.integers(0, 9)),
    bool: (True, st.booleans()),
    Any: ({"any": [1, None]}, _RAW),
}


def every_field(cls: type) -> Raw:
    """An object of `cls` as it stands on the wire, with a value for each field."""
    return {wire_name(field): _example(hint) for field, hint in _fields(cls)}


def any_object(cls: type) -> Any:
    """Objects of `cls` as they may stand on the wire, unknown fields included."""
    hints = _fields(cls)
    values = {wire_name(field): _strategy(hint) for field, hint in hints}
    required = {wire_name(field) for field, hint in hints if _is_required(field, hint)}
    must = {name: value for name, value in values.items() if name in required}
    may = {name: value for name, value in values.items() if name not in required}
    return st.fixed_dictionaries(must, optional={**may, "unknownField": _RAW})


def every_field_of(cls: type[Object], namespace: str) -> tuple[Raw, Raw]:
    """An object of a kind that uses every field of its spec, and such a status."""
    kind = cls.KIND
    hints = get_type_hints(cls, include_extras=True)
    meta = {"name": f"{namespace}-{kind.name.lower()}"}
    if kind.namespaced:
        meta["namespace"] = namespace
    head = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": meta}
    return {**head, "spec": _example(hints["spec"])}, _example(hints["status"])


def _fields(cls: type) -> list[tuple[Any, Any]]:
    hints = get_type_hints(cls, include_extras=True)
    return [(field, hints[field.name]) for field in attrs.fields(cls) if field.name != "extra"]


def _is_required(field: Any, hint: Any) -> bool:
    schema = schema_of(hint)
    return field.default is attrs.NOTHING or (schema is not None and schema.required)


def _plain(hint: Any) -> tuple[Any, list[Any]]:
    """The type without Annotated and None, and its arguments."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    arguments = [argument for argument in get_args(hint) if argument is not NoneType]
    if NoneType in get_args(hint) and len(arguments) == 1:
        return _plain(arguments[0])
    return hint, arguments


def _example(hint: Any) -> Any:
    schema = schema_of(hint)
    if schema is not None and schema.format == "date-time":
        return TIME
    hint, arguments = _plain(hint)
    if hint in _SCALARS:
        return _SCALARS[hint][0]
    if set(arguments) == {int, str}:
        return "25%"
    if get_origin(hint) is list:
        return [_example(arguments[0])]
    if get_origin(hint) is dict:
        return {"key": _example(arguments[1])}
    if issubclass(hint, Enum):
        return next(iter(hint)).value
    return every_field(hint)


def _strategy(hint: Any) -> Any:
    hint, arguments = _plain(hint)
    if hint in _SCALARS:
        return _SCALARS[hint][1]
    if set(arguments) == {int, str}:
        return st.integers(0, 9) | _TEXT
    if get_origin(hint) is list:
        return st.lists(_strategy(arguments[0]), max_size=2)
    if get_origin(hint) is dict:
        return st.dictionaries(_TEXT, _strategy(arguments[1]), max_size=2)
    if issubclass(hint, Enum):
        return st.sampled_from([member.value for member in hint])
    return any_object(hint)
