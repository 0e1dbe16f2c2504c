"""Decoding that refuses each problem of the data, as for the configuration of a user."""

from __future__ import annotations

from typing import TypeVar

from actuator.checking import check
from actuator.codec import decode
from actuator.errors import DecodeError

T = TypeVar("T")


def decode_strictly(cls: type[T], data: object) -> T:
    """Return an instance of `cls` from a JSON object. Raises DecodeError with all problems."""
    if problems := check(cls, data):
        raise DecodeError(
            "; ".join(f"{field}: {text}" if field else text for field, text in problems)
        )
    return decode(cls, data)
