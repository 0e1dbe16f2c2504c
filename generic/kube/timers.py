"""Timers: one thread that runs short actions later, each cancellable until it has run.

Not for the work itself: an action must be short, or have a short timeout of its own.
"""

import heapq
import logging
import threading
from collections.abc import Callable
from itertools import count

from actuator.interface import Clock

logger = logging.getLogger(__name__)


class Timer:
    """One action that will run unless it is cancelled first.

    Then it keeps nothing of the action alive, although it stays in the queue until it is due.
    """

    __slots__ = ("_action", "_lock")

    def __init__(self, action: Callable[[], object]) -> None:
        self._action: Callable[[], object] | None = action
        self._lock = threading.Lock()

    def cancel(self) -> bool:
        """Cancel the action; if it is running now, wait until it has finished.

        Return False if it ran.
        """
        with self._lock:
            is_pending = self._action is not None
            self._action = None
        return is_pending

    def run(self) -> None:
        """Run the action now, unless it was cancelled or ran before; its exceptions are logged."""
        with self._lock:
            action = self._action
            self._action = None
            if action is None:
                return
            try:
                action()
            except Exception:
                logger.exception("timer failed")


class Timers:
    """Runs actions at their due time, in one daemon thread."""

    def __init__(self, name: str, clock: Clock) -> None:
        self._name = name
        self._clock = clock
        self._condition = threading.Condition()
        self._heap: list[tuple[float, int, Timer]] = []
        self._tick = count()
        self._stopped = False
        self._thread: threading.Thread | None = None

    def call_later(self, seconds: float, action: Callable[[], object]) -> Timer:
        """Run `action` in `seconds`, unless the returned Timer is cancelled before."""
        timer = Timer(action)
        with self._condition:
            entry = (self._clock.monotonic() + seconds, next(self._tick), timer)
            heapq.heappush(self._heap, entry)
            if self._thread is None and not self._stopped:
                self._thread = threading.Thread(target=self._loop, name=self._name, daemon=True)
                self._thread.start()
            elif self._heap[0] is entry:
                self._condition.notify()
        return timer

    def stop(self) -> None:
        """Stop: run no further action."""
        with self._condition:
            self._stopped = True
            self._condition.notify()

    def _loop(self) -> None:
        while (timer := self._next()) is not None:
            timer.run()

    def _next(self) -> Timer | None:
        with self._condition:
            while not self._stopped:
                wait = self._heap[0][0] - self._clock.monotonic() if self._heap else None
                if wait is not None and wait <= 0:
                    return heapq.heappop(self._heap)[2]
                self._condition.wait(wait)
            return None
