"""The check at the end of the tests that no thread goes on."""

from __future__ import annotations

import threading

from tests.support.suite.busy_threads import goes_on


def test_a_thread_that_looks_for_something_is_noticed():
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.01):
            pass

    thread = threading.Thread(target=look)
    thread.start()
    seen = goes_on()
    over.set()
    thread.join()
    assert seen


def test_a_thread_that_hangs_is_not():
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    seen = goes_on()
    over.set()
    thread.join()
    assert not seen
