"""Polling, waiting, and work in parallel: how drills and simulated controllers go about it.

For drills and tests only, where nobody counts their requests; controllers of ours have informers.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from actuator.errors import ApiError
from generic.kube.finalizers import Stale

logger = logging.getLogger(__name__)

T = TypeVar("T")


@contextmanager
def polling(poll: Callable[[], None], name: str, *, every: float = 0.25) -> Iterator[None]:
    """Calls `poll` every so many seconds in a thread while this is open.

    Where the API server refuses, or something changed meanwhile, the next call finds out.
    """
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(every):
            try:
                poll()
            except (ApiError, Stale) as error:
                logger.debug("%s cannot poll: %s", name, error)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(10)


def wait_while(problems: Callable[[], Sequence[T]], seconds: float, every: float) -> Sequence[T]:
    """Waits until there are no problems; returns those that are left after that many seconds."""
    deadline = time.monotonic() + seconds
    while (left := problems()) and time.monotonic() < deadline:
        time.sleep(every)
    return left


def parallel(items: Sequence[T], act: Callable[[T], object], *, at_once: int = 10) -> None:
    """Calls `act` with each of them, `at_once` at a time; raises the first error."""
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(act, items))
