"""Trouble: additional faults in a drill, while its scenario breaks the outside world.

On the connections of the manager, in the API server, or in calls of actuators; embedded clusters
only. The objects must still be deleted, and the same invariants hold.
"""

import random
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import attrs

from actuator.errors import ApiError, Gone, Unavailable, api_error
from actuator.interface import Actuator, WrappedActuator
from generic.kube.client import HttpClient
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.testing.envtest import Environment
from generic.testing.envtest.servers import KillableServer

_DOWN_AFTER_SECONDS = 0.2
_DOWN_SECONDS = 1.5
_REASONS = (
    (409, "Conflict"),
    (429, "TooManyRequests"),
    (500, "InternalError"),
    (503, "ServiceUnavailable"),
)


@attrs.frozen(kw_only=True)
class Trouble:
    """Faults, and the time limit of a force deletion (`budget`, seconds; None: unlimited).

    They last from the deletion of the shoots, and again from their force deletion until the final
    checks. `cut`, `expired`, `refused` and `lost` are probabilities.
    """

    name: str
    restarts: bool = False
    """Whether the API server is killed, and started again after a moment."""
    cut: float = 0.0
    """A watch ends at a line, which is lost."""
    expired: float = 0.0
    """A watch ends at a line with the error 410."""
    refused: float = 0.0
    """A request is answered with an error, one of four."""
    lost: float = 0.0
    """A request is carried out, and its answer is lost."""
    hangs: bool = False
    """Whether the actuators' force deletions ignore cancellation until the trouble ends."""
    budget: float | None = Options().force_delete_budget


CALM = Trouble(name="calm")
TROUBLES = (
    CALM,
    Trouble(name="api-server-restarts", restarts=True),
    Trouble(name="watches-cut", cut=0.2, expired=0.1),
    Trouble(name="answers-refused", refused=0.1, lost=0.1),
    Trouble(name="calls-hang", hangs=True, budget=5.0),
)
"""`actuator drill --all` combines each trouble with each scenario."""


class Troublemaker:
    """Causes one trouble in one drill. Safe to use from any thread."""

    def __init__(self, trouble: Trouble = CALM, environment: Environment | None = None) -> None:
        """`environment` is needed for a trouble that restarts the API server."""
        self.trouble = trouble
        self.calm = threading.Event()
        """Not set while the faults are active."""
        self.calm.set()
        self._environment = environment
        self._random = random.Random(0)
        self._pool = ThreadPoolExecutor(1, "trouble")
        self._restart: Future[None] | None = None

    def begin(self) -> None:
        """Start the faults, once those of an earlier call have ended."""
        self.end()
        self.calm.clear()
        if self.trouble.restarts and self._environment is not None:
            self._restart = self._pool.submit(self._restart_api_server, self._environment)

    def end(self) -> None:
        """Undo all faults. Raises EnvtestError without an API server. Safe to call twice."""
        self.calm.set()
        if self._restart is not None:
            self._restart.result()

    def strikes(self, probability: float) -> bool:
        """Decide whether a fault of this probability occurs now."""
        return not self.calm.is_set() and self._random.random() < probability

    def refusal(self) -> ApiError:
        """Return the error of a request that is refused, one of four."""
        status, reason = self._random.choice(_REASONS)
        return api_error(status, {"reason": reason, "message": f"injected fault: {status}"})

    def actuator(self, inner: Actuator[Any]) -> Actuator[Any]:
        """Return the actuator with the trouble's faults."""
        return _Hanging(inner, self.calm) if self.trouble.hangs else inner

    def _restart_api_server(self, environment: Environment) -> None:
        if self.calm.wait(_DOWN_AFTER_SECONDS):
            return
        environment.kill(KillableServer.APISERVER)
        self.calm.wait(_DOWN_SECONDS)
        environment.restart(KillableServer.APISERVER)


@contextmanager
def causing(trouble: Trouble, environment: Environment) -> Iterator[Troublemaker]:
    """Yield a Troublemaker, whose faults end with the context at the latest."""
    maker = Troublemaker(trouble, environment)
    try:
        yield maker
    finally:
        with suppress(Exception):  # do not hide the error of a failed drill
            maker.end()


class _Hanging(WrappedActuator):
    """Its force deletions ignore cancellation until it is calm, then do their work."""

    def __init__(self, inner: Actuator[Any], calm: threading.Event) -> None:
        super().__init__(inner)
        self._calm = calm

    def force_delete(self, ctx: Any, obj: Any, cluster: Any, /) -> None:
        self._calm.wait()
        self.inner.force_delete(ctx, obj, cluster)


class TroubledManager(Manager):
    """A manager whose connection to the API server has the faults of a Troublemaker."""

    def __init__(self, maker: Troublemaker, options: Options, **given: Any) -> None:
        super().__init__(options, **given)
        self._maker = maker

    def _connect(self) -> HttpClient:
        return TroubledClient(super()._connect(), self._maker)


class TroubledClient(HttpClient):
    """A client on the connections of `inner`, whose requests and watches may fail."""

    def __init__(self, inner: HttpClient, maker: Troublemaker) -> None:
        vars(self).update(vars(inner))
        self._maker = maker

    def send(self, method: str, path: str, **named: Any) -> bytes:
        """See HttpClient."""
        self._refuse(path)
        answer = super().send(method, path, **named)
        if _is_grouped(path) and self._maker.strikes(self._maker.trouble.lost):
            raise Unavailable(0, f"{method} {path}: the drill dropped the answer")
        return answer

    @contextmanager
    def stream(
        self, path: str, query: Mapping[str, str], *, read_timeout: float
    ) -> Iterator[Iterator[bytes]]:
        """See HttpClient."""
        self._refuse(path)
        with super().stream(path, query, read_timeout=read_timeout) as lines:
            yield map(self._received, lines)

    def _received(self, line: bytes) -> bytes:
        """Return a line of a watch, unless the watch ends with it."""
        if self._maker.strikes(self._maker.trouble.cut):
            raise Unavailable(0, "the drill cut the watch")
        if self._maker.strikes(self._maker.trouble.expired):
            raise Gone(410, "the drill ended the watch", reason="Expired")
        return line

    def _refuse(self, path: str) -> None:
        if _is_grouped(path) and self._maker.strikes(self._maker.trouble.refused):
            raise self._maker.refusal()


def _is_grouped(path: str) -> bool:
    """Return whether it is not of a core kind: a refused event is lost, and the judge reads it."""
    return path.startswith("/apis/")
