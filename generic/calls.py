"""Calls: one Context for each call into an actuator, and what becomes of calls that hang.

A thread cannot be killed. So a call that must end is first cancelled (`Context.check` and every
request through its client raise), and if it has not returned after a grace period it is set
aside: fenced for good, its worker replaced, its result dropped whenever it comes.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence

import attrs

from actuator.errors import Cancelled, DeadlineExceeded, SetAside
from actuator.interface import Client, Clock, Propagation, Resource, SeedObjects
from actuator.meta import Object, Raw
from generic.operation import Operation
from generic.store import Request

__all__ = ["Aside", "Call", "Calls", "Services"]


@attrs.frozen
class Services:
    """What a Call passes on to the machinery; each takes effect outside the call."""

    event: Callable[[str, str, bool], None]
    save: Callable[[Object], None]
    delete_seed_objects: Callable[[Iterable[SeedObjects]], None]


class FencedClient:
    """A Client that asks its call for permission before each request."""

    def __init__(self, client: Client, check: Callable[[], None]) -> None:
        self._client = client
        self._check = check

    def get(self, resource: Resource, name: str, namespace: str = "") -> Raw:
        """See Client."""
        self._check()
        return self._client.get(resource, name, namespace)

    def list(
        self, resource: Resource, namespace: str = "", *, label_selector: str = ""
    ) -> list[Raw]:
        """See Client."""
        self._check()
        return self._client.list(resource, namespace, label_selector=label_selector)

    def create(self, resource: Resource, obj: Raw) -> Raw:
        """See Client."""
        self._check()
        return self._client.create(resource, obj)

    def apply(self, resource: Resource, obj: Raw, *, field_manager: str = "actuator") -> Raw:
        """See Client."""
        self._check()
        return self._client.apply(resource, obj, field_manager=field_manager)

    def patch(
        self,
        resource: Resource,
        name: str,
        namespace: str,
        patch: Sequence[Raw] | Raw,
        *,
        subresource: str = "",
    ) -> Raw:
        """See Client."""
        self._check()
        return self._client.patch(resource, name, namespace, patch, subresource=subresource)

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        uid: str | None = None,
        propagation: Propagation = "Background",
    ) -> None:
        """See Client."""
        self._check()
        self._client.delete(resource, name, namespace, uid=uid, propagation=propagation)


class Call:
    """The Context of one call. See `actuator.Context` for what an author may use."""

    def __init__(
        self,
        operation: Operation,
        client: Client,
        log: logging.LoggerAdapter[logging.Logger],
        clock: Clock,
        deadline: float,
        gate: Callable[[], None],
    ) -> None:
        self.operation = operation
        self.client: Client = FencedClient(client, self.check)
        self.log = log
        self.clock = clock
        self.deadline = deadline
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
            raise self._cancelled
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

    def delete_seed_objects(self, groups: Iterable[SeedObjects]) -> None:
        """See Context."""
        self._served().delete_seed_objects(groups)

    def _served(self) -> Services:
        self.check()
        assert self._services is not None, "a call is connected before an actuator sees it"
        return self._services

    def cancel(self, reason: str) -> None:
        """Asks the call to stop: from now on every use of it raises SetAside."""
        self._cancelled = SetAside(reason)

    @property
    def cancelled(self) -> bool:
        """Whether it was asked to stop."""
        return self._cancelled is not None

    def finish(self) -> bool:
        """Ends the call for its worker; False when it was set aside before, its result void."""
        with self._lock:
            first, self._over = not self._over, True
            return first

    def set_aside(self) -> bool:
        """Ends the call for everybody else; False when its worker ended it before."""
        with self._lock:
            first, self._over = not self._over, True
            return first


class Aside:
    """The calls of all controllers that were set aside and still hang."""

    def __init__(self, limit: int = 64) -> None:
        self._limit = limit
        self._calls: set[Call] = set()

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def full(self) -> bool:
        """Whether another call that hangs would be one too many."""
        return len(self._calls) >= self._limit

    def add(self, call: Call) -> None:
        """The call hangs."""
        self._calls.add(call)

    def discard(self, call: Call) -> None:
        """The call came back, if it ever hung."""
        self._calls.discard(call)


class Calls:
    """The calls of one controller that run now, by object."""

    def __init__(self, aside: Aside) -> None:
        self.aside = aside
        self._lock = threading.Lock()
        self._running: dict[Request, Call] = {}

    def start(self, request: Request, call: Call) -> None:
        """The call is about to be made."""
        with self._lock:
            self._running[request] = call

    def finish(self, request: Request, call: Call) -> bool:
        """The call came back; False when it had been set aside."""
        with self._lock:
            self.aside.discard(call)
            if self._running.get(request) is call:
                del self._running[request]
        return call.finish()

    def running(self, request: Request) -> Call | None:
        """The call that runs for the object, or None."""
        return self._running.get(request)

    def set_aside(self, request: Request, call: Call) -> bool:
        """Gives up on the call; False when it came back before."""
        with self._lock:
            if self._running.get(request) is not call or not call.set_aside():
                return False
            del self._running[request]
            self.aside.add(call)
            return True
