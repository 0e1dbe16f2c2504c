"""The one converter between JSON and the contract's classes.

`encode(decode(cls, json)) == json` for every JSON object that a class can hold, including unknown
fields, explicit nulls and empty lists. No value is coerced: a string is never read as a number.
Data that does not fit raises DecodeError, which names the field. `encode` always writes an
`apiVersion` or `kind` that a class has by default, even if the JSON lacked it.

`decode_strictly` is for configuration that a user wrote: an unknown field is an error (Gardener
decodes providerConfig strictly).
"""

import json
import re
import secrets
from collections.abc import Callable
from enum import Enum
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin

import attrs
import cattrs
import msgspec
from cattrs.errors import BaseValidationError, ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from actuator.errors import ConfigurationError, DecodeError
from actuator.meta import Base64, Raw, schema_of, wire_name

MAX_DEPTH = 200
"""Maximum depth of objects and lists that is read; the API server stores nearly 10,000 levels."""
CUT = f"(not read: nested deeper than {MAX_DEPTH} levels, {secrets.token_hex(8)})"
"""Replaces a value that is nested deeper. An object that contains it counts as unreadable. It
differs for each process, so that no user can write it into an object."""

T = TypeVar("T")
_CUT = CUT.encode()
_AROUND = 10
"""Upper bound of the levels around a field: its object, and the event or list that contains it."""
_BRACES = bytes.maketrans(b"[]", b"{}")
_NO_BRACKETS = bytes(set(range(256)).difference(b'"[]{}'))
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)
_PATH = re.compile(r"@ \$\S+")
_SNAKE = re.compile(r"_([a-z])")


def decode(cls: type[T], data: object) -> T:
    """Return an instance of `cls` from a JSON object. Raises DecodeError."""
    return _decode(_LENIENT, cls, data)


def decode_strictly(cls: type[T], data: object) -> T:
    """Like `decode`, but a field that `cls` does not have is an error. Raises DecodeError."""
    return _decode(_STRICT, cls, data)


def decode_at(cls: type[T], data: object, where: str) -> T:
    """Like `decode`, but raises ConfigurationError; `where` names the object and the field."""
    try:
        return decode(cls, data)
    except DecodeError as error:
        raise ConfigurationError(f"{where}: {error}; correct it") from error


def decode_json(cls: type[T], text: bytes) -> T:
    """Return an instance of `cls` from JSON text. Raises DecodeError, also if it contains a CUT."""
    try:
        data, cut = _read(text)
    except ValueError as error:
        raise DecodeError(f"not JSON: {error}") from error
    if cut or _CUT in text:
        raise DecodeError(depth_problem(data))
    return decode(cls, data)


def read_json(text: bytes) -> Any:
    """Return the value of untrusted JSON text, with CUT in place of values below MAX_DEPTH.

    No input exhausts the stack, here or in recursive code that reads the value. Raises ValueError
    if the text is not JSON.
    """
    return _read(text)[0]


def plain_json(value: object, limit: int) -> Any:
    """Return a copy of a value as plain JSON of at most `limit` bytes.

    Raises ValueError, TypeError or RecursionError for a value that the API server cannot store:
    NaN, an integer of more than 64 bits, a value that is not JSON or is nested too deep.
    """
    text = json.dumps(value, allow_nan=False)
    if len(text) > limit:
        raise ValueError(f"{len(text)} bytes of JSON exceed the limit of {limit}")
    if is_deep(text.encode(), MAX_DEPTH - _AROUND):
        raise RecursionError
    return json.loads(text, parse_int=_int64)


def _int64(digits: str) -> int:
    if len(digits) > 20 or not -(2**63) <= (number := int(digits)) < 2**63:
        raise ValueError("integer exceeds 64 bits, and the API server would round it")
    return number


def _read(text: bytes) -> tuple[Any, bool]:
    """Return the value, and whether CUT replaced a part of it."""
    if is_deep(text):
        return json.loads(_shallow(text)), True
    try:
        return msgspec.json.decode(text), False
    except (msgspec.MsgspecError, UnicodeDecodeError):  # NaN, lone surrogates, huge numbers
        return json.loads(text), False


def depth_problem(obj: Raw) -> str:
    """Describe for users which field of an object contains CUT; return "" if none does."""
    for part in ("spec", "status"):
        fields = obj.get(part) if isinstance(obj, dict) else None
        for name, value in fields.items() if isinstance(fields, dict) else ():
            if CUT in json.dumps(value):
                return f"{part}.{name} is nested deeper than {MAX_DEPTH} levels; flatten it"
    return f"it is nested deeper than {MAX_DEPTH} levels" if CUT in json.dumps(obj) else ""


def is_deep(text: bytes, limit: int = MAX_DEPTH) -> bool:
    """Return whether JSON text has more than `limit` levels of objects and lists; not recursive."""
    if text.count(b"{") + text.count(b"[") <= limit:  # cheap, and usually sufficient
        return False
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    left = b"".join(text.translate(_BRACES, _NO_BRACKETS).split(b'"')[::2])  # outside of strings
    for _ in range(limit):
        left = left.replace(b"{}", b"")  # the innermost level
        if not left:
            return False
    return True


def _shallow(text: bytes) -> bytes:
    """Return the JSON text with CUT in place of values nested too deep; not recursive."""
    kept: list[bytes] = []
    depth, start = 0, 0
    for token in _TOKEN.finditer(text):
        if token.group() in (b"{", b"["):
            depth += 1
            if depth == MAX_DEPTH + 1:
                kept += (text[start : token.start()], json.dumps(CUT).encode())
        elif token.group() in (b"}", b"]"):
            if depth == MAX_DEPTH + 1:
                start = token.end()
            depth -= 1
    return b"".join((*kept, text[start:]))


def encode(obj: object) -> Raw:
    """Return the JSON object of an instance, without fields that have their default value."""
    data: Raw = _LENIENT.unstructure(obj)
    return data


def _decode(converter: cattrs.Converter, cls: type[T], data: object) -> T:
    if not isinstance(data, dict):
        raise DecodeError(f"expected an object, got {type(data).__name__}")
    try:
        return converter.structure(data, cls)
    except BaseValidationError as error:
        raise DecodeError(_text(error)) from None
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise DecodeError(str(error)) from None


def _text(error: BaseValidationError) -> str:
    """Return all problems in one line, each with the path in JSON names."""
    problems = cattrs.transform_error(error, format_exception=_say)
    return "; ".join(_PATH.sub(lambda path: _camel(path.group()), text) for text in problems)


def _camel(path: str) -> str:
    return _SNAKE.sub(lambda match: match.group(1).upper(), path)


def _say(error: BaseException, _expected: type | None) -> str:
    if isinstance(error, KeyError):
        return "required field missing"
    if isinstance(error, ForbiddenExtraKeysError):
        return f"unknown field {', '.join(sorted(error.extra_fields))}"
    return str(error) or type(error).__name__


def _make_converter(*, strict: bool) -> cattrs.Converter:
    converter = cattrs.Converter(detailed_validation=True, forbid_extra_keys=strict)
    for scalar in (str, int, bool, float):
        converter.register_structure_hook(scalar, _exactly(scalar))
    converter.register_structure_hook(Base64, lambda value, _: Base64(_exactly(str)(value, str)))
    converter.register_unstructure_hook(Base64, str)
    converter.register_structure_hook_func(_is_raw, _raw)
    converter.register_unstructure_hook_func(_is_raw, lambda value: value)
    converter.register_structure_hook_func(_is_int_or_string, _int_or_string)
    converter.register_structure_hook_func(_is_enum, _enum)
    converter.register_structure_hook_func(_is_list, _list_of(converter))
    converter.register_structure_hook_factory(attrs.has, _structure_factory(converter))
    converter.register_unstructure_hook_factory(attrs.has, _unstructure_factory(converter))
    return converter


def _exactly(scalar: type) -> Callable[[object, object], Any]:
    accepted = (int, float) if scalar is float else (scalar,)

    def hook(value: object, cls: object) -> Any:
        if cls is scalar and type(value) is scalar:
            return value
        if _is_enum(cls):  # cattrs finds the hook for str before the one for Enum
            return _enum(value, cls)
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
    return set(get_args(cls)) - {NoneType} == {int, str}


def _int_or_string(value: object, cls: object) -> object:
    if type(value) not in (int, str) and not (value is None and NoneType in get_args(cls)):
        raise TypeError(f"expected an integer or a string, got {type(value).__name__}")
    return value


def _is_enum(cls: object) -> bool:
    return isinstance(cls, type) and issubclass(cls, Enum)


def _enum(value: object, cls: Any) -> object:
    try:
        return cls(value)
    except ValueError:
        allowed = ", ".join(str(member.value) for member in cls)
        raise ValueError(f"expected one of {allowed}, got {value!r}") from None


def _is_list(cls: object) -> bool:
    return get_origin(cls) is list


def _list_of(converter: cattrs.Converter) -> Callable[[object, Any], object]:
    def hook(value: object, cls: Any) -> object:
        if not isinstance(value, list):  # a string is iterable too
            raise TypeError(f"expected a list, got {type(value).__name__}")
        (item,) = get_args(cls)
        structure = converter.get_structure_hook(item)
        result = []
        for index, element in enumerate(value):
            try:
                result.append(structure(element, item))
            except (BaseValidationError, TypeError, ValueError) as error:
                raise _in_list(error, index) from error
        return result

    return hook


def _in_list(error: Exception, index: int) -> ValueError:
    if isinstance(error, BaseValidationError):
        return ValueError(f"[{index}]: {_text(error)}")
    return ValueError(f"[{index}]: {error}")


def _optional(cls: object) -> object:
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


def _structure_factory(converter: cattrs.Converter) -> Callable[[type], Callable[..., Any]]:
    def factory(cls: type) -> Callable[..., Any]:
        attrs.resolve_types(cls, include_extras=True)
        fields: Callable[..., Any] = make_dict_structure_fn(cls, converter, **_overrides(cls))

        def structure(value: Any, target: object) -> Any:
            if not isinstance(value, dict):
                raise TypeError(f"expected an object, got {type(value).__name__}")
            return fields(value, target)

        if not any(field.name == "extra" for field in attrs.fields(cls)):
            return structure
        known = {wire_name(f): f for f in attrs.fields(cls) if f.name != "extra"}

        def hook(value: Any, _: object) -> Any:
            given = value
            if isinstance(value, dict) and None in value.values():
                # an explicit null means "not set", whatever the field's type
                given = {n: v for n, v in value.items() if v is not None or n not in known}
            result = structure(given, cls)
            kept = {
                n: v
                for n, v in value.items()
                if (not v or n not in known) and _is_kept(v, known.get(n))
            }
            if kept:
                object.__setattr__(result, "extra", kept)
            return result

        return hook

    return factory


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


def _unstructure_factory(converter: cattrs.Converter) -> Callable[[type], Callable[[Any], Raw]]:
    def factory(cls: type) -> Callable[[Any], Raw]:
        attrs.resolve_types(cls, include_extras=True)
        unstructure: Callable[[Any], Raw] = make_dict_unstructure_fn(
            cls, converter, _cattrs_omit_if_default=True, **_overrides(cls)
        )
        if not any(field.name == "extra" for field in attrs.fields(cls)):
            return unstructure

        def hook(obj: Any) -> Raw:
            if type(obj) is not cls and issubclass(type(obj), cls):
                return encode(obj)  # a subclass may hide fields
            extra: Raw = obj.extra
            return {**extra, **unstructure(obj)} if extra else unstructure(obj)

        return hook

    return factory


_LENIENT = _make_converter(strict=False)
_STRICT = _make_converter(strict=True)
