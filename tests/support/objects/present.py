"""A value that a test knows to exist, where its type says that it may be absent."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def present(value: T | None) -> T:
    """Return the value; it fails the test if it is None."""
    assert value is not None
    return value
