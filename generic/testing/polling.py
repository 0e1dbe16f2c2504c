"""Polling, waiting and parallel work, for drills and simulated controllers.

For drills and tests only, where the number of requests does not matter; controllers use informers.
"""

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
    """Call `poll` every `every` seconds in a thread until the context is left.

    ApiError and Stale are only logged: the next call reads the state again.
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
    """Wait until there are no problems; return those that remain after `seconds`."""
    deadline = time.monotonic() + seconds
    while (left := problems()) and time.monotonic() < deadline:
        time.sleep(every)
    return left


def parallel(items: Sequence[T], act: Callable[[T], object], *, at_once: int = 10) -> None:
    """Call `act` with each item, `at_once` at a time; raise the first error."""
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(act, items))
