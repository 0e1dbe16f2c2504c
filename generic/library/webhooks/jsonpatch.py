"""The JSON patch (RFC 6902) that turns one JSON value into another. Pure."""

from collections.abc import Iterator
from typing import Any

from actuator.meta import Raw
from generic.kube.patches import add, escape, remove, replace


def difference(before: Any, after: Any, path: str = "") -> Iterator[Raw]:
    """Yield the operations, in an order in which each can be applied.

    Objects are compared by field. Lists are compared by position, and longer or shorter ones differ
    at their end.
    """
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _objects(before, after, path)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _lists(before, after, path)
    elif before != after or not (type(before) is type(after) or isinstance(after, str)):
        # 1, 1.0 and True are equal in Python; a text and a member of an enumeration are one text
        yield replace(path, after)


def _objects(before: Raw, after: Raw, path: str) -> Iterator[Raw]:
    for name, value in before.items():
        where = f"{path}/{escape(name)}"
        if name in after:
            yield from difference(value, after[name], where)
        else:
            yield remove(where)
    for name, value in after.items():
        if name not in before:
            yield add(f"{path}/{escape(name)}", value)


def _lists(before: list[Any], after: list[Any], path: str) -> Iterator[Raw]:
    common = min(len(before), len(after))
    for index in range(common):
        yield from difference(before[index], after[index], f"{path}/{index}")
    for index in reversed(range(common, len(before))):
        yield remove(f"{path}/{index}")
    for value in after[common:]:
        yield add(f"{path}/-", value)
