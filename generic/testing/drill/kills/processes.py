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
_SOONEST, _LATEST = 0.05, 1.5
"""Seconds between the moment a manager works and its kill."""


class End(IntEnum):
    """How the process of an order ended; the value is its exit code."""

    KILLED = -9
    LATE = -14
    STOPPED = 0


class _Zygote:
    """The running `child` program. Its standard error is added to the file `log`."""

    def __init__(self, rehearsals: Sequence[str], log: Path) -> None:
        self._log = log
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
        self._stdin, self._stdout = process.stdin, process.stdout

    def send(self, message: Order | bytes) -> None:
        """Write a line. Raises ActuatorError if the process has ended."""
        if not isinstance(message, bytes):
            message = f"{json.dumps(cattrs.unstructure(message))}\n".encode()
        try:
            self._stdin.write(message)
        except BrokenPipeError:
            raise self.error("it is gone") from None

    def answers(self, seconds: float) -> bool:
        """Return whether a line or the end of output arrives within that time."""
        return bool(select.select([self._stdout], [], [], seconds)[0])

    def receive(self) -> str:
        """Return the next line; "" at the end of its output."""
        return self._stdout.readline().decode().strip()

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

    def error(self, what: str) -> ActuatorError:
        """Return an error with the last line of its log."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return ActuatorError(": ".join([f"a manager that is to be killed: {what}", *lines[-1:]]))


@contextmanager
def workers(
    rehearsals: Sequence[str], folder: Path, count: int
) -> Iterator[Callable[[Order, Callable[[], bool]], End]]:
    """Start `count` zygotes, with logs in `folder`; yield a function that any thread may call.

    It runs a manager in a free zygote until it dies, or until its second argument returned True
    twice in a row. Raises ActuatorError if its process ends in another way.
    """
    free: SimpleQueue[_Zygote] = SimpleQueue()

    def run(order: Order, through: Callable[[], bool]) -> End:
        zygote = free.get()
        try:
            return _run(zygote, order, through)
        finally:
            free.put(zygote)

    with ExitStack() as stack:
        for number in range(count):
            zygote = _Zygote(rehearsals, folder / f"worker-{number}.log")
            free.put(stack.enter_context(closing(zygote)))
        yield run


def _run(zygote: _Zygote, order: Order, through: Callable[[], bool]) -> End:
    zygote.send(order)
    zygote.receive()  # its process ID
    deadline = time.monotonic() + order.seconds + _GRACE
    said = 0
    while True:
        if zygote.answers(_POLL):
            answer = zygote.receive()
            if answer != WORKING:
                break
        said = said + 1 if through() else 0
        if said == 2:  # leaves time for requests after the last patch, such as events
            zygote.send(STOP)
        if time.monotonic() > deadline:
            raise zygote.error("it does not answer")
    try:
        return End(int(answer))
    except ValueError:
        raise zygote.error(f"exit code {answer or 'unknown'}") from None


@attrs.frozen(kw_only=True)
class Death:
    """A SIGKILL of a seed's manager; `at` in seconds since the drill began."""

    seed: str
    phase: str
    at: float


class Victim:
    """The manager of one seed; it runs until `close`, and is restarted after each kill.

    `now` is the clock of its deaths, `log` gets its standard error. Raises ActuatorError if it does
    not start.
    """

    def __init__(
        self, rehearsals: Sequence[str], order: Order, log: Path, now: Callable[[], float]
    ) -> None:
        self.deaths: list[Death] = []
        self._order = order
        self._now = now
        self._zygote = _Zygote(rehearsals, log)
        self._pid = 0
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop the manager and its process."""
        self._zygote.close()

    @contextmanager
    def endangered(self, phase: str, dice: random.Random) -> Iterator[None]:
        """Kill and restart it a few times while the context is open; at the end it works."""
        done = threading.Event()
        moments = [dice.uniform(_SOONEST, _LATEST) for _ in range(_KILLS)]

        def kill_again_and_again() -> None:
            for number, moment in enumerate(moments):
                if done.wait(moment) and number > 0:
                    return
                self._kill(phase)

        with ThreadPoolExecutor(1, "killer") as pool:
            killing = pool.submit(kill_again_and_again)
            try:
                yield
            finally:
                done.set()
        killing.result()

    def _kill(self, phase: str) -> None:
        os.kill(self._pid, signal.SIGKILL)
        self._zygote.receive()  # its exit code: the process has ended
        self.deaths.append(Death(seed=self._order.seed, phase=phase, at=self._now()))
        self._start()

    def _start(self) -> None:
        self._zygote.send(self._order)
        pid, said = self._zygote.receive(), self._zygote.receive()
        if said != WORKING:
            raise self._zygote.error(f"that of the {self._order.seed} did not start")
        self._pid = int(pid)
