"""Configurations that a seeded generator makes from a schema: valid ones, and spoilt ones."""

from __future__ import annotations

import re._constants as sre
import re._parser as parser
from copy import deepcopy
from ipaddress import ip_network
from random import Random
from typing import Any

from actuator.meta import Raw

ODD: list[Any] = [
    None, True, False, 0, 1, -1, 1.0, 1.5, -0.5, 3, 4, 2**31, 2**53 + 1, 2**63 - 1, 2**63,
    -(2**63), -(2**63) - 1, 10**30, 1e300, "", "x", "X", " ", "a\n", "\x0b", "\n", "é", "😀",
    "😀😀😀", "\u212a", "\u0663", "\u017f", "0", "1", "true", "x" * 70, "a-", "-a", "10.0.0.0/8",
    "10.0.0.1/8", "10.0.0.0/08", "10.0.0.0", "10.0.0.0/255.0.0.0", "010.0.0.0/8", "10.0.0.0/33",
    "10.0.0.0/-1", "10.0.0.0/8 ", " ::1", "::/0", "::", "::1", "::1/127", "::ffff:10.0.0.0",
    "::ffff:10.0.0.0/104", "::ffff:a00:0/104", "fe80::%a/64", "fe80::1%a", "1::2:3:4:5:6:7",
    "1:2:3:4:5:6:7::", "::1:2:3:4:5:6:7:8", "64:ff9b::1.2.3.4", "FE80::/10", "00001::", "1.2.3",
    "1.2.3.4.5", "0.0.0.0/0", "10.0.0.0/8/8", "12", "https://", "https://a", [], {}, [None], [[]],
    {"a": None}, {"": 1}, {"a": 1}, ["a", 1], {"apiVersion": "v1", "kind": "Other"},
]  # fmt: skip
"""Values that Python and the API server could see differently."""


def valid(schema: Raw, dice: Random, depth: int = 0) -> Any:
    """Return a value that fits."""
    if "anyOf" in schema:
        schema = dice.choice(schema["anyOf"])
    if "enum" in schema:
        return dice.choice(schema["enum"])
    match schema.get("type"):
        case "string":
            return _text(schema, dice)
        case "integer" | "number":
            low, high = schema.get("minimum", -5), schema.get("maximum", 9000)
            return dice.choice([low, high, dice.randint(low, high)])
        case "boolean":
            return dice.random() < 0.5
        case "array":
            return [
                valid(schema["items"], dice, depth + 1) for _ in range(_size("Items", schema, dice))
            ]
        case "object" if "properties" in schema:
            required = schema.get("required", ())
            return {
                name: valid(part, dice, depth + 1)
                for name, part in schema["properties"].items()
                if name in required or dice.random() < 0.7
            }
        case "object":
            part = schema.get("additionalProperties", {})
            count = _size("Properties", schema, dice)
            return {f"k{index}": valid(part, dice, depth + 1) for index in range(count)}
    return deepcopy(dice.choice(ODD))


def spoilt(schema: Raw, dice: Random) -> Any:
    """Return a value in which something was changed, so that it may not fit any more."""
    value = valid(schema, dice)
    for _ in range(dice.choice([1, 1, 1, 2])):
        value = changed(value, dice)
    return value


def changed(value: Any, dice: Random) -> Any:
    """Return the value with one change."""
    inner = len(value) if isinstance(value, dict | list) else 0
    if inner and dice.random() < 0.9:
        value = value.copy()
        at = dice.choice(list(value) if isinstance(value, dict) else range(len(value)))
        if dice.random() < 0.15:
            del value[at]
        else:
            value[at] = changed(value[at], dice)
        return value
    kind = dice.random()
    if isinstance(value, dict) and kind < 0.5:
        return {**value, dice.choice(["unknown", "", "a b", "Kind"]): deepcopy(dice.choice(ODD))}
    if isinstance(value, list) and kind < 0.5:
        return [*value, *value, deepcopy(dice.choice(ODD))][: dice.randint(1, 8)]
    if isinstance(value, str) and kind < 0.5:
        at = dice.randint(0, len(value))
        return (
            value[:at]
            + dice.choice(["", "a", "0", "A", "é", "😀", "\n", "/", "\u0663"])
            + value[at + 1 :]
        )
    if isinstance(value, int | float) and not isinstance(value, bool) and kind < 0.5:
        return value + dice.choice([-1, 1, 0.5, 0.0])
    return deepcopy(dice.choice(ODD))


def _size(what: str, schema: Raw, dice: Random) -> int:
    low = schema.get(f"min{what}", 0)
    return dice.randint(low, schema.get(f"max{what}", low + 3))


def _text(schema: Raw, dice: Random) -> str:
    if "pattern" in schema and schema.get("format") is None:
        return _matching(parser.parse(schema["pattern"]), dice)
    match schema.get("format"):
        case "cidr" if "example" in schema and "pattern" in schema:
            return str(schema["example"])
        case "cidr":
            size = dice.randint(1, 32)
            return str(ip_network((dice.getrandbits(32), size), strict=False))
        case "ip":
            return str(ip_network(dice.choice([dice.getrandbits(32), dice.getrandbits(128)])))[
                :-3
            ].rstrip("/")
        case "byte":
            return "YQ=="
    letters = "ab-0é😀 "
    return "".join(dice.choice(letters) for _ in range(_size("Length", schema, dice)))


def _matching(nodes: Any, dice: Random) -> str:
    return "".join(_one(op, argument, dice) for op, argument in nodes)


def _one(op: Any, argument: Any, dice: Random) -> str:
    match op:
        case sre.LITERAL:
            return chr(argument)
        case sre.NOT_LITERAL | sre.ANY:
            return "é" if op is sre.ANY or argument != ord("é") else "a"
        case sre.SUBPATTERN:
            return _matching(argument[3], dice)
        case sre.BRANCH:
            return _matching(dice.choice(argument[1]), dice)
        case sre.MAX_REPEAT | sre.MIN_REPEAT:
            low, high, inner = argument
            return "".join(
                _matching(inner, dice) for _ in range(dice.randint(low, min(high, low + 3)))
            )
        case sre.IN:
            return _one(*dice.choice(argument), dice) if argument[0][0] is not sre.NEGATE else "~"
        case sre.RANGE:
            return chr(dice.randint(*argument))
        case sre.CATEGORY:
            return {"CATEGORY_DIGIT": "7", "CATEGORY_WORD": "w"}.get(str(argument), "!")
    return ""  # an anchor
