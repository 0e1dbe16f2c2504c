"""Looking: the small doubles of other controllers look at everything, again and again.

For drills and tests only, where nobody counts their requests; controllers of ours have informers.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from actuator.errors import ApiError
from generic.kube.finalizers import Stale

__all__ = ["looking"]

logger = logging.getLogger(__name__)


@contextmanager
def looking(look: Callable[[], None], name: str, *, every: float = 0.25) -> Iterator[None]:
    """In a thread, `look` is called every so many seconds while this is open.

    Where the API server refuses, or something changed meanwhile, the next look finds out.
    """
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(every):
            try:
                look()
            except (ApiError, Stale) as error:
                logger.debug("%s cannot look: %s", name, error)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(10)
