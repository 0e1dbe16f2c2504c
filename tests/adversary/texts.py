"""Hostile JSON text that an API server accepts. Pure: the same seed gives the same text."""

from __future__ import annotations

import json
import random
import re
from typing import Any

from actuator.meta import Raw

__all__ = ["conforming", "depth", "document", "shallow", "string", "value"]

_LEVELS = {20: 8, 150: 8, 250: 16, 900: 8, 1100: 8, 2000: 4, 5000: 1, 9980: 1}
"""Levels of deep documents, and how often."""
_CHEAP = 2000
"""Levels of objects for which the API server needs less than a second; lists cost it nothing."""
_LARGE = 900_000
_LONG = 200_000
"""Bytes of a long string, and of a long list."""
_TOKEN = re.compile(r'"(?:[^"\\]+|\\.)*"|[\[\]{}]', re.DOTALL)
_WRITTEN = (
    *(
        "null",
        "true",
        "-0.0",
        "1.0",
        "1e308",
        "-1e-400",
        str(2**63),
        str(10**30),
        "9" * 300,
    ),
    *(
        '"\\ud800"',
        '"\\udfff\\ud800x"',
        '"\\u0000"',
        "[]",
        "{}",
        '[[],{"":null}]',
        '{"a":1,"a":[2]}',
    ),
)
_STRINGS = (
    *("", " ", "a=1&b=2", "<html>502</html>", "für", "\u2028\u2029", "\x00\x1b[31m\x7f\r\n", "NaN"),
    *(
        "\U0001f600\U0010ffff\ufffe",
        "\u202egpj.exe",
        "../../etc/passwd",
        "%s{0}${x}",
        "=1+1",
        "true",
    ),
    *("(not read: nested deeper than 200 levels)", "x" * 5000, "__class__", "apiVersion", "$ref"),
)


def string(rng: random.Random) -> str:
    """A JSON string."""
    drawn = "".join(
        chr(rng.choice((rng.randrange(0x250), rng.randrange(0x10000)))) for _ in "12345"
    )
    return json.dumps(
        rng.choice((*_STRINGS, drawn)), ensure_ascii=rng.random() < 0.5 or max(drawn) > "\ud7ff"
    )


def value(rng: random.Random, room: int = 3) -> str:
    """Any JSON value, with at most `room` levels below it."""
    if room == 0 or rng.random() < 0.4:
        return rng.choice((string(rng), rng.choice(_WRITTEN)))
    if rng.random() < 0.5:
        return f"[{','.join(value(rng, room - 1) for _ in range(rng.randrange(4)))}]"
    return _object((string(rng), value(rng, room - 1)) for _ in range(rng.randrange(4)))


def document(rng: random.Random) -> str:
    """A JSON object: nested deeply (one in six), large (one in three hundred), or just odd."""
    roll = rng.random()
    if roll < 0.16:
        opening, closing = rng.choice((("[", "]"), ('{"a":', "}"), ('{"":', "}")))
        levels = rng.choices(list(_LEVELS), list(_LEVELS.values()))[0]
        if levels > _CHEAP:
            opening, closing = "[]"
        return f'{{"deep":{opening * levels}{rng.choice(_WRITTEN)}{closing * levels}}}'
    if roll < 0.163:
        piece = rng.choice(('"x"', "1", "{}", string(rng), f'"{"x" * _LARGE}"'))
        count = _LONG // (len(piece.encode()) + 1) + 1
        return f'{{"large":[{",".join([piece] * count)}]}}'
    return _object((string(rng), value(rng)) for _ in range(rng.randrange(1, 5)))


def conforming(schema: Raw, rng: random.Random, **fixed: str) -> str:
    """A value that a structural schema admits: all required fields, some others, hostile values."""
    kind = schema.get("type")
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return document(rng) if kind == "object" else value(rng)
    if kind == "array":
        items = (conforming(schema["items"], rng) for _ in range(rng.randrange(3)))
        return f"[{','.join(items)}]"
    if kind == "object" and "additionalProperties" in schema:
        return _object((string(rng), conforming(schema["additionalProperties"], rng)) for _ in "12")
    if kind == "object":
        wanted = {*schema.get("required", ()), *fixed}
        names = [n for n in schema["properties"] if n in wanted or rng.random() < 0.2]
        fields = schema["properties"]
        return _object((f'"{n}"', fixed.get(n) or conforming(fields[n], rng)) for n in names)
    return _scalar(schema, rng)


def _scalar(schema: Raw, rng: random.Random) -> str:
    if "enum" in schema:
        return json.dumps(rng.choice(schema["enum"]))
    formats = {"byte": '"aGk="', "date-time": '"2020-01-01T00:00:00Z"', "int32": "1"}
    kinds = {
        "boolean": ("true", "false"),
        "integer": ("1", str(2**63 - 1)),
        "number": ("-0.0", "1e308"),
    }
    return formats.get(schema.get("format", "")) or rng.choice(
        kinds.get(schema.get("type", ""), (string(rng),))
    )


def _object(members: Any) -> str:
    return "{" + ",".join(f"{name}:{text}" for name, text in members) + "}"


def depth(text: str) -> int:
    """Levels of objects and lists."""
    deepest = now = 0
    for token in _TOKEN.finditer(text):
        now += (token[0] in "[{") - (token[0] in "]}")
        deepest = max(deepest, now)
    return deepest


def shallow(text: str, levels: int = 12) -> str:
    """The same with null in place of all that lies deeper, for a reader that recurses."""
    kept: list[str] = []
    now = 0
    start = 0
    for token in _TOKEN.finditer(text):
        now += token[0] in "[{"
        if token[0] in "[{" and now == levels + 1:
            kept += (text[start : token.start()], "null")
        if token[0] in "]}" and now == levels + 1:
            start = token.end()
        now -= token[0] in "]}"
    return "".join((*kept, text[start:]))
