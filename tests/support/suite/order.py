"""The order of tests: those that take long begin first, on all workers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

__all__ = ["spread"]


def spread(items: Sequence[pytest.Item], workers: int) -> list[pytest.Item]:
    """Return the tests in an order in which each worker begins with its part of the long ones.

    `--dist worksteal` gives each worker the same number of successive tests, and moves the last
    ones of a worker to others. The long tests of a module stay together, because they share
    fixtures.
    """
    modules: dict[str, list[pytest.Item]] = {}
    others: list[pytest.Item] = []
    for item in items:
        is_long = item.get_closest_marker("long") is not None
        (modules.setdefault(item.nodeid.partition("::")[0], []) if is_long else others).append(item)
    heads: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for module in sorted(modules.values(), key=len, reverse=True):
        min(heads, key=len).extend(module)
    ordered: list[pytest.Item] = []
    for number, head in enumerate(heads):
        share = (len(items) - len(ordered)) // (workers - number)
        more = max(0, share - len(head))
        ordered += [*head, *others[:more]]
        others = others[more:]
    return ordered
