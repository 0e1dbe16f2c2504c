"""Schemas of attrs classes, at once JSON Schema (draft 2020-12) and structural OpenAPI v3.

Types come from the annotations, constraints from `Schema`, descriptions from `Schema` or from the
text below a field. Not here: CustomResourceDefinitions (`generic.kube.crds`), and checking a value
(`checking`).
"""

import ast
import inspect
import sys
from enum import Enum
from functools import lru_cache
from itertools import pairwise
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs

from actuator.codec import encode
from actuator.meta import Base64, Raw, Schema, schema_of, wire_name

_PRESERVE: Raw = {"x-kubernetes-preserve-unknown-fields": True}
_INT_OR_STRING: Raw = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
_KNOWN = "a scalar, an enum of strings, list, dict[str, …] or attrs class"
_SCALARS: dict[object, str] = {str: "string", int: "integer", bool: "boolean", float: "number"}


IMMUTABLE = {"rule": "self == oldSelf", "message": "field is immutable"}
ALWAYS = {"rule": "self == oldSelf", "message": "field is immutable, also without a value"}
LIST_KEYS = "x-kubernetes-list-map-keys"


def content_of(schema: Raw) -> Raw:
    """Return the schema of the entries of a list or a map; otherwise {}."""
    return schema.get("items") or schema.get("additionalProperties") or {}


_Use = Literal["decoding", "structural", "configuration", "comparison"]


def structural(cls: type) -> Raw:
    """Return the schema as the API server accepts it. Raises TypeError like `json_schema`."""
    return _whole(cls, "structural")


def decodable(cls: type) -> Raw:
    """Return the schema of all that `codec.decode` accepts. Raises TypeError like `json_schema`."""
    return _whole(cls, "decoding")


def json_schema(cls: type) -> Raw:
    """Return the schema of a configuration: unknown fields are invalid, defaults are documented.

    Raises TypeError, which names the field, for a type without a schema.
    """
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, "title": cls.__name__, **_whole(cls, "configuration")}


def comparable(cls: type) -> Raw:
    """Return the schema of a configuration with the defaults of all fields, also of lists."""
    return _whole(cls, "comparison")


def _whole(cls: type, use: _Use) -> Raw:
    try:
        return _object(cls, use)
    except NameError as error:
        raise TypeError(f"{cls.__name__}: {error}; import it at run time") from None
    except RecursionError:
        remedy = "use dict[str, Any] for the inner value"
        raise TypeError(f"{cls.__name__} contains itself and has no schema; {remedy}") from None


def _object(cls: type, use: _Use) -> Raw:
    hints = get_type_hints(cls, include_extras=True)
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__ if use != "decoding" else ()):
        texts |= _texts(sys.modules.get(base.__module__)).get(base.__name__, {})
    properties: Raw = {}
    required = []
    for field in attrs.fields(cls):
        if field.name == "extra":
            continue
        hint = hints[field.name]
        try:
            schema = _schema(hint, use, texts.get(field.name, ""))
        except TypeError as error:
            raise TypeError(f"{cls.__name__}.{field.name}: {error}") from None
        properties[wire_name(field)] = {**schema, **_default(field, use)}
        declared = None if use == "decoding" else schema_of(hint)
        if field.default is attrs.NOTHING or (declared is not None and declared.required):
            required.append(wire_name(field))
    return {
        "type": "object",
        "description": (cls.__doc__ or cls.__name__).strip().splitlines()[0],
        "properties": properties,
        **({"additionalProperties": False} if use == "configuration" else {}),
        **({"required": required} if required else {}),
    }


def _default(field: "attrs.Attribute[Any]", use: _Use) -> Raw:
    """Return the only valid apiVersion or kind, or the default of a configuration."""
    default: Any = field.default
    if use == "comparison" and default is not attrs.NOTHING:
        if hasattr(default, "takes_self"):  # a Factory
            default = None if default.takes_self else default.factory()
        found = encode(default)
        return {} if found is None else {"default": found}
    default = default.value if isinstance(default, Enum) else default
    if field.default is attrs.NOTHING or not isinstance(default, str | int | float):
        return {}
    if use == "decoding":
        return {}
    if field.name in ("api_version", "kind") and default:
        return {"enum": [default]}
    return {"default": default} if use == "configuration" and default != "" else {}


def _schema(annotation: Any, use: _Use, text: str = "") -> Raw:
    declared = schema_of(annotation)
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    alternatives = [arg for arg in get_args(annotation) if arg is not NoneType]
    if NoneType in get_args(annotation) and len(alternatives) == 1:
        schema = _schema(alternatives[0], use)
    else:
        schema = _type(annotation, alternatives, use)
    described = {"description": text} if text else {}
    if declared is None or use == "decoding":
        return {**schema, **described}
    return {**schema, **described, **_details(declared, schema.get("type"))}


def _type(annotation: Any, alternatives: list[Any], use: _Use) -> Raw:
    origin = get_origin(annotation)
    if annotation in _SCALARS:
        return {"type": _SCALARS[annotation]}
    if annotation is Base64:
        return {"type": "string", "format": "byte"}
    if annotation is Any:
        return dict(_PRESERVE)
    if origin in (Union, UnionType) and set(alternatives) == {int, str}:
        return dict(_INT_OR_STRING)
    if origin in (Union, UnionType) and set(alternatives) == {int, float, str}:
        if use == "structural":
            raise TypeError(f"{annotation} has no schema in an own kind; use int | str")
        return {"anyOf": [{"type": "number"}, {"type": "string"}]}
    names = alternatives if origin is Literal else _values(annotation)
    if names and all(isinstance(name, str) for name in names):
        return {"type": "string", "enum": [str(name) for name in names]}
    if origin is list:
        return {"type": "array", "items": _schema(alternatives[0], use)}
    if origin is dict and alternatives[0] is str:
        if alternatives[1:] == [Any]:
            return {"type": "object", **_PRESERVE}
        return {"type": "object", "additionalProperties": _schema(alternatives[1], use)}
    if isinstance(annotation, type) and attrs.has(annotation):
        return _object(annotation, use)
    raise TypeError(f"{annotation} has no schema; use {_KNOWN}")


def _values(annotation: Any) -> list[object]:
    is_enum = isinstance(annotation, type) and issubclass(annotation, Enum)
    return [member.value for member in annotation] if is_enum else []


def _details(declared: Schema, type: object) -> Raw:
    size = {"array": "Items", "object": "Properties"}.get(str(type), "Length")
    rule = ALWAYS if declared.immutable == "always" else IMMUTABLE
    details: Raw = {
        "type": declared.type,
        "description": declared.description or None,
        "minimum": declared.minimum,
        "maximum": declared.maximum,
        f"min{size}": declared.min_length,
        f"max{size}": declared.max_length,
        "pattern": f"^(?:{declared.pattern})$" if declared.pattern else None,
        "format": declared.format,
        "default": declared.default,
        "example": declared.example,
        "x-kubernetes-validations": [rule] if declared.immutable else None,
        "x-kubernetes-list-type": "map" if declared.key else None,
        LIST_KEYS: [declared.key] if declared.key else None,
    }
    return {name: value for name, value in details.items() if value is not None}


@lru_cache(maxsize=256)
def _texts(module: Any) -> dict[str, dict[str, str]]:
    """Return the texts below the fields of a module's classes, if its source is available."""
    try:
        tree = ast.parse(inspect.getsource(module))
    except (OSError, TypeError, SyntaxError):
        return {}
    found: dict[str, dict[str, str]] = {}
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for field, text in pairwise(node.body):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(ast.Constant(str(words))):
                    found.setdefault(node.name, {})[name] = " ".join(words.split())
    return found
