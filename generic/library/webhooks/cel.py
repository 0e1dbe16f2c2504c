"""CEL expressions that check a value like `actuator.checking`, from the same JSON Schema. Pure.

Each check is one expression and one message, without values. A null counts as an absent field, a
null in a list or a map is an error. The expressions never fail on any value: each step checks the
type first (Kubernetes documentation, "Common Expression Language in Kubernetes").
"""

import json
from collections.abc import Callable, Iterator
from typing import NamedTuple

from actuator.checking import expected
from actuator.meta import Raw
from generic.kube.crds import RULES

Wrap = Callable[[str], str]
"""Turn a check of the variable `v` into one of the whole object; the depth names variables."""

_TYPES = {
    "array": "list",
    "boolean": "bool",
    "integer": "int",
    "object": "map",
    "string": "string",
}
_LIMITS = {
    "minimum": "{v} >= {limit}",
    "maximum": "{v} <= {limit}",
    "minLength": "size({v}) >= {limit}",
    "maxLength": "size({v}) <= {limit}",
    "minItems": "size({v}) >= {limit}",
    "maxItems": "size({v}) <= {limit}",
    "minProperties": "size({v}) >= {limit}",
    "maxProperties": "size({v}) <= {limit}",
    "pattern": "{v}.matches({limit})",
    "enum": "{v} in {limit}",
}


class Check(NamedTuple):
    """A condition that every value has to meet."""

    expression: str
    message: str


def text(value: object) -> str:
    """Return a literal of CEL."""
    return json.dumps(value, ensure_ascii=False)


def at(value: str, name: str) -> str:
    """Return the expression for a field of a map."""
    return f"{value}[{text(name)}]"


def present(value: str, name: str) -> str:
    """Return whether a value is a map that has a field other than null."""
    return f"type({value}) == map && {text(name)} in {value} && {at(value, name)} != null"


def checks(schema: Raw, value: str, field: str) -> Iterator[Check]:
    """Yield the checks of a value by its schema; `field` is its path in messages."""
    yield from _of(schema, value, field, lambda check: check, 0)


def _of(schema: Raw, v: str, field: str, wrap: Wrap, depth: int) -> Iterator[Check]:
    types = [one["type"] for one in schema.get("anyOf", [schema]) if "type" in one]
    if types:
        is_one = " || ".join(_is(v, name) for name in types)
        limits = [
            f"(!({_fits(name, v)}) || {found})"
            for name, limit in schema.items()
            if (found := _limit(name, limit, v))
        ]
        whole = " && ".join([f"({is_one})", *limits])
        yield Check(wrap(whole), f"{field}: expected {expected(schema)}")
    if "items" in schema:
        item = f"i{depth}"
        yield from _of(
            schema["items"],
            item,
            f"{field}[]",
            lambda check: wrap(f"(type({v}) != list || {v}.all({item}, {check}))"),
            depth + 1,
        )
    if "properties" in schema:
        yield from _of_fields(schema, v, field, wrap, depth)
    elif isinstance(schema.get("additionalProperties"), dict):
        name = f"k{depth}"
        yield from _of(
            schema["additionalProperties"],
            f"{v}[{name}]",
            f"{field}.*",
            lambda check: wrap(f"(type({v}) != map || {v}.all({name}, {check}))"),
            depth + 1,
        )


def _of_fields(schema: Raw, v: str, field: str, wrap: Wrap, depth: int) -> Iterator[Check]:
    properties: Raw = schema["properties"]
    if schema.get("additionalProperties") is False:
        known = f"(type({v}) != map || {v}.all(n{depth}, n{depth} in {text(list(properties))}))"
        names = ", ".join(list(properties)[:20])
        yield Check(wrap(known), f"{field}: unknown field; use only {names}")
    for name, part in properties.items():
        where = f"{field}.{name}"
        if name in schema.get("required", ()):
            needed = f"(type({v}) != map || ({present(v, name)}))"
            yield Check(wrap(needed), f"{where}: required field missing; set {expected(part)}")

        def within(check: str, name: str = name) -> str:
            return wrap(f"(!({present(v, name)}) || {check})")

        yield from _of(part, at(v, name), where, within, depth + 1)


def _is(v: str, name: str) -> str:
    if name == "number":
        return f"type({v}) == int || type({v}) == type(1.0)"
    return f"type({v}) == {_TYPES[name]}"


def _fits(limit: str, v: str) -> str:
    """Return whether a constraint is for the type of a value."""
    if limit in ("minimum", "maximum"):
        return _is(v, "number")
    name = {"Items": "array", "Properties": "object"}.get(limit[3:], "string")
    return _is(v, name)


def _limit(name: str, limit: object, v: str) -> str:
    if name == "format":
        return f"({rule.format(v)})" if (rule := RULES.get(str(limit))) else ""
    template = _LIMITS.get(name)
    return "" if template is None else f"({template.format(v=v, limit=text(limit))})"
