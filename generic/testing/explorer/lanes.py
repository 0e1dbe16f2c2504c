"""Lanes: processes that run one order after another, and how each ended; several at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from enum import IntEnum
from pathlib import Path
from queue import SimpleQueue

from actuator.errors import ActuatorError
from generic.testing.drill.program import Program
from generic.testing.explorer.child import STOP, Order, Task

__all__ = ["End", "Lane", "Lanes", "lanes"]

_POLL = 0.15
_GRACE = 60.0
"""Seconds for a process to start and to answer, beyond the time of an order."""


class End(IntEnum):
    """How the process of an order ended; the value is its exit code."""

    KILLED = -9
    LATE = -14
    STOPPED = 0


class Lane:
    """One zygote. `log` gets its standard error. Raises ActuatorError where it is gone at once."""

    def __init__(self, task: Task, log: Path) -> None:
        self._zygote = Program("generic.testing.explorer.child", log)
        self._send(task)

    def close(self) -> None:
        """The end of its input ends the zygote, and a child that is at work."""
        self._zygote.close()

    def run(self, order: Order, through: Callable[[], bool]) -> End:
        """Runs it until it dies, or until `through` said twice in a row that all is done.

        Raises ActuatorError where the process ends in another way.
        """
        self._send(order)
        deadline = time.monotonic() + order.seconds + _GRACE
        said = 0
        while not self._zygote.answers(_POLL):
            said = said + 1 if through() else 0
            if said == 2:  # whatever comes after the last patch, events say, has its turn
                self._send(STOP)
            if time.monotonic() > deadline:
                raise self._error("it does not answer")
        answer = self._zygote.receive()
        try:
            return End(int(answer))
        except ValueError:
            raise self._error(f"exit code {answer or 'unknown'}") from None

    def _send(self, what: Task | Order | bytes) -> None:
        try:
            if isinstance(what, bytes):
                self._zygote.write(what)
            else:
                self._zygote.send(what)
        except BrokenPipeError:
            raise self._error("it is gone") from None

    def _error(self, what: str) -> ActuatorError:
        last = self._zygote.last_words()
        why = f": {last}" if last else ""
        return ActuatorError(f"a manager under exploration failed, {what}{why}")


class Lanes:
    """Some lanes, each used by one thread at a time."""

    def __init__(self, free: SimpleQueue[Lane], count: int) -> None:
        self._free = free
        self.count = count

    def run(self, order: Order, through: Callable[[], bool]) -> End:
        """Runs it in a lane that is free, or becomes so. Raises ActuatorError."""
        lane = self._free.get()
        try:
            return lane.run(order, through)
        finally:
            self._free.put(lane)


@contextmanager
def lanes(task: Task, folder: Path, count: int) -> Iterator[Lanes]:
    """So many lanes, with logs in `folder`."""
    free: SimpleQueue[Lane] = SimpleQueue()
    with ExitStack() as stack:
        for number in range(count):
            lane = Lane(task, folder / f"lane-{number}.log")
            free.put(stack.enter_context(closing(lane)))
        yield Lanes(free, count)
