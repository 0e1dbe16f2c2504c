"""Budget: how long the force deletions of one controller have been going on, and may go on.

The clock runs from the moment this process sees an object that is deleting and forced, time in
the queue included; a restart begins anew. It is monotonic: nobody's clock can stretch it. What
happens at its end is `reconciler`'s business.
"""

from __future__ import annotations

import math
import threading

import attrs

from actuator.interface import Clock
from generic.kube.headers import Request

__all__ = ["Budgets", "Forced"]


@attrs.define
class Forced:
    """One force deletion that goes on."""

    uid: str
    since: float
    """On the monotonic clock."""
    until: float
    """On the monotonic clock; infinite where there is no budget."""
    over: bool = False
    mute: bool = False
    """Its actuator did not come back from the question what it leaves behind."""
    last_error: str = ""

    def remaining(self, now: float) -> float:
        """Seconds that are left at `now`, on the monotonic clock; at least 0."""
        return max(0.0, self.until - now)


class Budgets:
    """The force deletions of one controller; safe to use from any thread."""

    def __init__(self, clock: Clock, seconds: float | None) -> None:
        self._clock = clock
        self._seconds = math.inf if seconds is None else seconds
        self._lock = threading.Lock()
        self._forced: dict[Request, Forced] = {}

    def __len__(self) -> int:
        return len(self._forced)

    def of(self, request: Request, uid: str) -> Forced:
        """That of an object that is deleting and forced; it begins with the first question."""
        with self._lock:
            forced = self._forced.get(request)
            if forced is None or forced.uid != uid:
                now = self._clock.monotonic()
                forced = Forced(uid, now, now + self._seconds)
                self._forced[request] = forced
            return forced

    def has(self, request: Request, uid: str) -> bool:
        """Whether the budget of that object runs already."""
        forced = self._forced.get(request)
        return forced is not None and forced.uid == uid

    def forget(self, request: Request) -> None:
        """The force deletion is done, or the object gone."""
        with self._lock:
            self._forced.pop(request, None)

    def end(self) -> list[Request]:
        """Those whose budget is over since the last time this was asked."""
        now = self._clock.monotonic()
        with self._lock:
            ended = [
                (request, forced)
                for request, forced in self._forced.items()
                if not forced.over and forced.until <= now
            ]
            for _, forced in ended:
                forced.over = True
        return [request for request, _ in ended]
