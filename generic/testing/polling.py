"""Polling, waiting and parallel work, for drills and simulated controllers.

For drills and tests only; controllers use informers. After each call, polling rests at least four
times as long as the call took: on a busy machine, frequent calls would slow down what they read.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pprint import pformat
from typing import TypeVar

from actuator.errors import ApiError, DecodeError, NotFound
from actuator.meta import Raw
from generic.kube.finalizers import Stale

logger = logging.getLogger(__name__)

T = TypeVar("T")

UNREADABLE = (AttributeError, DecodeError, LookupError, RecursionError, TypeError, ValueError)
"""What code raises that reads an object of an unexpected shape."""
_REST = 4
"""Rest, as a multiple of the duration of a look."""


@contextmanager
def polling(
    poll: Callable[[], None], name: str, *, every: float = 0.25, rest: float = _REST
) -> Iterator[None]:
    """Call `poll` every `every` seconds or more seldom, in a thread, until the context is left.

    ApiError and Stale are only logged: the next call reads the state again. After any other
    exception polling continues, too; the thread reports it like one that ended it, and once.
    `rest` is a multiple of the duration of a call.
    """
    stop = threading.Event()

    def run() -> None:
        pause = every
        reported = ""
        while not stop.wait(pause):
            began = time.monotonic()
            try:
                poll()
            except (ApiError, Stale) as error:
                logger.debug("%s cannot poll: %s", name, error)
            except Exception as error:
                if repr(error) != reported:
                    reported = repr(error)
                    about = (type(error), error, error.__traceback__, threading.current_thread())
                    threading.excepthook(threading.ExceptHookArgs(about))
            pause = _pause(began, every, rest)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(10)


def serve_each(objects: Iterable[Raw], serve: Callable[[Raw], object], reported: set[str]) -> None:
    """Call `serve` with each object; one that is gone or cannot be read stops no other.

    An unreadable object is logged once: `reported` gets the text. Raises ApiError.
    """
    for obj in objects:
        try:
            serve(obj)
        except (NotFound, Stale):
            """The next round has the present objects."""
        except UNREADABLE as error:
            meta = obj["metadata"]
            name = f"{obj['kind']} {meta.get('namespace', '')}/{meta['name']}"
            text = f"{name} is not served: it cannot be read: {error!r}"
            if text not in reported:
                reported.add(text)
                logger.warning("%s", text)


def wait_while(problems: Callable[[], Sequence[T]], seconds: float, every: float) -> Sequence[T]:
    """Wait until there are no problems; return those that remain after `seconds`."""
    deadline = (began := time.monotonic()) + seconds
    while (left := problems()) and time.monotonic() < deadline:
        time.sleep(min(_pause(began, every), max(0, deadline - time.monotonic())))
        began = time.monotonic()
    return left


def _pause(began: float, every: float, rest: float = _REST) -> float:
    return max(every, rest * (time.monotonic() - began))


def eventually(condition: Callable[[], T], timeout: float = 30.0) -> T:
    """Return the first true value of `condition`; call it again for up to `timeout` seconds.

    An exception counts as not yet. Raises AssertionError with the last value or exception.
    """
    __tracebackhide__ = True  # pytest shows the caller's line
    deadline = time.monotonic() + timeout
    while True:
        began = time.monotonic()
        try:
            if found := condition():
                return found
            last = f"returned {pformat(found, width=100)}"
        except Exception as error:  # the object may not exist yet, or its status be empty
            last = f"raised {type(error).__name__}: {error}"
        if time.monotonic() >= deadline:
            raise AssertionError(f"not true after {timeout:g} s: the last call {last}")
        time.sleep(_pause(began, 0.1))


def parallel(items: Sequence[T], act: Callable[[T], object], *, at_once: int = 10) -> None:
    """Call `act` with each item, `at_once` at a time; raise the first error."""
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(act, items))
