"""The real clock. Tests of time-dependent decisions pass another one of the same shape."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """The machine's clocks (see `actuator.Clock`)."""

    def now(self) -> datetime:
        """The time of day, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never jump."""
        return time.monotonic()
