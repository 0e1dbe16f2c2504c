"""CustomResourceDefinitions, generated from the contract's classes: structural, with a status
subresource and printer columns.

Types come from the annotations; descriptions, bounds and immutability come from `Schema`
(Kubernetes documentation, "Extend the Kubernetes API with CustomResourceDefinitions").
"""

from enum import Enum
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import attrs

from actuator.meta import Base64, Object, Raw, Schema, schema_of, wire_name

_PRESERVE: Raw = {"x-kubernetes-preserve-unknown-fields": True}
_HEAD = frozenset({"api_version", "kind", "metadata", "extra"})
_SCALARS: dict[object, str] = {str: "string", int: "integer", bool: "boolean", float: "number"}


def crd(cls: type[Object]) -> Raw:
    """Return the CustomResourceDefinition of a class with a KIND."""
    kind = cls.KIND
    has_status = any(field.name == "spec" for field in attrs.fields(cls))  # Gardener: Cluster too
    version: Raw = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _root(cls)},
        "additionalPrinterColumns": [
            {"name": c.name, "type": c.type, "jsonPath": c.json_path} for c in kind.columns
        ],
    }
    if has_status:
        version["subresources"] = {"status": {}}
    names = {"kind": kind.name, "plural": kind.plural, "singular": kind.name.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "names": {
                **names,
                "listKind": f"{kind.name}List",
                "shortNames": list(kind.short_names),
            },
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [version],
        },
    }


def _root(cls: type[Object]) -> Raw:
    hints = get_type_hints(cls, include_extras=True)
    fields = {f.name: wire_name(f) for f in attrs.fields(cls) if f.name not in _HEAD}
    properties = {wire: _schema(hints[name]) for name, wire in fields.items()}
    if "status" in properties:  # a status that was never written lacks every field
        properties["status"].pop("required", None)
    root: Raw = {
        "type": "object",
        "description": _first_line(cls),
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            **properties,
        },
    }
    required = [wire for name, wire in fields.items() if _required(hints[name], name == "spec")]
    if required:
        root["required"] = required
    return root


def _schema(annotation: Any) -> Raw:
    extra = schema_of(annotation)
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    alternatives = [arg for arg in get_args(annotation) if arg is not NoneType]
    if NoneType in get_args(annotation) and len(alternatives) == 1:
        annotation = alternatives[0]
    return {**_type(annotation, alternatives), **_details(extra)}


def _type(annotation: Any, alternatives: list[Any]) -> Raw:
    if annotation in _SCALARS:
        return {"type": _SCALARS[annotation]}
    if annotation is Base64:
        return {"type": "string", "format": "byte"}
    if annotation is Any:
        return dict(_PRESERVE)
    if set(alternatives) == {int, str}:
        return {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": True,
        }
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return {"type": "string", "enum": [str(member.value) for member in annotation]}
    if get_origin(annotation) is list:
        return {"type": "array", "items": _schema(get_args(annotation)[0])}
    if get_origin(annotation) is dict:
        value = get_args(annotation)[1]
        return (
            {"type": "object", **_PRESERVE}
            if value is Any
            else {"type": "object", "additionalProperties": _schema(value)}
        )
    return _object(annotation)


def _object(cls: type) -> Raw:
    hints = get_type_hints(cls, include_extras=True)
    fields = {f.name: wire_name(f) for f in attrs.fields(cls) if f.name != "extra"}
    schema: Raw = {
        "type": "object",
        "description": _first_line(cls),
        "properties": {wire: _schema(hints[name]) for name, wire in fields.items()},
    }
    required = [wire for name, wire in fields.items() if _required(hints[name])]
    if required:
        schema["required"] = required
    return schema


def _required(annotation: Any, otherwise: bool = False) -> bool:
    schema = schema_of(annotation)
    return otherwise if schema is None else schema.required


def _details(extra: Schema | None) -> Raw:
    if extra is None:
        return {}
    details: Raw = {
        "type": extra.type,
        "description": extra.description or None,
        "minimum": extra.minimum,
        "maximum": extra.maximum,
        "minLength": extra.min_length,
        "format": extra.format,
        "default": extra.default,
    }
    if extra.immutable:
        details["x-kubernetes-validations"] = [
            {"rule": "self == oldSelf", "message": "field is immutable"}
        ]
    return {name: value for name, value in details.items() if value is not None}


def _first_line(cls: type) -> str:
    return (cls.__doc__ or cls.__name__).strip().splitlines()[0]
