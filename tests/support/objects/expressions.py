"""PromQL expressions, read by a parser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import promql_parser as promql

_BELOW = ("expr", "lhs", "rhs", "args", "vector_selector", "param")


def vector_selectors(node: Any) -> Iterator[promql.VectorSelector]:
    """Yield each vector selector of a parsed expression."""
    if isinstance(node, promql.VectorSelector):
        yield node
    for field in _BELOW:
        below = getattr(node, field, None)
        for item in below if isinstance(below, list) else [below]:
            if item is not None:
                yield from vector_selectors(item)
