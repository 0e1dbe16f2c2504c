"""Expressions of CEL, built from values and operators. Pure.

Values become literals, quoted only here; parentheses follow from the precedence of the operators
(Kubernetes documentation, "Common Expression Language in Kubernetes").
"""

import json
import re
from functools import reduce
from operator import or_
from typing import Any

import attrs

_CHOICE, _OR, _AND, _RELATION, _UNARY, _MEMBER = range(6)
_TYPES = {bool: "bool", dict: "map", float: "double", int: "int", list: "list", str: "string"}
_RESERVED = re.compile(
    "true|false|null|in|as|break|const|continue|else|for|function|if|import|let|loop|package|"
    "namespace|return|var|void|while"
)
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}


@attrs.frozen
class Expr:
    """An expression, such as a name; operands that are no expressions are literals."""

    text: str
    rank: int = _MEMBER
    """The precedence of its outermost operator."""

    def __and__(self, other: "Expr") -> "Expr":
        return Expr(f"{self.within(_AND)} && {other.within(_AND)}", _AND)

    def __or__(self, other: "Expr") -> "Expr":
        return Expr(f"{self.within(_OR)} || {other.within(_OR)}", _OR)

    def __invert__(self) -> "Expr":
        return Expr(f"!{self.within(_UNARY)}", _UNARY)

    def __getitem__(self, key: object) -> "Expr":
        return Expr(f"{self.within(_MEMBER)}[{literal(key).text}]")

    def relation(self, operator: str, other: object) -> "Expr":
        """Return whether the values compare so: ==, !=, <=, >= or in."""
        return Expr(f"{self.within(_UNARY)} {operator} {literal(other).within(_UNARY)}", _RELATION)

    def equals(self, other: object) -> "Expr":
        """Return whether the values are equal."""
        return self.relation("==", other)

    def is_a(self, *types: type) -> "Expr":
        """Return whether it is a value of one of these types of JSON in Python."""
        return reduce(or_, (call("type", self).equals(Expr(_TYPES[cls])) for cls in types))

    def has(self, name: str) -> "Expr":
        """Return whether it is a map that has a field other than null."""
        return self.is_a(dict) & literal(name).relation("in", self) & ~self[name].equals(None)

    def optional(self, *names: str) -> "Expr":
        """Return a field of maps in a map, absent if one of these is; see `orValue`."""
        return Expr(self.within(_MEMBER) + "".join(f"[?{literal(name).text}]" for name in names))

    def field(self, name: str) -> "Expr":
        """Return a field of an object with a schema, whose names are not the keys of a map."""
        escaped = re.sub(r"__|[./-]", lambda found: _ESCAPES[found[0]], name)
        is_reserved = _RESERVED.fullmatch(name)
        return Expr(f"{self.within(_MEMBER)}.{f'__{name}__' if is_reserved else escaped}")

    def method(self, name: str, *arguments: object) -> "Expr":
        """Return a call such as that of the macro "all", with its variables and its condition."""
        return Expr(f"{self.within(_MEMBER)}.{call(name, *arguments).text}")

    def within(self, rank: int) -> str:
        """Return the text as an operand of an operator, in parentheses if its own binds less."""
        return self.text if self.rank >= rank else f"({self.text})"


def literal(value: object) -> Expr:
    """Return a JSON value, or an expression itself. Raises TypeError or ValueError for others."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, list | tuple):
        return Expr(f"[{', '.join(_entries(value))}]")
    if isinstance(value, dict):
        entries = zip(map(literal, value), _entries(value.values()), strict=True)
        return Expr(f"{{{', '.join(f'{name.text}: {entry}' for name, entry in entries)}}}")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        value = float(value)  # as the API server reads it
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return Expr(text, _UNARY if text.startswith("-") else _MEMBER)


def _entries(values: Any) -> list[str]:
    """Return the literals of entries, which need one type: that of any value for several."""
    types = {*map(type, values)}
    is_plain = len(types) <= 1 and not types & {list, tuple, dict}
    return [(literal(value) if is_plain else call("dyn", value)).text for value in values]


def call(name: str, *arguments: object) -> Expr:
    """Return the call of a function."""
    return Expr(f"{name}({', '.join(literal(argument).text for argument in arguments)})")


def joined(*parts: "str | Expr") -> Expr:
    """Return the text of these parts, of which expressions are texts."""
    merged: list[str | Expr] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    operands = [literal(part).within(_UNARY) for part in merged]
    return Expr(" + ".join(operands), _RELATION if len(operands) > 1 else _MEMBER)


def choose(condition: Expr, one: object, other: object) -> Expr:
    """Return the first value if the condition is true, else the other."""
    parts = [literal(part).within(_OR) for part in (condition, one, other)]
    return Expr("{} ? {} : {}".format(*parts), _CHOICE)
