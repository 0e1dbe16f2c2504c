"""Mistakes in a class whose objects users write, which would blame the user's manifest later."""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from enum import Enum
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import attrs
from msgspec import to_builtins

from actuator.checking import CONSTRAINTS, FORMATS, TYPES, problems, types_of
from actuator.codec import encode
from actuator.interface import ProviderConfig
from actuator.meta import ConditionedStatus, DefaultStatus, Object, Raw, Schema, wire_name
from actuator.provider_config import accepted_versions
from actuator.schema import LIST_KEYS, content_of, json_schema
from actuator.suggestions import did_you_mean
from generic.kube.errorinfo import describe

_OF_NUMBERS = frozenset({"int32", "int64", "float", "double"})
_FORMATS = [*FORMATS, *_OF_NUMBERS, "byte", "date", "date-time", "password"]
"""Others have no meaning here, but may have one for another program."""
_ARGUMENTS = {"minLength": "min_length", "maxLength": "max_length"}


def mistakes(cls: type) -> Iterator[tuple[type, str]]:
    """Yield each mistake in a class, its versions and the classes of fields, with that class."""
    if not issubclass(cls, ProviderConfig):
        yield from _of_class(cls)
    elif wrong := list(_versions(cls, ())):
        yield from wrong
    else:
        for version in accepted_versions(cls):
            yield from _of_class(version)


def _of_class(cls: type) -> Iterator[tuple[type, str]]:
    classes: list[type] = []
    try:
        _collect(cls, classes)
        undecorated = [(cls, text) for cls in classes if (text := _undecorated(cls))]
        if undecorated:  # the fields are unknown
            yield from undecorated
            return
        json_schema(cls)
    except NameError as error:
        yield classes[-1], f"{error}; import it at run time"
        return
    except TypeError as error:  # names the field
        yield cls, str(error).removeprefix(f"{cls.__name__}.")
        return
    if issubclass(cls, ProviderConfig):
        yield from ((cls, text) for text in _unnamed(cls))
    for item in classes:
        yield from ((item, text) for text in _of_fields(item))


def _collect(found: Any, seen: list[type]) -> None:
    """Add an author's class, and the classes in the annotations of its fields, each once."""
    for part in get_args(found):
        _collect(part, seen)
    own = isinstance(found, type) and (attrs.has(found) or "__annotations__" in vars(found))
    if not own or issubclass(found, Enum) or found in seen or found.__module__ == "actuator.meta":
        return
    seen.append(found)
    for hint in get_type_hints(found).values():
        _collect(hint, seen)


def _undecorated(cls: type) -> str:
    """Return the remedy for a class whose own fields attrs does not know."""
    if "__attrs_attrs__" in vars(cls) or not vars(cls).get("__annotations__"):
        return ""
    is_written = issubclass(cls, (Object, DefaultStatus, ConditionedStatus))  # by an actuator
    remedy = f"with @attrs.{'define' if is_written else 'frozen'}(kw_only=True)"
    if is_dataclass(cls):
        return f"it is a dataclass; declare it {remedy} instead"
    return f"it is no attrs class, so that its fields are unknown; decorate it {remedy}"


def _versions(cls: Any, newer: tuple[type, ...]) -> Iterator[tuple[type, str]]:
    """Yield what is wrong with the older versions of a class, itself a version of `newer`."""
    if not (isinstance(cls, type) and issubclass(cls, ProviderConfig)):
        yield newer[-1], f"versions has {cls!r}; expected a subclass of ProviderConfig"
        return
    names = [_constants(version) for version in (*newer, cls)]
    if cls in newer or names[-1] in names[:-1]:
        yield newer[-1], f"versions leads from {' '.join(names[-1])} back to itself; remove it"
        return
    declared = vars(cls).get("versions", {})
    if not isinstance(declared, Mapping):
        yield cls, f"versions is {declared!r}; set {{OlderConfig: converter}}"
        return
    for older, convert in declared.items():
        if not callable(convert):
            yield (
                cls,
                f"versions has no converter for {older!r}, but {convert!r}; set a function",
            )
        yield from _versions(older, (*newer, cls))


def _constants(cls: type) -> list[str]:
    fields = attrs.fields_dict(cls)
    return [str(fields[name].default) for name in ("api_version", "kind")]


def _unnamed(config: type[ProviderConfig]) -> Iterator[str]:
    """Yield the fields by which a configuration of another kind could not be told apart."""
    for name in ("api_version", "kind"):
        if attrs.fields_dict(config)[name].default is attrs.NOTHING:
            yield f'{name} has no value; declare its only valid one, such as {name}: str = "…"'


def _of_fields(cls: type) -> Iterator[str]:
    schema = json_schema(cls)
    hints = get_type_hints(cls, include_extras=True)
    for field in attrs.fields(cls):
        if field.name == "extra":
            continue
        name = wire_name(field)
        found = schema["properties"][name]
        texts = [*_unfit(hints[field.name], found)]
        if name not in schema.get("required", ()):
            texts += _bad_default(field.default, hints[field.name], found)
        if "example" in found:
            texts += _invalid("example", found["example"], found)
        yield from (f"{field.name}: {text}" for text in texts)
    for name, value in vars(cls).items():
        is_constant = name.startswith("_") or name.isupper() or isinstance(value, type)
        if not is_constant and not hasattr(value, "__get__") and name not in hints:
            yield f"{name}: it has no type, so that it is no field; annotate it"


def _bad_default(default: Any, hint: Any, schema: Raw) -> Iterator[str]:
    try:
        hash(default)
    except TypeError:  # it can be changed
        factory = f"lambda: {default!r}" if default else type(default).__name__
        yield f"all objects share the default {default!r}; use attrs.field(factory={factory})"
        return
    if hasattr(default, "takes_self"):  # a Factory
        if default.takes_self:
            return
        try:
            default = default.factory()
        except Exception as error:
            yield f"its default cannot be created: {describe(error)}"
            return
    inner = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if default is None and (NoneType in get_args(inner) or "type" not in schema):
        return
    if not attrs.has(type(default)):  # whose class is checked for itself
        yield from _invalid("default", to_builtins(encode(default), enc_hook=repr), schema)


def _invalid(what: str, value: object, schema: Raw) -> Iterator[str]:
    for _, detail in problems(schema, value, ""):
        yield f"the {what} {value!r} violates its own type or Schema: {detail}"


def _unfit(hint: Any, schema: Raw) -> Iterator[str]:
    """Yield each constraint that has no meaning for the type that it annotates."""
    if Schema in getattr(hint, "__metadata__", ()):
        yield "Schema has no effect without parentheses; write Schema(…)"
    given = schema.get("format", _FORMATS[0])
    if given not in _FORMATS and (meant := did_you_mean(given, _FORMATS)):
        yield f"Schema(format={given!r}) is unknown{meant}"
    python_types = [type_ for name in types_of(schema) for type_ in TYPES[name][1]]
    for name, (_, types, _) in CONSTRAINTS.items():
        fits = {*python_types} & {*types}
        is_number = name == "format" and schema.get(name) in _OF_NUMBERS
        if name in schema and python_types and not fits and not is_number:
            argument = _ARGUMENTS.get(name, name)
            shown = TYPES[types_of(schema)[0]][0]
            yield f"Schema({argument}=…) has no meaning for {shown}; remove it, or change the type"
    if LIST_KEYS in schema:
        yield from _wrong_key(schema)
    yield from _unfit(None, part) if (part := content_of(schema)) else ()


def _wrong_key(schema: Raw) -> Iterator[str]:
    (key,) = schema[LIST_KEYS]
    item = schema.get("items", {})
    field = item.get("properties", {}).get(key, {})
    is_scalar = field.get("type") in ("string", "integer") and field.get("format") != "password"
    if key not in item.get("required", ()) or not is_scalar:
        yield f"Schema(key={key!r}): no required text or integer of the list's entries; name one"
