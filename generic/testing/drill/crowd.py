"""The same for many shoots, some of them at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["for_each"]

T = TypeVar("T")


def for_each(items: Sequence[T], act: Callable[[T], object], *, at_once: int = 10) -> None:
    """Does it for all of them, `at_once` at a time; raises the first error."""
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(act, items))
