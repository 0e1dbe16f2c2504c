"""CEL expressions that check a value like `actuator.checking`, from the same JSON Schema. Pure.

Each check is one expression, one message without values, and the parts of a text with index and
value, which an API server can evaluate only if the check is false. A null counts as an absent
field, a null in a list or a map is an error. The expressions never fail on any value: each step
checks the type first (Kubernetes documentation, "Common Expression Language in Kubernetes").
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import and_

from actuator.checking import CONSTRAINTS, PATTERNS, TYPES, expected, types_of
from actuator.immutability import ABSENT, UNCHANGED, Step, has_shown_value, immutable_fields
from actuator.meta import Raw
from actuator.schema import ALWAYS, LIST_KEYS, content_of
from generic.kube.crds import RULES
from generic.kube.expressions import Expr, call, choose, joined, literal

Parts = tuple[str | Expr, ...]
CelCheck = tuple[Expr, str, Parts]
"""A condition that every value has to meet, the message otherwise, and the parts of a text: path
and problem of the first value that does not meet it."""
_PRINTABLE = "^[ -~]{0,60}$"
"""The texts that a message contains; a message of several lines would be dropped."""


def checks(schema: Raw, v: Expr, field: str, depth: int = 0) -> Iterator[CelCheck]:
    """Yield the checks of a value by its schema; `field` is its path in messages."""
    yield from _own(schema, v, field, depth)
    for name, part in schema.get("properties", {}).items():
        for check, message, parts in checks(part, v[name], f"{field}.{name}", depth + 1):
            yield ~v.has(name) | check, message, (f".{name}", *parts)
    if part := content_of(schema):
        kind, i, entry = _entry(schema, v, depth)
        where = f"{field}{'[]' if kind is list else '.*'}"
        for check, message, parts in checks(part, entry, where, depth + 1):
            found = _first(v, kind, i, check, parts)
            yield ~v.is_a(kind) | v.method("all", i, check), message, (found,)


def valid(schema: Raw, v: Expr, depth: int = 0) -> list[Expr]:
    """Return expressions that are all true if all checks are, and cost less than these."""
    found = [check for check, *_ in _own(schema, v, "", depth)]
    for name, part in schema.get("properties", {}).items():
        if inner := valid(part, v[name], depth + 1):
            found.append(~v.has(name) | reduce(and_, inner))
    if part := content_of(schema):
        kind, i, entry = _entry(schema, v, depth)
        if inner := valid(part, entry, depth + 1):
            found.append(~v.is_a(kind) | v.method("all", i, reduce(and_, inner)))
    return found


def _entry(schema: Raw, v: Expr, depth: int) -> tuple[type, Expr, Expr]:
    """Return the type of a list or a map, a variable for its items or keys, and an entry."""
    i = Expr(f"i{depth}")
    return (list, i, i) if "items" in schema else (dict, i, v[i])


def _own(schema: Raw, v: Expr, field: str, depth: int) -> Iterator[CelCheck]:
    """Yield the checks of a value, without those of its fields and entries."""
    if types := [cls for name in types_of(schema) for cls in TYPES[name][1]]:
        limits = [
            ~v.is_a(*limited) | _limit(v, name, schema[name])
            for name, (_, limited, _) in CONSTRAINTS.items()
            if name in schema and (name != "format" or schema[name] in {**PATTERNS, **RULES})
        ]
        text = f": expected {expected(schema)}"
        yield reduce(and_, limits, v.is_a(*types)), field + text, (text, ", got ", _got(schema, v))
    i, j, n = (Expr(f"{name}{depth}") for name in "ijn")
    if LIST_KEYS in schema:
        once = call("size", v.method("filter", j, _keyed(i, j, schema))).relation("<=", 1)
        text = ": is a duplicate; keep one of them"
        unique = ~v.is_a(list) | v.method("all", i, once)
        yield unique, f"{field}[]{text}", (_first(v, list, i, once, (text,)),)
    if schema.get("additionalProperties") is False:
        is_known = n.relation("in", [*schema["properties"]])
        text = f"; use only {', '.join(list(schema['properties'])[:20])}"
        unknown = v.method("filter", n, ~is_known)[0]
        known = ~v.is_a(dict) | v.method("all", n, is_known)
        yield known, f"{field}: unknown field{text}", (": unknown field ", unknown, text)
    for name in schema.get("required", ()):
        text = f".{name}: required field missing; set {expected(schema['properties'][name])}"
        yield ~v.is_a(dict) | v.has(name), field + text, (text,)


def _first(v: Expr, kind: type, i: Expr, check: Expr, parts: Parts) -> Expr:
    """Return the text about the first entry of a list or a map for which a check is false."""
    index = call("string", v.method("indexOf", i))
    where: Parts = ("[", index, "]") if kind is list else (".", i)
    return v.method("filter", i, ~check).method("map", i, joined(*where, *parts))[0]


def _got(schema: Raw, v: Expr) -> Expr:
    """Return the text of a value in a message: no secret, and no text that is long or invisible."""
    if schema.get("format") == "password":
        return literal("a secret value")
    shown = choose(v.method("matches", _PRINTABLE), joined("'", v, "'"), "a longer string")
    text = shown if "string" in types_of(schema) else literal("a string")
    entries = joined(call("string", call("size", v)), " entries")
    scalar = choose(v.equals(None), "null", call("string", v))
    return choose(v.is_a(str), text, choose(v.is_a(list, dict), entries, scalar))


def _limit(v: Expr, name: str, limit: object) -> Expr:
    """Return whether a value of a fitting type fits, like `checking` does."""
    _, (cls, *_), operator = CONSTRAINTS[name]
    if name == "format" and limit in RULES:
        return RULES[str(limit)](v)
    if name == "format":
        pattern, longest = PATTERNS[str(limit)]
        return _limit(v, "maxLength", longest) & _limit(v, "pattern", f"^(?:{pattern})$")
    if operator == "matches":
        return v.method("matches", limit)
    is_sized = operator != "in" and cls in (str, list, dict)
    return (call("size", v) if is_sized else v).relation(operator, limit)


def changes(schema: Raw, old: Expr, new: Expr, field: str) -> Iterator[CelCheck]:
    """Yield the checks of immutable fields, like `immutability.changes`; values are variables."""
    for path, steps, part in immutable_fields(schema):
        text = f"{path}: {UNCHANGED}"
        is_shown = has_shown_value(part) and all(name for _, name, _ in steps)
        said = (f"{path}: ", _change(steps, part, old, new, 0)) if is_shown else (text,)
        yield _unchanged(steps, part, old, new, 0), field + text, said


def _change(steps: Sequence[Step], schema: Raw, o: Expr, n: Expr, depth: int) -> Expr:
    """Return the text about the change of a field, like `immutability.changes`."""
    if not steps:
        old, new = (_got(schema, value) for value in (o, n))
        change = joined(f"{UNCHANGED} ", old, " instead of ", new)
        return choose(o.equals(None), joined(f"{ABSENT} ", new), change)
    x, y = (Expr(f"{name}{depth}") for name in "on")
    _, name, part = steps[0]
    inner = _change(steps[1:], schema, x, y, depth + 1)
    found = literal([_field(n, name, part)]).method("map", y, inner)[0]
    return literal([_field(o, name, part)]).method("map", x, found)[0]


def _unchanged(steps: Sequence[Step], schema: Raw, o: Expr, n: Expr, depth: int) -> Expr:
    """Return whether the fields at the end of the steps may have these values."""
    x, y, k = (Expr(f"{name}{depth}") for name in "onk")
    if not steps:
        same = _same(schema, o, n, depth)
        is_empty = o.equals(None)
        if (default := schema.get("default")) in ("", [], {}):
            is_empty |= _same(schema, o, call("dyn", default), depth)
        return same if ALWAYS in schema["x-kubernetes-validations"] else is_empty | same
    holder, name, part = steps[0]
    inner = _unchanged(steps[1:], schema, x, y, depth + 1)
    if name:
        return _named(_field(o, name, part), _field(n, name, part), x, y, inner)
    if "items" in holder:
        one = n.method("all", y, o.method("all", x, ~_keyed(x, y, holder) | inner))
        return ~(o.is_a(list) & n.is_a(list)) | one
    one = n.method("all", k, ~k.relation("in", o) | _named(o[k], n[k], x, y, inner))
    return ~(o.is_a(dict) & n.is_a(dict)) | one


def _same(schema: Raw, o: Expr, n: Expr, depth: int) -> Expr:
    """Return whether the variables have equal values, also by the defaults of their fields."""
    x, y, k = (Expr(f"{name}{depth}") for name in "onk")
    kind: type = dict
    if "properties" in schema:
        fields = schema["properties"].items()
        named = ((_field(o, name, part), _field(n, name, part), part) for name, part in fields)
        equal = reduce(
            and_, (_named(old, new, x, y, _same(part, x, y, depth + 1)) for old, new, part in named)
        )
    elif (part := content_of(schema)) and "items" not in schema:
        inner = _named(o[k], n[k], x, y, _same(part, x, y, depth + 1))
        equal = call("size", o).equals(call("size", n)) & o.method(
            "all", k, k.relation("in", n) & inner
        )
    elif part:
        kind = list
        inner = _same(part, x, y, depth + 1)
        if LIST_KEYS in schema:
            found = n.method("all", y, o.method("exists", x, _keyed(x, y, schema) & inner))
        else:
            found = o.method("all", k, x, literal([n[k]]).method("all", y, inner))
        equal = call("size", o).equals(call("size", n)) & found
    else:
        return o.equals(n)
    return choose(o.is_a(kind) & n.is_a(kind), equal, o.equals(n))


def _named(old: Expr, new: Expr, o: Expr, n: Expr, check: Expr) -> Expr:
    """Return the check with names for the two expressions, so that it has each only once."""
    return literal([old]).method("all", o, literal([new]).method("all", n, check))


def _field(value: Expr, name: str, schema: Raw) -> Expr:
    """Return the value of a field, or its default."""
    default = call("dyn", schema.get("default"))
    return call("dyn", choose(value.has(name), value[name], default))


def _keyed(o: Expr, n: Expr, schema: Raw) -> Expr:
    """Return whether two entries have the same key."""
    (key,) = schema[LIST_KEYS]
    return o.has(key) & n.has(key) & o[key].equals(n[key])
