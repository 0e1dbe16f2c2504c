"""Calls: the time limit and the fence of each call into an actuator.

A thread cannot be killed. A call that must end is first cancelled (`Context.check` and every
request through its client raise). If it has not returned after a grace period it is abandoned:
fenced for good, its worker replaced, its result dropped. The number of abandoned calls is limited;
a call that must not wait for a place reserves it before it begins.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from math import inf
from threading import Semaphore
from typing import TYPE_CHECKING, TypeVar, overload

from actuator.errors import (
    CallAbandoned,
    Cancelled,
    DeadlineExceeded,
    ShootUnreachable,
    Unavailable,
)
from actuator.interface import SECRETS, Client, Clock
from actuator.meta import CredentialsReference, Object, Raw
from generic.kube.delegating import DelegatingClient
from generic.kube.errorinfo import standing
from generic.kube.tenants import AnswerRefused
from generic.reconciler.credentials import read_texts
from generic.reconciler.operation import Operation

if TYPE_CHECKING:
    from generic.kube.client import HttpClient

_LOGGER = logging.getLogger(__name__)
T = TypeVar("T")

ABANDONED_AFTER_SECONDS = 10.0
"""Seconds within which a cancelled or expired call must return before it is abandoned."""
_SHOOT_SECONDS = 60.0
_FORCED_SECONDS = 5.0
"""Maximum seconds of all requests of one call to its shoot, and of those of a force deletion, or
of one request while other workers wait for shoots."""
_MIN_SECONDS = 0.1
_REMEDY = "check that the shoot is not hibernated and that its API server runs"


class FencedClient(DelegatingClient):
    """A Client that asks its call for permission before each request."""

    def __init__(self, inner: Client, check: Callable[[], None]) -> None:
        super().__init__(inner)
        self._check = check

    def _around(self, request: Callable[[], T]) -> T:
        self._check()
        return request()


class ShootClient(FencedClient):
    """A FencedClient whose errors name the shoot; a force deletion waits for one answer at most.

    Their time is limited, so that slow shoots do not hold the workers of all tenants: it is long
    only for requests that can hold the `patience` of their controller.
    """

    def __init__(self, inner: HttpClient, call: Call, shoot: str, patience: Semaphore) -> None:
        self._forced = call.operation is Operation.FORCE_DELETE
        self._left = _FORCED_SECONDS if self._forced else _SHOOT_SECONDS
        self._most = 0.0
        super().__init__(call.limited(inner, lambda: min(self._left, self._most)), call.check)
        self._clock = call.clock
        self._shoot = shoot
        self._patience = patience
        self._problem = ""

    def _around(self, request: Callable[[], T]) -> T:
        if self._left <= 0 or (self._problem and self._forced):
            self._check()
            slow = f"shoot {self._shoot}: its API server takes too long for one call; {_REMEDY}"
            raise ShootUnreachable(self._problem or slow)
        began = self._clock.monotonic()
        is_patient = self._patience.acquire(blocking=False)
        self._most = inf if is_patient else _FORCED_SECONDS
        try:
            return super()._around(request)
        except Unavailable as error:
            if error.status:
                raise  # an answer
            if not self._problem:  # operators may know what tenants may not: the seed's network
                fields = {"shoot": self._shoot, "cause": f"{error.__context__ or error}"}
                _LOGGER.warning("shoot unreachable", extra={"fields": fields})
            remedy = "" if isinstance(error, AnswerRefused) else f"; {_REMEDY}"
            self._problem = f"shoot {self._shoot}: {error}{remedy}"
            raise ShootUnreachable(self._problem) from error
        finally:
            self._left -= self._clock.monotonic() - began
            if is_patient:
                self._patience.release()


class Call:
    """One call: its deadline, and its end. `invoker.ActuatorCall` adds the rest of its Context."""

    def __init__(
        self,
        operation: Operation,
        client: Client,
        clock: Clock,
        gate: Callable[[], None],
        seconds: float,
        *,
        grace: float | None = None,
    ) -> None:
        """`client` is that of the seed; `gate` raises LeaseLost; `grace` as for `cancel`."""
        self.operation = operation
        self.method = operation.value
        self._thread = threading.get_ident()
        self._began = clock.monotonic()
        self.client: Client = FencedClient(client, self.permit)
        self.clock = clock
        self.deadline: float = clock.monotonic() + seconds
        self.limit = self.deadline + (ABANDONED_AFTER_SECONDS if grace is None else grace)
        """The monotonic time at which the call is abandoned unless it has returned."""
        self._gate = gate
        self._lock = threading.Lock()
        self._cancelled: Cancelled | None = None
        self._over = False

    def progress(self) -> dict[str, object]:
        """Return the fields of a log line about a call that has not returned."""
        seconds = round(self.clock.monotonic() - self._began)
        return {"method": self.method, "seconds": seconds, "at": standing(self._thread)}

    def check(self) -> None:
        """See Context."""
        self.permit()

    def permit(self) -> None:
        """Raise Cancelled if the call must stop; every use of it begins with this."""
        if self._cancelled is not None:
            raise CallAbandoned(str(self._cancelled))  # a new one: a shared one keeps all frames
        if self.clock.monotonic() >= self.deadline:
            raise DeadlineExceeded("the deadline of this operation passed")
        self._gate()

    def remaining(self) -> float:
        """See Context."""
        return max(0.0, self.deadline - self.clock.monotonic())

    def secret(self, name: str, namespace: str) -> Raw:
        """See Context."""
        return self.client.get(SECRETS, name, namespace)

    @overload
    def credentials(self, of: Object | CredentialsReference, key: str, /) -> str: ...
    @overload
    def credentials(
        self, of: Object | CredentialsReference, key: str, second: str, /, *more: str
    ) -> tuple[str, ...]: ...
    def credentials(
        self, of: Object | CredentialsReference, key: str, /, *more: str
    ) -> str | tuple[str, ...]:
        """See Context."""
        texts = read_texts(self.secret, of, [key, *more])
        return texts if more else texts[0]

    def limited(self, client: HttpClient, seconds: Callable[[], float] = lambda: inf) -> HttpClient:
        """Return a client whose requests end with the call, and have `seconds()` at most."""

        def left() -> float:
            self.permit()
            return max(_MIN_SECONDS, min(seconds(), self.remaining()))

        return client.limited(left).gated(self.permit)

    def cancel(self, reason: str, *, grace: float | None = None) -> None:
        """Ask the call to stop: every use of it raises CallAbandoned.

        It has `grace` seconds to return, ABANDONED_AFTER_SECONDS if None.
        """
        if self._cancelled is None:
            self._cancelled = CallAbandoned(reason)
        seconds = ABANDONED_AFTER_SECONDS if grace is None else grace
        self.limit = min(self.limit, self.clock.monotonic() + seconds)

    @property
    def cancelled(self) -> bool:
        """Whether the call was asked to stop."""
        return self._cancelled is not None

    def end(self) -> bool:
        """End the call, returned or abandoned; return False if it had ended before."""
        with self._lock:
            first = not self._over
            self._over = True
            if self._cancelled is None:
                self._cancelled = CallAbandoned("the call has ended")
            return first


def blocks(progress: dict[str, object]) -> str:
    """Describe a call that has not returned, by its `progress`."""
    text = "{method} has not returned for {seconds} s".format(**progress)
    return f"{text}; its thread is at {progress['at']}" if progress["at"] else text


class AbandonedCalls:
    """The abandoned calls of all controllers, and the places reserved for more."""

    def __init__(self, limit: int = 64) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._places: set[Call] = set()
        self._abandoned: set[Call] = set()

    def __len__(self) -> int:
        return len(self._abandoned)

    def reserve(self, call: Call) -> bool:
        """Reserve a place for a call that may be abandoned; return False if none is free."""
        with self._lock:
            if call not in self._places and len(self._places) >= self._limit:
                return False
            self._places.add(call)
            return True

    def add(self, call: Call) -> None:
        """Count an abandoned call, in its reserved place."""
        self._abandoned.add(call)

    def discard(self, call: Call) -> None:
        """Free the place of a call that returned."""
        with self._lock:
            self._places.discard(call)
            self._abandoned.discard(call)
