"""The one converter between JSON and the contract's classes.

Not here: JSON text (`codec`), and the texts of errors (`checking`).
"""

from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin

import attrs
import cattrs
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from actuator.errors import DecodeError
from actuator.meta import Base64, Raw, schema_of, wire_name

T = TypeVar("T")


def structure(cls: type[T], data: object) -> T:
    """Return an instance of `cls` from a JSON object. Raises DecodeError."""
    try:
        return CONVERTER.structure(data, cls)
    except Exception as error:  # also of the class's validators
        from actuator.checking import described

        text = str(error) or type(error).__name__
        with suppress(NameError, TypeError, ValueError):  # of a class without a schema
            text = described(cls, data) or text
        raise DecodeError(text) from None


def _make_converter() -> cattrs.Converter:
    converter = cattrs.Converter(detailed_validation=False)
    for scalar in (str, int, bool, float):
        converter.register_structure_hook(scalar, _exactly(scalar))
    converter.register_structure_hook(Base64, lambda value, _: Base64(_exactly(str)(value, str)))
    converter.register_unstructure_hook(Base64, str)
    converter.register_structure_hook_factory(_optional, _optional_hook)
    converter.register_structure_hook_func(_is_raw, _raw)
    converter.register_unstructure_hook_func(_is_raw, lambda value: value)
    converter.register_structure_hook_func(_is_int_or_string, _int_or_string)
    converter.register_structure_hook_func(_is_enum, lambda value, cls: cls(value))
    converter.register_structure_hook_factory(_is_list, _list_hook)
    converter.register_structure_hook_factory(attrs.has, _decoder)
    converter.register_unstructure_hook_factory(attrs.has, _encoder)
    converter.register_unstructure_hook_factory(_is_list, _list_encoder)
    return converter


def _exactly(scalar: type) -> Callable[[object, object], Any]:
    accepted = (int, float) if scalar is float else (scalar,)

    def hook(value: object, cls: Any) -> Any:
        if cls is scalar and type(value) is scalar:
            return value
        if _is_enum(cls):  # cattrs finds the hook for str before the one for Enum
            return cls(value)
        if scalar is str and isinstance(value, str):
            return str.__str__(value)  # of a StrEnum, which Python code may pass
        if type(value) not in accepted:
            raise TypeError(f"expected {scalar.__name__}, got {type(value).__name__}")
        return value

    return hook


def _is_raw(cls: object) -> bool:
    return cls == Raw or cls is Any or (_optional(cls) == Raw)


def _raw(value: object, cls: object) -> object:
    if cls is not Any and not isinstance(value, dict) and not (value is None and cls != Raw):
        raise TypeError(f"expected an object, got {type(value).__name__}")
    return value


def _is_int_or_string(cls: object) -> bool:
    of_both = set(get_args(cls)) - {NoneType}
    return of_both in ({int, str}, {int, float, str}) and get_origin(cls) in (Union, UnionType)


def _int_or_string(value: object, cls: object) -> object:
    if isinstance(value, str):
        return str.__str__(value)
    if type(value) not in get_args(cls) and not (value is None and NoneType in get_args(cls)):
        raise TypeError(f"expected a number or a string, got {type(value).__name__}")
    return value


def _is_enum(cls: object) -> bool:
    return isinstance(cls, type) and issubclass(cls, Enum)


def _is_list(cls: object) -> bool:
    return get_origin(cls) is list


def _list_hook(cls: Any, converter: cattrs.Converter) -> Callable[..., object]:
    (item,) = get_args(cls)
    structure = converter.get_structure_hook(item)

    def hook(value: object, _: object) -> object:
        if not isinstance(value, list):  # a string is iterable too
            raise TypeError(f"expected a list, got {type(value).__name__}")
        result = []
        for index, element in enumerate(value):
            try:
                result.append(structure(element, item))
            except ValueError as error:  # of the class's validators, which `checking` does not know
                raise ValueError(f"[{index}]: {error}") from error
        return result

    return hook


def _list_encoder(cls: Any, converter: cattrs.Converter) -> Callable[..., object]:
    (item,) = get_args(cls)
    unstructure = converter.get_unstructure_hook(item)

    def hook(value: Any) -> list[object]:
        if isinstance(value, str):  # iterable too
            raise TypeError("expected a list, got a string")
        return [unstructure(element) for element in value]

    return hook


def _optional_hook(cls: Any, converter: cattrs.Converter) -> Callable[..., object]:
    wanted: Any = _optional(cls)
    structure = converter.get_structure_hook(wanted)
    return lambda value, _: None if value is None else structure(value, wanted)


def _optional(cls: object) -> Any:
    """Return X for `X | None`, otherwise None."""
    args = get_args(cls)
    if len(args) == 2 and NoneType in args:
        return args[0] if args[1] is NoneType else args[1]
    return None


def _overrides(cls: type) -> dict[str, Any]:
    return {field.name: _override(field) for field in attrs.fields(cls)}


def _override(field: "attrs.Attribute[Any]") -> Any:
    if field.name == "extra":
        return override(omit=True)
    schema = schema_of(field.type)  # required by the CRD: written even at its default
    required = schema is not None and schema.required
    if field.name in ("api_version", "kind") and _default(field):
        required = True  # readers of a status or state need both to decode it
    return override(rename=wire_name(field), omit_if_default=False if required else None)


def _decoder(cls: type, converter: cattrs.Converter) -> Callable[..., Any]:
    attrs.resolve_types(cls, include_extras=True)
    fields: Callable[..., Any] = make_dict_structure_fn(cls, converter, **_overrides(cls))
    known = {wire_name(f): f for f in attrs.fields(cls) if f.name != "extra"}
    keeps_unknown = len(known) < len(attrs.fields(cls))
    optional = {n for n, field in known.items() if field.default is not attrs.NOTHING}

    def hook(value: Any, _: object) -> Any:
        if not isinstance(value, dict):
            raise TypeError(f"expected an object, got {type(value).__name__}")
        if all(value.values()) and value.keys() <= known.keys():
            return fields(value, cls)  # nothing to keep: nothing unknown, null or a default
        # an explicit null means "not set", whatever the field's type
        given = {n: v for n, v in value.items() if v is not None or n not in optional}
        result = fields(given, cls)
        if not keeps_unknown:
            return result
        kept = {
            n: v
            for n, v in value.items()
            if (not v or n not in known) and _is_kept(v, known.get(n))
        }
        if kept:
            object.__setattr__(result, "extra", kept)
        return result

    return hook


def _is_kept(value: object, field: "attrs.Attribute[Any] | None") -> bool:
    """Whether `encode` would lose `value` without `extra`: it is unknown, null, or a default."""
    if field is None or value is None:
        return True
    # `encode` omits defaults; an explicitly written "", 0, {} or [] must be preserved
    return not value and type(value) is type(_default(field))


def _default(field: "attrs.Attribute[Any]") -> object:
    default = field.default
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        made = default.factory()  # type: ignore[union-attr]
        return {} if attrs.has(type(made)) else made
    return default


def _encoder(cls: type, converter: cattrs.Converter) -> Callable[[Any], Raw]:
    attrs.resolve_types(cls, include_extras=True)
    unstructure: Callable[[Any], Raw] = make_dict_unstructure_fn(
        cls, converter, _cattrs_omit_if_default=True, **_overrides(cls)
    )
    if not any(field.name == "extra" for field in attrs.fields(cls)):
        return unstructure

    def hook(obj: Any) -> Raw:
        if type(obj) is not cls and issubclass(type(obj), cls):
            return cast(Raw, converter.unstructure(obj))  # a subclass may hide fields
        try:
            extra: Raw = obj.extra
        except AttributeError:  # of an author who wrote a dict
            raise TypeError(f"expected {cls.__name__}, got {type(obj).__name__}") from None
        return {**extra, **unstructure(obj)} if extra else unstructure(obj)

    return hook


CONVERTER = _make_converter()
