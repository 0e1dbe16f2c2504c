"""Mistakes in the class of a configuration, which would blame the user's manifest later."""

from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import Enum
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import attrs

from actuator.checking import check
from actuator.codec import encode
from actuator.interface import ProviderConfig
from actuator.meta import Schema, schema_of, wire_name
from actuator.schema import json_schema

_FITS: dict[str, tuple[type, ...]] = {
    "minimum": (int, float),
    "maximum": (int, float),
    "min_length": (str, list, dict),
    "max_length": (str, list, dict),
    "pattern": (str,),
    "format": (str,),
}
"""The types for which each constraint of Schema has a meaning."""


def config_mistakes(cls: type[ProviderConfig]) -> Iterator[tuple[type, str]]:
    """Yield each mistake in a configuration class and the classes of its fields, with the class."""
    classes = list(_classes(cls, []))
    undecorated = [(one, text) for one in classes if (text := _undecorated(one))]
    if undecorated:  # the fields are unknown
        yield from undecorated
        return
    json_schema(cls)  # raises TypeError, which names the field
    for one in classes:
        hints = get_type_hints(one, include_extras=True)
        for field in attrs.fields(one):
            if field.name in hints and field.name != "extra":
                for text in (*_bad_default(one, field), *_unfit(hints[field.name])):
                    yield one, f"{field.name}: {text}"


def _classes(found: Any, seen: list[type]) -> Iterator[type]:
    """Yield a class, and the classes in the annotations of its fields, each once."""
    for part in get_args(found):
        yield from _classes(part, seen)
    own = isinstance(found, type) and (attrs.has(found) or "__annotations__" in vars(found))
    if own and not issubclass(found, Enum) and found not in seen:
        seen.append(found)
        yield found
        for hint in get_type_hints(found).values():
            yield from _classes(hint, seen)


def _undecorated(cls: type) -> str:
    """Return the remedy for a class whose own fields attrs does not know."""
    remedy = "with @attrs.frozen(kw_only=True)"
    if is_dataclass(cls) and "__attrs_attrs__" not in vars(cls):
        return f"it is a dataclass; declare it {remedy} instead"
    if vars(cls).get("__annotations__") and "__attrs_attrs__" not in vars(cls):
        return f"it is no attrs class, so that its fields are unknown; decorate it {remedy}"
    return ""


def _bad_default(cls: type, field: "attrs.Attribute[Any]") -> Iterator[str]:
    default: Any = field.default
    if isinstance(default, list | dict | set):
        factory = type(default).__name__
        yield f"all objects share the default {default!r}; use attrs.field(factory={factory})"
        return
    if hasattr(default, "takes_self"):  # a Factory
        default = None if default.takes_self else default.factory()
    if default is attrs.NOTHING or default in (None, "", [], {}):
        return
    value = encode(default) if attrs.has(type(default)) else default
    given = {wire_name(field): value.value if isinstance(value, Enum) else value}
    path = f"{cls.__name__}.{wire_name(field)}"
    for where, detail in check(cls, given, cls.__name__):
        if where.startswith(path):
            yield f"the default {default!r} is invalid by its own Schema: {detail}"


def _unfit(hint: Any) -> Iterator[str]:
    """Yield each constraint that has no meaning for the type that it annotates."""
    declared = schema_of(hint)
    inner = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    types = {get_origin(one) or one for one in (inner, *get_args(inner))}
    if declared is not None and types & {str, int, float, bool, list, dict}:
        for name in _unfitting(declared, types):
            shown = getattr(inner, "__name__", None) or str(inner)
            yield f"Schema({name}=…) has no meaning for {shown}; remove it, or change the type"
    for part in get_args(inner):
        yield from _unfit(part)


def _unfitting(declared: Schema, types: set[Any]) -> list[str]:
    given = [name for name in _FITS if getattr(declared, name) not in (None, "")]
    return [name for name in given if not types & set(_FITS[name])]
