"""Immutable fields of configurations: where they are, and which of them changed. Pure.

`generic.library.webhooks.cel` makes expressions from the same `immutable_fields`. A value equal to
its default is no change. An empty field can be set, unless it is "always" immutable.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from actuator.checking import key_of, shown, types_of
from actuator.interface import FieldProblem
from actuator.meta import Raw
from actuator.schema import ALWAYS, LIST_KEYS, content_of

UNCHANGED = "field is immutable; set its former value"
ABSENT = "field is immutable; remove its value"
_SCALARS = {"boolean", "integer", "number", "string"}


Step = tuple[Raw, str, Raw]
"""From a value to a field, or to each entry: its schema, the field or "", and the other schema."""


def immutable_fields(
    schema: Raw, path: str = "", steps: tuple[Step, ...] = ()
) -> Iterator[tuple[str, tuple[Step, ...], Raw]]:
    """Yield the path of each immutable field, such as ".zones[].id", its steps and its schema.

    Raises TypeError for one in a list without key, whose entries cannot be matched.
    """
    if "x-kubernetes-validations" in schema:
        yield path, steps, schema
        return
    for name, part in schema.get("properties", {}).items():
        yield from immutable_fields(part, f"{path}.{name}", (*steps, (schema, name, part)))
    if part := content_of(schema):
        suffix = "[]" if "items" in schema else ".*"
        for found in immutable_fields(part, path + suffix, (*steps, (schema, "", part))):
            if "items" in schema and LIST_KEYS not in schema:
                remedy = "declare the field so, or name the key of an entry: Schema(key=…)"
                raise TypeError(f"{path.strip('.')}: entries cannot be immutable; {remedy}")
            yield found


def changes(schema: Raw, old: Any, new: Any, field: str) -> Iterator[FieldProblem]:
    """Yield a problem for each immutable field that changed; `schema` is that of `comparable`."""
    forms = (_form(schema, old), _form(schema, new))
    for _, steps, part in immutable_fields(schema):
        empty = [None, _form(part, None)] if part.get("default") in ("", [], {}) else [None]
        is_always = ALWAYS in part["x-kubernetes-validations"]
        for where, before, after in _matched(steps, *forms, field):
            if before != after and (is_always or before not in empty):
                yield FieldProblem(field=where, detail=_detail(part, before, after))


def has_shown_value(schema: Raw) -> bool:
    """Whether messages contain the values of the field: it is a scalar, and no secret."""
    types = {*types_of(schema)}
    return bool(types) and types <= _SCALARS and schema.get("format") != "password"


def _detail(schema: Raw, before: Any, after: Any) -> str:
    """Describe the change of a field; `before` and `after` are forms."""
    old, new = (form[0] if isinstance(form, tuple) else form for form in (before, after))
    if not has_shown_value(schema) or isinstance(old, list | dict):
        return UNCHANGED
    got = "null" if new is None else shown(new)
    if isinstance(new, list | dict):
        got = f"{len(new)} entries"
    return f"{ABSENT} {got}" if old is None else f"{UNCHANGED} {shown(old)} instead of {got}"


def _matched(
    steps: Sequence[Step], old: Any, new: Any, field: str
) -> Iterator[tuple[str, Any, Any]]:
    """Yield the path and both forms of each field at the end of the steps."""
    if not steps:
        yield field, old, new
        return
    schema, name, part = steps[0]
    if name:
        default = {name: _form(part, None)}
        old, new = (value if isinstance(value, dict) else default for value in (old, new))
    elif not isinstance(old, dict) or not isinstance(new, dict):
        return
    for key in [name] if name else (old.keys() & new.keys()) - {None}:
        where = f"{field}[{key}]" if "items" in schema else f"{field}.{key}"
        pairs = product(old[key], new[key]) if "items" in schema else [(old[key], new[key])]
        for before, after in pairs:
            yield from _matched(steps[1:], before, after, where)


def _form(schema: Raw, value: Any) -> Any:
    """Return a form of a value that is equal for equal values: with defaults, entries by key."""
    if value is None:
        value = schema.get("default")
    if isinstance(value, dict) and "properties" in schema:
        return {name: _form(part, value.get(name)) for name, part in schema["properties"].items()}
    if isinstance(value, dict):
        return {name: _form(content_of(schema), item) for name, item in value.items()}
    if isinstance(value, list):
        forms = [_form(content_of(schema), item) for item in value]
        by_key: dict[Any, Any] = {}
        for item, form in zip(value, forms, strict=True):
            by_key.setdefault(key_of(schema, item), []).append(form)
        return by_key if LIST_KEYS in schema else forms
    return (value,) if isinstance(value, bool) else value  # True is 1 in Python
