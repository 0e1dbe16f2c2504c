"""Processes that run managers: start, kill at random times, wait."""

import json
import os
import random
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from enum import IntEnum
from pathlib import Path
from queue import SimpleQueue

import attrs
import cattrs

from actuator.errors import ActuatorError
from generic.testing.drill.kills.child import STOP, WORKING, Order

_RUN = "import actuator; from generic.testing.drill.kills.child import main; main()"
"""`python -m` would import `generic` first, and might find an author's folder of that name."""
_POLL = 0.15
_GRACE = 60.0
"""Seconds for a process to start and to respond, in addition to the time of an order."""
_END_SECONDS = 5.0
_KILLS = 3
_SOONEST = 0.05
_LATEST = 1.5
"""Seconds between the moment a manager works and its kill."""


class ProcessEnd(IntEnum):
    """How the process of an order ended; the value is its exit code."""

    KILLED = -9
    LATE = -14
    STOPPED = 0


class CrashRunner:
    """Runs managers that may be killed, one at a time, as children of one zygote.

    The standard error of all is added to the file `log`.
    """

    def __init__(self, rehearsals: Sequence[str], log: Path) -> None:
        self._log = log
        self._pid = 0
        with log.open("a") as errors:
            self._process = process = subprocess.Popen(
                [sys.executable, "-c", _RUN, *rehearsals],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                bufsize=0,  # `select` does not see a line that was read ahead
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        assert process.stdin is not None, "it is a pipe"
        assert process.stdout is not None, "it is a pipe"
        self._stdin = process.stdin
        self._stdout = process.stdout

    def start(self, order: Order) -> None:
        """Start a manager, and return once it works. Raises ActuatorError if it does not."""
        self._begin(order)
        if self._receive() != WORKING:
            raise self._error(f"that of the {order.seed} did not start")

    def kill(self) -> None:
        """Kill the manager that `start` started; return once its process has ended."""
        os.kill(self._pid, signal.SIGKILL)
        self._receive()  # its exit code

    def run(self, order: Order, through: Callable[[], bool]) -> ProcessEnd:
        """Run a manager until it dies, or until `through` returned True twice in a row.

        Raises ActuatorError if its process ends in another way.
        """
        self._begin(order)
        deadline = time.monotonic() + order.seconds + _GRACE
        said = 0
        while True:
            if select.select([self._stdout], [], [], _POLL)[0]:
                answer = self._receive()
                if answer != WORKING:
                    break
            said = said + 1 if through() else 0
            if said == 2:  # leaves time for requests after the last patch, such as events
                self._send(STOP)
            if time.monotonic() > deadline:
                raise self._error("it does not answer")
        try:
            return ProcessEnd(int(answer))
        except ValueError:
            raise self._error(f"exit code {answer or 'unknown'}") from None

    def close(self) -> None:
        """Close its input, which ends a working child; kill the zygote if it does not end."""
        for pipe in (self._stdin, self._stdout):
            with suppress(BrokenPipeError):
                pipe.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _begin(self, order: Order) -> None:
        self._send(f"{json.dumps(cattrs.unstructure(order))}\n".encode())
        if not (pid := self._receive()):
            raise self._error("it is gone")
        self._pid = int(pid)

    def _send(self, line: bytes) -> None:
        try:
            self._stdin.write(line)
        except BrokenPipeError:
            raise self._error("it is gone") from None

    def _receive(self) -> str:
        """Return the next line; "" at the end of its output."""
        return self._stdout.readline().decode().strip()

    def _error(self, what: str) -> ActuatorError:
        """Return an error with the last line of its log."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return ActuatorError(": ".join([f"a manager that is to be killed: {what}", *lines[-1:]]))


@contextmanager
def runners(
    rehearsals: Sequence[str], folder: Path, count: int
) -> Iterator[Callable[[Order, Callable[[], bool]], ProcessEnd]]:
    """Start `count` runners, with logs in `folder`; yield `run` of the next free one."""
    free: SimpleQueue[CrashRunner] = SimpleQueue()

    def run(order: Order, through: Callable[[], bool]) -> ProcessEnd:
        runner = free.get()
        try:
            return runner.run(order, through)
        finally:
            free.put(runner)

    with ExitStack() as stack:
        for number in range(count):
            runner = CrashRunner(rehearsals, folder / f"worker-{number}.log")
            free.put(stack.enter_context(closing(runner)))
        yield run


@attrs.frozen(kw_only=True)
class Death:
    """A SIGKILL of a seed's manager; `at` in seconds since the drill began."""

    seed: str
    phase: str
    at: float


class Victim:
    """The manager of one seed, which a CrashRunner runs until its end."""

    def __init__(self, runner: CrashRunner, order: Order, now: Callable[[], float]) -> None:
        """`now` is the clock of its deaths. Raises ActuatorError if it does not start."""
        self.deaths: list[Death] = []
        self._runner = runner
        self._order = order
        self._now = now
        runner.start(order)

    @contextmanager
    def endangered(self, phase: str, rng: random.Random) -> Iterator[None]:
        """Kill and restart it a few times while the context is open; at the end it works."""
        done = threading.Event()
        moments = [rng.uniform(_SOONEST, _LATEST) for _ in range(_KILLS)]

        def kill_again_and_again() -> None:
            for number, moment in enumerate(moments):
                if done.wait(moment) and number > 0:
                    return
                self._runner.kill()
                self.deaths.append(Death(seed=self._order.seed, phase=phase, at=self._now()))
                self._runner.start(self._order)

        with ThreadPoolExecutor(1, "killer") as pool:
            killing = pool.submit(kill_again_and_again)
            try:
                yield
            finally:
                done.set()
        killing.result()
