"""Checks a value against the JSON Schema of a class, and says what is expected in which field.

A null counts as an absent field, as in Kubernetes. No message contains a value of an unknown field,
the entries of a list or map of a wrong length, or a value with the format "password". Bounded for
values of any size. Pure.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from ipaddress import IPv6Address, ip_network
from itertools import islice
from typing import Any

from actuator.meta import Raw, value_at
from actuator.schema import LIST_KEYS, decodable, json_schema
from actuator.suggestions import closest

MAX_PROBLEMS = 20
_SHOWN = 60
"""Maximum characters of a name or a value in a message."""
TYPES: dict[str, tuple[str, tuple[type, ...]]] = {
    "array": ("a list", (list,)),
    "boolean": ("a boolean", (bool,)),
    "integer": ("an integer", (int,)),
    "number": ("a number", (int, float)),
    "object": ("an object", (dict,)),
    "string": ("a string", (str,)),
}
FORMATS = {
    "cidr": "the first address of a range and its prefix length",
    "dns-label": "a DNS label of lower-case letters, digits and hyphens",
    "dns-name": "a DNS name of lower-case labels",
    "duration": "a duration such as 1h30m",
    "ip": "an address of IPv4 or IPv6",
    "quantity": "a quantity such as 100m or 2Gi",
    "url": "a URL with scheme and host, without credentials",
}
"""The formats that are checked, and what they expect."""
_LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_HOST = r"([a-zA-Z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?|\[[0-9a-fA-F:.]+\])"
_NUMBER = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)"
PATTERNS = {
    "dns-label": (_LABEL, 63),
    "dns-name": (rf"{_LABEL}(\.{_LABEL})*", 253),
    "duration": (f"0|({_NUMBER}(ns|us|µs|μs|ms|s|m|h))+", 64),
    "quantity": (f"[+-]?{_NUMBER}([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{{1,3}})?", 64),
    "url": (rf"[a-z][a-z0-9+.-]*://{_HOST}(:[0-9]{{1,5}})?([/?#][!-~]*)?", 2048),
}
"""The formats that are a pattern, with the maximum length of a text."""
_NOTATIONS = {"cidr": r"[\w.:]+/(0|[1-9]\d*)", "ip": r"[\w.:]+"}
CONSTRAINTS: dict[str, tuple[str, tuple[type, ...], str]] = {
    "enum": ("one of {}", (str,), "in"),
    "minimum": ("at least {}", (int, float), ">="),
    "maximum": ("at most {}", (int, float), "<="),
    "minLength": ("characters: at least {}", (str,), ">="),
    "maxLength": ("characters: at most {}", (str,), "<="),
    "minItems": ("entries: at least {}", (list,), ">="),
    "maxItems": ("entries: at most {}", (list,), "<="),
    "minProperties": ("entries: at least {}", (dict,), ">="),
    "maxProperties": ("entries: at most {}", (dict,), "<="),
    "pattern": ("pattern {}", (str,), "matches"),
    "format": ("{}", (str,), "format"),
}
"""Of each keyword its phrase in messages, the types that it is for, and how a value compares.

The size of a text, a list or a map compares with a number.
"""


def check(
    cls: type, value: object, field: str = "", *, closed: bool = True
) -> list[tuple[str, str]]:
    """Return the first MAX_PROBLEMS problems of a value, each as path and description.

    `field` is the path of the value itself. Unless `closed`, the only problems are values that
    `codec.decode` refuses. Raises TypeError if the class has no schema.
    """
    return list(islice(problems(_cached(cls, closed), value, field), MAX_PROBLEMS))


def described(cls: type, value: object) -> str:
    """Return the problems that `check` finds in one line; unknown fields are none."""
    found = check(cls, value, closed=False)
    return "; ".join(f"{field}: {text}" if field else text for field, text in found)


@lru_cache(maxsize=256)
def _cached(cls: type, closed: bool) -> Raw:
    return json_schema(cls) if closed else decodable(cls)


def constraints(schema: Raw) -> Iterator[str]:
    """Yield a phrase for each constraint of a schema beyond the type."""
    for name, (phrase, *_) in CONSTRAINTS.items():
        limit = schema.get(name)
        if name == "format":
            limit = FORMATS.get(str(limit))
        if limit is not None:
            text = ", ".join(limit) if isinstance(limit, list) else str(limit)
            words = "{}" if limit == [text] else phrase  # the only valid value
            yield words.format(text.removeprefix("^(?:").removesuffix(")$"))


def problems(schema: Raw, value: Any, field: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the description of each problem of a value at `field`."""
    types = types_of(schema)
    if types and not any(_is_a(name, value) for name in types):
        named = [phrase for phrase, known in TYPES.values() if type(value) in known]
        if named and any(type(value) in TYPES[name][1] for name in types):
            named = ["one of more than 64 bits"]
        got = "null" if value is None else type(value).__name__  # the latter is no JSON
        yield field, f"expected {expected(schema)}, got {named[0] if named else got}"
    elif not all(
        _fits(value, operator, schema[name])
        for name, (_, types_of_it, operator) in CONSTRAINTS.items()
        if name in schema and isinstance(value, types_of_it)
    ):
        got = "a secret value" if schema.get("format") == "password" else shown(value)
        got = f"{len(value)} entries" if isinstance(value, list | dict) else got
        yield field, f"expected {expected(schema)}, got {got}"
    elif isinstance(value, list) and "items" in schema:
        for name, item, is_duplicate in _entries(schema, value):
            if is_duplicate:
                yield f"{field}[{name}]", "is a duplicate; keep one of them"
            yield from problems(schema["items"], item, f"{field}[{name}]")
    elif isinstance(value, dict) and "properties" in schema:
        yield from _problems_of_fields(schema, value, field)
    elif isinstance(value, dict) and "additionalProperties" in schema:  # a map
        for name, item in value.items():
            yield from problems(schema["additionalProperties"], item, _join(field, name))


def _entries(schema: Raw, value: list[Any]) -> Iterator[tuple[object, Any, bool]]:
    """Yield the key, or else the index, of each entry, and whether an earlier one has the key."""
    seen = set()
    for index, item in enumerate(value):
        key = key_of(schema, item)
        yield index if key is None else _named(key), item, key in seen
        seen |= {key} - {None}


def key_of(schema: Raw, item: object) -> str | int | None:
    """Return the key of an entry of a list with this schema, None without one."""
    key = value_at(item, *schema[LIST_KEYS]) if LIST_KEYS in schema else None
    return key if isinstance(key, str | int) else None


def _problems_of_fields(schema: Raw, value: Raw, field: str) -> Iterator[tuple[str, str]]:
    known: Raw = schema["properties"]
    enums = {name: known.get(name, {}).get("enum", ()) for name in ("apiVersion", "kind")}
    valid = {name: enum[0] for name, enum in enums.items() if len(enum) == 1}
    got = {name: valid[name] if value.get(name) is None else value[name] for name in valid}
    if got != valid:  # another configuration, which has other fields
        wanted = " and ".join(f"{name} {constant}" for name, constant in valid.items())
        yield field, f"{' '.join(map(_named, got.values()))} is not supported; set {wanted}"
        return
    for name in value:
        if name not in known and schema.get("additionalProperties") is False:
            yield field, f"unknown field {_named(name)}; {_remedy(name, known)}"
    for name, part in known.items():
        if (item := value.get(name)) is not None:
            yield from problems(part, item, _join(field, name))
        elif name in schema.get("required", ()):
            yield _join(field, name), f"required field missing; set {expected(part)}"


def _is_a(name: str, value: object) -> bool:
    if name == "integer" and isinstance(value, int) and not -(2**63) <= value < 2**63:
        return False  # the API server reads a float
    return type(value) in TYPES[name][1] or (name == "string" and isinstance(value, str))


def _fits(value: Any, operator: str, limit: Any) -> bool:
    match operator:
        case "in":
            return value in limit
        case "matches":
            return re.fullmatch(limit, value, re.ASCII) is not None
        case "format" if limit in PATTERNS:
            pattern, longest = PATTERNS[limit]
            return len(value) <= longest and _fits(value, "matches", pattern)
        case "format":
            return limit not in _NOTATIONS or _is_range(value, limit)
    measured = len(value) if isinstance(value, str | list | dict) else value
    return bool(measured >= limit if operator == ">=" else measured <= limit)


def _is_range(text: str, format: str = "cidr") -> bool:
    """Whether the API server accepts a range or address: no IPv4 in IPv6, no leading zeros."""
    if re.fullmatch(_NOTATIONS[format], text, re.ASCII) is None:
        return False
    try:
        address = ip_network(text).network_address
    except ValueError:
        return False
    return not isinstance(address, IPv6Address) or address.ipv4_mapped is None


def expected(schema: Raw) -> str:
    """Describe the values that fit a schema."""
    listed = ", ".join(constraints(schema))
    if "enum" in schema:
        return listed
    phrase = " or ".join(TYPES[name][0] for name in types_of(schema))
    example = f" like {schema['example']!r}" if "example" in schema else ""
    return f"{phrase}{example}{listed and f' ({listed})'}"


def types_of(schema: Raw) -> list[str]:
    """Return the JSON types of the values, more than one for int-or-string, none for any."""
    return [item["type"] for item in schema.get("anyOf", [schema]) if "type" in item]


def _remedy(name: str, known: Iterable[str]) -> str:
    """Suggest the known field that was probably meant; else list the known ones."""
    if found := closest(name, known):
        return f"did you mean {found}?"
    return f"remove it, or use one of {', '.join(islice(known, MAX_PROBLEMS))}"


def _join(field: str, name: str) -> str:
    return f"{field}.{_named(name)}".lstrip(".")


def _named(name: object) -> str:
    plain = isinstance(name, str) and re.fullmatch(r"[\w./-]+", name[: _SHOWN + 1], re.ASCII)
    return str(name) if plain and len(str(name)) <= _SHOWN else shown(name)


def shown(value: object) -> str:
    """Return a value as it is in a message: at most 60 characters of it."""
    text = repr(value[: _SHOWN + 1] if isinstance(value, str) else value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
