"""Calls: one Context for each call into an actuator, and what becomes of calls that hang.

A thread cannot be killed. So a call that must end is first cancelled (`Context.check` and every
request through its client raise), and if it has not returned after a grace period it is set
aside: fenced for good, its worker replaced, its result dropped whenever it comes. Only so many
may be set aside; a call that must not wait for that reserves its place before it begins.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

import attrs

from actuator.errors import Cancelled, DeadlineExceeded, SetAside
from actuator.interface import Client, Clock, SeedObjects
from actuator.meta import Object, Raw
from generic.kube.delegating import DelegatingClient
from generic.kube.store import Request
from generic.reconciler.operation import Operation

__all__ = ["SET_ASIDE_AFTER", "Aside", "Call", "Calls", "Services"]

T = TypeVar("T")

SET_ASIDE_AFTER = 10.0
"""Seconds that a call whose time is over, or that was cancelled, has to return by itself."""


@attrs.frozen
class Services:
    """What a Call passes on to the machinery; each takes effect outside the call."""

    event: Callable[[str, str, bool], None]
    save: Callable[[Object], None]
    secret: Callable[[str, str], Raw]
    delete_seed_objects: Callable[[Iterable[SeedObjects]], None]


class FencedClient(DelegatingClient):
    """A Client that asks its call for permission before each request."""

    def __init__(self, inner: Client, check: Callable[[], None]) -> None:
        super().__init__(inner)
        self._check = check

    def _around(self, request: Callable[[], T]) -> T:
        self._check()
        return request()


class Call:
    """The Context of one call. See `actuator.Context` for what an author may use."""

    def __init__(
        self,
        operation: Operation,
        uid: str,
        client: Client,
        log: logging.LoggerAdapter[logging.Logger],
        clock: Clock,
        seconds: float,
        gate: Callable[[], None],
    ) -> None:
        self.operation = operation
        self.uid = uid
        self.client: Client = FencedClient(client, self.check)
        self.log = log
        self.clock = clock
        self.deadline = clock.monotonic() + seconds
        self.limit = self.deadline + SET_ASIDE_AFTER
        """When, on the monotonic clock, it is set aside if it has not returned."""
        self._gate = gate
        self._services: Services | None = None
        self._lock = threading.Lock()
        self._cancelled: Cancelled | None = None
        self._over = False

    def serve(self, services: Services) -> None:
        """Connects the call with what it may do."""
        self._services = services

    def check(self) -> None:
        """See Context."""
        if self._cancelled is not None:
            raise SetAside(str(self._cancelled))  # anew: one that is shared keeps every frame
        if self.clock.monotonic() >= self.deadline:
            raise DeadlineExceeded("the time for this operation is over")
        self._gate()

    def remaining(self) -> float:
        """See Context."""
        return max(0.0, self.deadline - self.clock.monotonic())

    def event(self, reason: str, message: str, *, warning: bool = False) -> None:
        """See Context."""
        self._served().event(reason, message, warning)

    def save(self, obj: Object) -> None:
        """See Context."""
        self._served().save(obj)

    def secret(self, name: str, namespace: str) -> Raw:
        """See Context."""
        return self._served().secret(name, namespace)

    def delete_seed_objects(self, groups: Iterable[SeedObjects]) -> None:
        """See Context."""
        self._served().delete_seed_objects(groups)

    def _served(self) -> Services:
        self.check()
        assert self._services is not None, "a call is connected before an actuator sees it"
        return self._services

    def cancel(self, reason: str, *, grace: float | None = None) -> None:
        """Asks the call to stop: every use of it raises SetAside.

        It has `grace` seconds for that, SET_ASIDE_AFTER if None.
        """
        if self._cancelled is None:
            self._cancelled = SetAside(reason)
        seconds = SET_ASIDE_AFTER if grace is None else grace
        self.limit = min(self.limit, self.clock.monotonic() + seconds)

    @property
    def cancelled(self) -> bool:
        """Whether it was asked to stop."""
        return self._cancelled is not None

    def end(self) -> bool:
        """Ends the call: for its worker, or for everybody else; False when it was over before."""
        with self._lock:
            first, self._over = not self._over, True
            if self._cancelled is None:
                self._cancelled = SetAside("the call is over")
            return first


class Aside:
    """How many calls of all controllers hang, set aside; and who may still join them."""

    def __init__(self, limit: int = 64) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._places: set[Call] = set()
        self._hanging: set[Call] = set()

    def __len__(self) -> int:
        return len(self._hanging)

    def reserve(self, call: Call) -> bool:
        """Keeps a place for a call that may hang; False when there is none."""
        with self._lock:
            if call not in self._places and len(self._places) >= self._limit:
                return False
            self._places.add(call)
            return True

    def add(self, call: Call) -> None:
        """The call hangs, in the place that was reserved for it."""
        self._hanging.add(call)

    def discard(self, call: Call) -> None:
        """The call came back, if it ever hung; its place is free."""
        with self._lock:
            self._places.discard(call)
            self._hanging.discard(call)


class Calls:
    """The calls of one controller, by object: those that run now, and those that hang."""

    def __init__(self, aside: Aside) -> None:
        self._aside = aside
        self._lock = threading.Lock()
        self._running: dict[Request, Call] = {}
        self._hanging: dict[Request, set[Call]] = {}

    def start(self, request: Request, call: Call) -> None:
        """The call is about to be made."""
        with self._lock:
            self._running[request] = call

    def start_reserved(self, request: Request, call: Call) -> bool:
        """The same, for a call that can be set aside whatever else hangs; False: it cannot."""
        if not self._aside.reserve(call):
            return False
        self.start(request, call)
        return True

    def finish(self, request: Request, call: Call) -> bool:
        """The call came back; False when it had been set aside."""
        self._aside.discard(call)
        with self._lock:
            if self._running.get(request) is call:
                del self._running[request]
            hanging = self._hanging.get(request, set())
            hanging.discard(call)
            if not hanging:
                self._hanging.pop(request, None)
        return call.end()

    def running(self, request: Request) -> Call | None:
        """The call that runs for the object, or None."""
        return self._running.get(request)

    def hangs(self, request: Request, uid: str) -> bool:
        """Whether a call for that very object was set aside and has not come back."""
        with self._lock:
            return any(call.uid == uid for call in self._hanging.get(request, ()))

    def overdue(self, now: float) -> list[tuple[Request, Call]]:
        """The calls whose limit is over at `now`, on the monotonic clock."""
        with self._lock:
            return [(request, call) for request, call in self._running.items() if call.limit <= now]

    def set_aside(self, request: Request, call: Call) -> bool:
        """Gives up on the call; False when it came back before, or too many hang already."""
        with self._lock:
            if self._running.get(request) is not call or not self._aside.reserve(call):
                return False
            if not call.end():
                self._aside.discard(call)
                return False
            del self._running[request]
            self._hanging.setdefault(request, set()).add(call)
            self._aside.add(call)
            return True
