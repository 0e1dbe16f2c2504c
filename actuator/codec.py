"""Conversion between JSON and the contract's classes.

`encode(decode(cls, json)) == json` for every JSON object that a class can hold, including unknown
fields, explicit nulls and empty lists. No value is coerced: a string is never read as a number.
Data that does not fit raises DecodeError, which names the field. `encode` always writes an
`apiVersion` or `kind` that a class has by default, even if the JSON lacked it.

Not here: the rules by class and field (`converter`, imported on first use, because of `cattrs`),
and configuration that a user wrote, which is decoded strictly (`provider_config`).
"""

import json
import os
import re
from array import array
from itertools import accumulate
from typing import Any, TypeVar, cast

import msgspec

from actuator.errors import ConfigurationError, DecodeError
from actuator.meta import Raw

MAX_DEPTH = 200
"""Maximum depth of objects and lists that is read; the API server stores nearly 10,000 levels."""
CUT = f"(not read: nested deeper than {MAX_DEPTH} levels, {os.urandom(8).hex()})"
"""Replaces a value that is nested deeper. An object that contains it counts as unreadable. It
differs for each process, so that no user can write it into an object."""

T = TypeVar("T")
_CUT = CUT.encode()
_AROUND = 10
"""Upper bound of the levels around a field: its object, and the event or list that contains it."""
_STEPS = bytes.maketrans(b"[]{}", b"\x01\xff\x01\xff")  # 1 and -1 as signed bytes
_NO_BRACKETS = bytes(set(range(256)).difference(b'"[]{}'))
_BLOCK = 2**16
_TOKEN = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+"?)*+([\[\]{}]?)', re.DOTALL)
"""The next bracket outside of strings. It matches everywhere, so that no text is read twice."""


def decode(cls: type[T], data: object) -> T:
    """Return an instance of `cls` from a JSON object. Raises DecodeError."""
    from actuator.converter import structure

    return structure(cls, data)


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
        return json.loads(_shallow(text).decode(errors="surrogatepass")), True
    try:
        return msgspec.json.decode(text), False
    except (msgspec.MsgspecError, UnicodeDecodeError):  # NaN, lone surrogates, huge numbers
        return json.loads(text.decode(errors="surrogatepass")), False  # not UTF-16, as of bytes


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
    marks = text.translate(_STEPS, _NO_BRACKETS)
    outside = array("b", [0])
    is_inside = 0
    for start in range(0, len(marks), _BLOCK):  # all parts at once would need 50 bytes for each
        parts = marks[start : start + _BLOCK].split(b'"')
        outside.frombytes(b"".join(parts[is_inside::2]))
        is_inside = (is_inside + len(parts) - 1) % 2
    return max(accumulate(outside)) > limit


def _shallow(text: bytes) -> bytes:
    """Return the JSON text with CUT in place of values nested too deep; not recursive."""
    kept: list[bytes] = []
    depth = 0
    start = 0
    for token in _TOKEN.finditer(text):
        if token[1] in (b"{", b"["):
            depth += 1
            if depth == MAX_DEPTH + 1:
                kept += (text[start : token.start(1)], json.dumps(CUT).encode())
        elif token[1] in (b"}", b"]"):
            if depth == MAX_DEPTH + 1:
                start = token.end()
            depth -= 1
            if depth <= 0:
                break  # the end of the value
    return b"".join((*kept, text[start:]))


def encode(obj: object) -> Raw:
    """Return the JSON object of an instance, without fields that have their default value."""
    from actuator.converter import CONVERTER

    return cast(Raw, CONVERTER.unstructure(obj))
