"""Lanes: processes that run one order after another, and how each ended; several at a time."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from enum import IntEnum
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Self

import cattrs

from actuator.errors import ActuatorError
from generic.explorer.child import STOP, Order, Task

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
    """One zygote; it runs while this is open as a context. `log` gets its standard error."""

    def __init__(self, task: Task, log: Path) -> None:
        self._task = task
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "generic.explorer.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        self._send(_line(self._task))
        return self

    def __exit__(self, *_error: object) -> None:
        """The end of its input ends the zygote, and a child that is at work."""
        process = self._started
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)

    def run(self, order: Order, through: Callable[[], bool]) -> End:
        """Runs it until it dies, or until `through` said twice in a row that all is done.

        Raises ActuatorError where the process ends in another way.
        """
        self._send(_line(order))
        deadline = time.monotonic() + order.seconds + _GRACE
        said = 0
        while not self._answers(_POLL):
            said = said + 1 if through() else 0
            if said == 2:  # whatever comes after the last patch, events say, has its turn
                self._send(STOP)
            if time.monotonic() > deadline:
                raise self._error("it does not answer")
        answer = self._stdout.readline().strip()
        try:
            return End(int(answer))
        except ValueError:
            raise self._error(f"exit code {answer.decode() or 'unknown'}") from None

    @property
    def _started(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "a lane is open as a context"
        return self._process

    @property
    def _stdout(self) -> Any:
        return self._started.stdout

    def _answers(self, seconds: float) -> bool:
        return bool(select.select([self._stdout], [], [], seconds)[0])

    def _send(self, line: bytes) -> None:
        stdin = self._started.stdin
        assert stdin is not None
        try:
            stdin.write(line)
            stdin.flush()
        except BrokenPipeError:
            raise self._error("it is gone") from None

    def _error(self, what: str) -> ActuatorError:
        last = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        why = f": {last[-1]}" if last else ""
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
            free.put(stack.enter_context(Lane(task, folder / f"lane-{number}.log")))
        yield Lanes(free, count)


def _line(what: object) -> bytes:
    return f"{json.dumps(cattrs.unstructure(what))}\n".encode()
