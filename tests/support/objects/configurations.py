"""Configurations that a seeded generator makes from a schema: valid ones, and spoilt ones."""

from __future__ import annotations

import re._constants as sre  # type: ignore[import-not-found]  # private: no stubs
import re._parser as parser  # type: ignore[import-not-found]
from copy import deepcopy
from ipaddress import ip_network
from random import Random
from typing import Any

from actuator.checking import PATTERNS
from actuator.meta import Raw

ODD: list[Any] = [
    None, True, False, 0, 1, -1, 1.0, 1.5, -0.5, 3, 4, 2**31, 2**53 + 1, 2**63 - 1, 2**63,
    -(2**63), -(2**63) - 1, 10**30, 1e300, "", "x", "X", " ", "a\n", "\x0b", "\n", "é", "😀",
    "😀😀😀", "\u212a", "\u0663", "\u017f", "0", "1", "true", "x" * 70, "a-", "-a", "10.0.0.0/8",
    "10.0.0.1/8", "10.0.0.0/08", "10.0.0.0", "10.0.0.0/255.0.0.0", "010.0.0.0/8", "10.0.0.0/33",
    "10.0.0.0/-1", "10.0.0.0/8 ", " ::1", "::/0", "::", "::1", "::1/127", "::ffff:10.0.0.0",
    "::ffff:10.0.0.0/104", "::ffff:a00:0/104", "fe80::%a/64", "fe80::1%a", "1::2:3:4:5:6:7",
    "1:2:3:4:5:6:7::", "::1:2:3:4:5:6:7:8", "64:ff9b::1.2.3.4", "FE80::/10", "00001::", "1.2.3",
    "1.2.3.4.5", "100m", "1.5Gi", ".5", "1.", "1e3", "-1k", "1h30m", "1.5h", "-1h", "1 h", "1d",
    "0", "µs", "1µs", "1μs", "a.b", "a..b", "a.B", "-a.b", "a" * 63, "a" * 64, f"{'a.' * 126}a",
    f"{'a.' * 127}a", "https://a/b?c#d", "https://u:p@a", "https://a:1/ ", "https://[::1]:1",
    "https://é", "//a", "s3://a.b/", 0.5,
    "0.0.0.0/0", "10.0.0.0/8/8", "12", "https://", "https://a", [], {}, [None], [[]],
    {"a": None}, {"": 1}, {"a": 1}, ["a", 1], {"apiVersion": "v1", "kind": "Other"},
]  # fmt: skip
"""Values that Python and the API server could see differently."""


def valid(schema: Raw, rng: Random, depth: int = 0) -> Any:
    """Return a value that fits."""
    if "anyOf" in schema:
        schema = rng.choice(schema["anyOf"])
    if "enum" in schema:
        return rng.choice(schema["enum"])
    match schema.get("type"):
        case "string":
            return _text(schema, rng)
        case "integer" | "number":
            low = schema.get("minimum", -5)
            high = schema.get("maximum", 9000)
            return rng.choice([low, high, rng.randint(low, high)])
        case "boolean":
            return rng.random() < 0.5
        case "array":
            return [
                valid(schema["items"], rng, depth + 1) for _ in range(_size("Items", schema, rng))
            ]
        case "object" if "properties" in schema:
            required = schema.get("required", ())
            return {
                name: valid(part, rng, depth + 1)
                for name, part in schema["properties"].items()
                if name in required or rng.random() < 0.7
            }
        case "object":
            part = schema.get("additionalProperties", {})
            count = _size("Properties", schema, rng)
            return {f"k{index}": valid(part, rng, depth + 1) for index in range(count)}
    return deepcopy(rng.choice(ODD))


def spoilt(schema: Raw, rng: Random) -> Any:
    """Return a value in which something was changed, so that it may not fit any more."""
    value = valid(schema, rng)
    for _ in range(rng.choice([1, 1, 1, 2])):
        value = changed(value, rng)
    return value


def changed(value: Any, rng: Random) -> Any:
    """Return the value with one change."""
    inner = len(value) if isinstance(value, dict | list) else 0
    if inner and rng.random() < 0.9:
        value = value.copy()
        at = rng.choice(list(value) if isinstance(value, dict) else range(len(value)))
        if rng.random() < 0.15:
            del value[at]
        else:
            value[at] = changed(value[at], rng)
        return value
    kind = rng.random()
    if isinstance(value, dict) and kind < 0.5:
        return {**value, rng.choice(["unknown", "", "a b", "Kind"]): deepcopy(rng.choice(ODD))}
    if isinstance(value, list) and kind < 0.5:
        return [*value, *value, deepcopy(rng.choice(ODD))][: rng.randint(1, 8)]
    if isinstance(value, str) and kind < 0.5:
        at = rng.randint(0, len(value))
        return (
            value[:at]
            + rng.choice(["", "a", "0", "A", "é", "😀", "\n", "/", "\u0663"])
            + value[at + 1 :]
        )
    if isinstance(value, int | float) and not isinstance(value, bool) and kind < 0.5:
        return value + rng.choice([-1, 1, 0.5, 0.0])
    return deepcopy(rng.choice(ODD))


def equal(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: no boolean is a number."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _size(what: str, schema: Raw, rng: Random) -> int:
    low = schema.get(f"min{what}", 0)
    return rng.randint(low, schema.get(f"max{what}", low + 3))


def _text(schema: Raw, rng: Random) -> str:
    if "pattern" in schema and schema.get("format") is None:
        return _matching(parser.parse(schema["pattern"]), rng)
    match schema.get("format"):
        case "cidr" if "example" in schema and "pattern" in schema:
            return str(schema["example"])
        case "cidr":
            size = rng.randint(1, 32)
            return str(ip_network((rng.getrandbits(32), size), strict=False))
        case "ip":
            return str(ip_network(rng.choice([rng.getrandbits(32), rng.getrandbits(128)])))[
                :-3
            ].rstrip("/")
        case "byte":
            return "YQ=="
        case "quantity" | "duration" | "dns-label" | "dns-name" | "url" as name:
            return _matching(parser.parse(PATTERNS[name][0]), rng)
    letters = "ab-0é😀 "
    return "".join(rng.choice(letters) for _ in range(_size("Length", schema, rng)))


def _matching(nodes: Any, rng: Random) -> str:
    return "".join(_one(op, argument, rng) for op, argument in nodes)


def _one(op: Any, argument: Any, rng: Random) -> str:
    match op:
        case sre.LITERAL:
            return chr(argument)
        case sre.NOT_LITERAL | sre.ANY:
            return "é" if op is sre.ANY or argument != ord("é") else "a"
        case sre.SUBPATTERN:
            return _matching(argument[3], rng)
        case sre.BRANCH:
            return _matching(rng.choice(argument[1]), rng)
        case sre.MAX_REPEAT | sre.MIN_REPEAT:
            low, high, inner = argument
            return "".join(
                _matching(inner, rng) for _ in range(rng.randint(low, min(high, low + 3)))
            )
        case sre.IN:
            if argument[0][0] is sre.NEGATE:
                return "~"
            chosen, part = rng.choice(argument)
            return _one(chosen, part, rng)
        case sre.RANGE:
            return chr(rng.randint(*argument))
        case sre.CATEGORY:
            return {"CATEGORY_DIGIT": "7", "CATEGORY_WORD": "w"}.get(str(argument), "!")
    return ""  # an anchor
