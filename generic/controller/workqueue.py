"""WorkQueue: keys that need work, each at most once, never two workers on one.

Flow: `add` / `add_after` / `add_rate_limited` → `get` → work → `done`.

Guarantees:
- A key added while a worker has it is handed out again after `done`; it is never lost and never
  handed to a second worker meanwhile.
- Of several delays for a key the earliest wins; an `add` overrides them all.
- `urgent` keys are handed out before all others and have no backoff.

Assumptions: `done` is called once for each key that `get` returned.
Caveats: the order of keys that are not urgent is first in, first out.
Errors: `get` raises ShutDown after `shut_down`; nothing else raises.
"""

import heapq
import random
import threading
from collections import deque
from collections.abc import Hashable
from itertools import count
from math import inf
from typing import Generic, TypeVar

from msgspec import Struct

from actuator.interface import Clock
from generic.serving.metrics import QueueMetrics

T = TypeVar("T", bound=Hashable)
_MAX_WAIT_SECONDS = 3600.0  # a Condition cannot wait for ever


class ShutDown(Exception):
    """The queue was shut down and hands out no more keys."""


class Backoff(Struct, frozen=True):
    """Exponential delays in seconds: `first`, doubled with every failure up to the cap.

    `jitter` is the maximum share by which a delay is randomly shortened, so that keys that failed
    together are not retried together.
    """

    first: float = 0.005
    cap: float = 1000.0
    jitter: float = 0.2

    def delay(self, failures: int, cap: float | None = None) -> float:
        """Return the delay in seconds after that many failures in a row, at least 1."""
        limit = self.cap if cap is None else min(cap, self.cap)
        exponent = min(failures - 1, 64)  # beyond, a float would overflow
        return float(min(self.first * 2**exponent, limit)) * (1 - random.random() * self.jitter)


class WorkQueue(Generic[T]):
    """See the module's docstring; safe to use from any thread."""

    def __init__(self, clock: Clock, metrics: QueueMetrics, backoff: Backoff | None = None) -> None:
        self._clock = clock
        self._metrics = metrics
        self._backoff = backoff or Backoff()
        self._condition = threading.Condition()
        self._ready: deque[T] = deque()
        self._urgent: deque[T] = deque()
        self._queued: dict[T, float] = {}  # since when, for the metric
        self._active: dict[T, float] = {}
        self._again: dict[T, bool] = {}  # added while active: urgent or not
        self._due: dict[T, float] = {}
        self._delayed: list[tuple[float, int, T]] = []
        self._tick = count()
        self._failures: dict[T, int] = {}
        self._shut_down = False
        metrics.watch(self.depth, lambda: sum(self._ages()), lambda: max(self._ages(), default=0.0))

    def depth(self) -> int:
        """Return the number of keys waiting for a worker, without delayed ones."""
        return len(self._queued)

    def add(self, key: T, *, urgent: bool = False) -> None:
        """Make the key ready now; `urgent` puts it before all others and resets its backoff."""
        with self._condition:
            self._add(key, urgent=urgent)

    def add_after(self, key: T, seconds: float) -> None:
        """Make the key ready in `seconds`, unless it is ready earlier."""
        if seconds <= 0:
            self.add(key)
            return
        with self._condition:
            due = self._clock.monotonic() + seconds
            if self._shut_down or key in self._queued or self._due.get(key, inf) <= due:
                return
            self._due[key] = due
            heapq.heappush(self._delayed, (due, next(self._tick), key))
            if self._delayed[0][2] == key:
                self._condition.notify()

    def add_rate_limited(self, key: T, *, cap: float | None = None) -> None:
        """Make the key ready after its backoff, at most `cap` seconds."""
        with self._condition:
            failures = self._failures.get(key, 0) + 1
            self._failures[key] = failures
        self._metrics.retried()
        self.add_after(key, self._backoff.delay(failures, cap))

    def forget(self, key: T) -> None:
        """Reset the backoff: the key's next failure counts as its first."""
        with self._condition:
            self._failures.pop(key, None)

    def failures(self, key: T) -> int:
        """Return how often in a row the key was rate limited."""
        return self._failures.get(key, 0)

    def get(self) -> T:
        """Wait for the next key and return it. Raises ShutDown."""
        with self._condition:
            while True:
                if self._shut_down:
                    raise ShutDown
                wait = self._release_due()
                if self._urgent or self._ready:
                    return self._take()
                self._condition.wait(wait)

    def take(self, key: T) -> bool:
        """Take this urgent key out of its turn; return False if it no longer waits."""
        with self._condition:
            if self._shut_down or key not in self._urgent:
                return False
            self._urgent.remove(key)
            self._begin(key)
            return True

    def pressing(self) -> int:
        """Return the number of keys that a worker has, or that are urgent."""
        with self._condition:
            return len(self._active) + len(self._urgent)

    def done(self, key: T) -> None:
        """Mark the key as processed by its worker."""
        with self._condition:
            started = self._active.pop(key, None)
            if started is not None:
                self._metrics.worked(self._clock.monotonic() - started)
            urgent = self._again.pop(key, None)
            if urgent is not None:
                self._add(key, urgent=urgent)

    def shut_down(self) -> None:
        """Hand out no more keys, and wake all waiting workers."""
        with self._condition:
            self._shut_down = True
            self._condition.notify_all()

    def _add(self, key: T, *, urgent: bool) -> None:
        if self._shut_down:
            return
        if urgent:
            self._failures.pop(key, None)
        if key in self._active:
            self._again[key] = urgent or self._again.get(key, False)
            return
        self._due.pop(key, None)
        if key in self._queued:
            if urgent and key not in self._urgent:
                self._ready.remove(key)
                self._urgent.append(key)
            return
        self._queued[key] = self._clock.monotonic()
        (self._urgent if urgent else self._ready).append(key)
        self._metrics.added()
        self._condition.notify()

    def _take(self) -> T:
        key = self._urgent.popleft() if self._urgent else self._ready.popleft()
        self._begin(key)
        return key

    def _begin(self, key: T) -> None:
        now = self._clock.monotonic()
        self._metrics.waited(now - self._queued.pop(key))
        self._active[key] = now

    def _release_due(self) -> float | None:
        """Make delayed keys ready that are due; return the seconds to the next one."""
        now = self._clock.monotonic()
        while self._delayed:
            due, _, key = self._delayed[0]
            if self._due.get(key) != due:  # overridden by an earlier delay, or by an add
                heapq.heappop(self._delayed)
                continue
            if due > now:
                return min(due - now, _MAX_WAIT_SECONDS)
            heapq.heappop(self._delayed)
            del self._due[key]
            self._add(key, urgent=False)
        return None

    def _ages(self) -> list[float]:
        """Return the seconds since a worker took each of the keys in progress."""
        now = self._clock.monotonic()
        return [now - started for started in list(self._active.values())]
