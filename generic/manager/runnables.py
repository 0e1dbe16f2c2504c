"""Runner: one thread for each runnable, restarted when it fails.

A runnable never ends the process. If it returns, its work is done; an exception is logged, and it
is called again after a backoff. /healthz reports a runnable without a thread.
"""

import logging
import threading
import time
from collections.abc import Iterable

from actuator.errors import LeaseLost
from actuator.interface import Client
from generic.controller.workqueue import Backoff
from generic.manager.registry import Runnable

logger = logging.getLogger(__name__)

_STEADY = 60.0
"""Seconds of running after which the next failure counts as the first."""


class Runner:
    """Runs runnables until `stop` is set."""

    def __init__(
        self, runnables: Iterable[Runnable], client: Client, stop: threading.Event
    ) -> None:
        self._runnables = list(runnables)
        self._client = client
        self._stop = stop
        self._backoff = Backoff(first=1.0, cap=60.0)
        self._running: dict[str, threading.Thread] = {}
        self._done: set[str] = set()

    def start(self) -> None:
        """Start all runnables."""
        for runnable in self._runnables:
            name = runnable.name
            thread = threading.Thread(target=self._run, args=(runnable,), name=name, daemon=True)
            thread.start()
            self._running[name] = thread

    def problem(self) -> str | None:
        """Return the names of unfinished runnables without a thread, or None."""
        if self._stop.is_set():
            return None
        running = list(self._running.items())
        dead = [n for n, thread in running if not thread.is_alive() and n not in self._done]
        return f"stopped: {', '.join(dead)}" if dead else None

    def _run(self, runnable: Runnable) -> None:
        failures = 0
        while not self._stop.is_set():
            started = time.monotonic()
            try:
                runnable.run(self._client, self._stop)
                break
            except LeaseLost:
                break
            except BaseException as error:  # also SystemExit: it must not end silently
                failures = 1 if time.monotonic() - started > _STEADY else failures + 1
                delay = self._backoff.delay(failures)
                fields = {"name": runnable.name, "error": str(error), "again_in": round(delay, 1)}
                logger.warning("runnable failed", extra={"fields": fields}, exc_info=True)
                self._stop.wait(delay)
        self._done.add(runnable.name)
