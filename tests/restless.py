"""Finds threads that go on after the tests that started them."""

from __future__ import annotations

import resource
import sys
import time
import traceback

RESTLESS = 20
"""Times that a thread wakes up in half a second to look for something."""


def busy_for(seconds: float) -> int:
    """How often a thread of this process went to sleep meanwhile."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
    time.sleep(seconds)
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before


def stacks() -> str:
    """Where each thread is."""
    return "\n".join("".join(traceback.format_stack(one)) for one in sys._current_frames().values())
