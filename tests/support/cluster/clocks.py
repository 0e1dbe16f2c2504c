"""Clocks that a test moves."""

from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 1, tzinfo=UTC)


class Hands:
    """A wall clock that may be wrong, and a monotonic clock."""

    def __init__(self):
        self.seconds = 0.0
        self.ahead = 0.0
        """By how many seconds the wall clock is wrong."""

    def now(self):
        return START + timedelta(seconds=self.seconds + self.ahead)

    def monotonic(self):
        return self.seconds
