"""Runs: parallel checks that cannot block their worker.

Guarantees:
- `run` returns after `seconds` at the latest, even if checks are unresponsive.
- An unresponsive check is not started again for that object before it returns, so that the number
  of threads is at most checks times objects.

Threads cannot be stopped, so an unresponsive check keeps running; it only reads.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait

from actuator.errors import ActuatorError, ErrorCode, check_seconds
from generic.kube.errorinfo import read_error, shorten
from generic.library.healthchecks.aggregate import Finding
from generic.library.healthchecks.model import HealthResult, HealthStatus

logger = logging.getLogger(__name__)

Task = Callable[[], HealthResult]
_Key = tuple[str, int]


class Runs:
    """Safe to use from any thread, but for one object by only one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[_Key, Future[Finding]] = {}

    def run(self, uid: str, tasks: Sequence[Task], seconds: float) -> list[Finding]:
        """Return the result of each task, or its error."""
        started = [self._start((uid, number), task) for number, task in enumerate(tasks)]
        futures = [future for future in started if future is not None]
        done, _ = wait(futures, timeout=seconds)
        late = ActuatorError(f"the check timed out after {seconds:g} s")
        return [late if f is None or f not in done else f.result() for f in started]

    def _start(self, key: _Key, task: Task) -> Future[Finding] | None:
        """Start a task; return None if its previous run has not returned yet."""
        future: Future[Finding] = Future()
        with self._lock:
            if key in self._running:
                return None
            self._running[key] = future
        thread = threading.Thread(
            target=self._work, args=(key, task, future), name="health-check", daemon=True
        )
        thread.start()
        return future

    def _work(self, key: _Key, task: Task, future: Future[Finding]) -> None:
        try:
            outcome: Finding = _checked(task())
        except BaseException as error:  # SystemExit included: no check may end the process
            outcome = _read(error)  # here, since it runs the error's own code
        with self._lock:
            del self._running[key]
        future.set_result(outcome)


def _read(error: BaseException) -> ActuatorError:
    info = read_error(error)
    if info.unexpected:
        logger.warning("unexpected exception in health check", exc_info=info.unexpected)
    return ActuatorError(info.text, codes=info.codes)


def _checked(result: object) -> HealthResult:
    """Return a bounded copy. Raises TypeError or ValueError unless it is a valid HealthResult."""
    if not isinstance(result, HealthResult) or not isinstance(result.detail, str):
        raise TypeError(f"the check returned {type(result).__name__}; it must return HealthResult")
    threshold = result.progressing_threshold
    return HealthResult(
        status=HealthStatus(result.status),
        detail=shorten(result.detail),
        codes=[ErrorCode(code) for code in result.codes],
        progressing_threshold=None if threshold is None else check_seconds(threshold),
    )
