"""How long ago something was, in few characters, for the tables of commands."""

from __future__ import annotations

from datetime import datetime

from actuator.meta import parse_time

__all__ = ["age", "since"]

_UNITS = ((1, "s", 120), (60, "m", 7200), (3600, "h", 172_800))
"""Seconds in a unit, and below how many it is used: as kubectl writes ages."""


def age(seconds: float) -> str:
    """So many seconds: 90s, 5m, 3h, 2d; never below 0."""
    whole = max(int(seconds), 0)
    for size, unit, below in _UNITS:
        if whole < below:
            return f"{whole // size}{unit}"
    return f"{whole // 86_400}d"


def since(timestamp: str, now: datetime) -> str:
    """How long ago a Kubernetes timestamp was; "?" for a text that is none."""
    try:
        return age((now - parse_time(timestamp)).total_seconds())
    except ValueError:
        return "?"
