"""The real clocks, and the rules for decisions that cannot be undone.

A wall clock can be wrong for a while: set by hand, before the first synchronization, on a resumed
machine. An age shown or an error that is retried is corrected with the clock. A decision that
cannot be undone uses `trusted_now`, or `eventual_now` if it must not wait for ever. Tests of
time-dependent decisions pass another clock of the same shape.
"""

import logging
import math
import threading
import time
from collections import deque
from datetime import UTC, datetime

from actuator.interface import Clock

logger = logging.getLogger(__name__)

WINDOW = 60.0
"""Seconds over which the wall clock has to advance like the monotonic clock."""
TOLERANCE = 5.0
"""Maximum seconds by which they may differ in that time."""
MAX_UNKNOWN_SECONDS = 3600.0
"""Seconds without a steady wall clock after which `eventual_now` waits no longer."""
_BOOTTIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)
_SPACING = 0.25
"""Minimum seconds between samples that are kept, except for the newest one."""


class SystemClock:
    """The clocks of the machine (see `actuator.Clock`)."""

    def now(self) -> datetime:
        """Return the current time, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return monotonic seconds; on Linux they include the time of a suspended machine."""
        return time.monotonic() if _BOOTTIME is None else time.clock_gettime(_BOOTTIME)


class WatchedClock:
    """A clock that knows whether its wall clock was steady in this process; thread-safe.

    It takes a sample at each `trusted_now`: every running manager calls it twice a second.
    """

    def __init__(self, clock: Clock) -> None:
        self.now = clock.now
        self.monotonic = clock.monotonic
        self._lock = threading.Lock()
        self._samples: deque[tuple[float, float]] = deque()
        """Monotonic time, and wall time minus monotonic time, over the last WINDOW."""
        self._unsteady_since = clock.monotonic()
        """In monotonic seconds; infinity while the wall clock is steady."""

    def trusted_now(self) -> datetime | None:
        """See `trusted_now` of this module."""
        with self._lock:
            before = self.monotonic()
            now = self.now()
            after = self.monotonic()
            if after - before > 1.0:
                return None  # the process was stopped in between, which is no step
            step = self._add(now.timestamp(), after)
            is_steady = self._is_steady()
            is_lost = not is_steady and self._unsteady_since == math.inf
            if is_steady or is_lost:
                self._unsteady_since = math.inf if is_steady else after
        if step or is_lost:
            text = "wall clock stepped or drifted; final decisions wait until it was steady"
            logger.warning(text, extra={"fields": {"seconds": round(step, 1)}})
        return now if is_steady else None

    def eventual_now(self) -> datetime | None:
        """See `eventual_now` of this module."""
        is_late = self.monotonic() - self._unsteady_since > MAX_UNKNOWN_SECONDS
        return self.now() if is_late else self.trusted_now()

    def _add(self, wall: float, monotonic: float) -> float:
        """Add a sample, in seconds; return the step since the one before, 0 within TOLERANCE."""
        kept = self._samples
        offset = wall - monotonic
        step = offset - kept[-1][1] if kept else 0.0
        is_step = abs(step) > TOLERANCE
        if len(kept) > 1 and kept[-1][0] - kept[-2][0] < _SPACING and not is_step:
            kept.pop()
        kept.append((monotonic, offset))
        while len(kept) > 1 and kept[1][0] <= monotonic - WINDOW:
            kept.popleft()
        return step if is_step else 0.0

    def _is_steady(self) -> bool:
        """Whether the samples cover the WINDOW, and differ by at most TOLERANCE."""
        offsets = [offset for _, offset in self._samples]
        is_covered = self._samples[-1][0] - self._samples[0][0] >= WINDOW
        return is_covered and max(offsets) - min(offsets) <= TOLERANCE


def trusted_now(clock: Clock) -> datetime | None:
    """Return the time for a decision that cannot be undone; None if it has to wait.

    The clock of a manager, `ctx.clock` included, has a time once its wall and monotonic clock
    advanced equally over the last minute of this process. Another clock is trusted.
    """
    return clock.trusted_now() if isinstance(clock, WatchedClock) else clock.now()


def eventual_now(clock: Clock) -> datetime | None:
    """Return the time for a decision that has to be made some time; None if it has to wait.

    As `trusted_now`; but after an hour without a steady minute, the time of the clock as it is.
    """
    return clock.eventual_now() if isinstance(clock, WatchedClock) else clock.now()
