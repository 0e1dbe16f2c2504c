"""Finds threads that go on after the tests that started them."""

from __future__ import annotations

import resource
import sys
import time
import traceback

MIN_BUSY = 20
"""Times that a thread wakes up in half a second to look for something."""


def goes_on() -> bool:
    """Whether a thread looks for something all the time; one that is about to end may not."""
    return all(_busy_for(0.5) >= MIN_BUSY for _ in range(6))


def _busy_for(seconds: float) -> int:
    """The number of times that a thread of this process went to sleep meanwhile."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
    time.sleep(seconds)
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before


def stacks() -> str:
    """The stack of each thread."""
    return "\n".join(
        "".join(traceback.format_stack(current_frame))
        for current_frame in sys._current_frames().values()
    )
