"""The real clock. Tests of time-dependent decisions pass another one of the same shape."""

import time
from datetime import UTC, datetime


class SystemClock:
    """The clocks of the machine (see `actuator.Clock`)."""

    def now(self) -> datetime:
        """Return the current time, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return monotonic seconds."""
        return time.monotonic()
