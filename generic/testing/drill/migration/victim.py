"""Victim: a seed's manager in a child process, killed at random moments and started again."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from actuator.errors import ActuatorError
from generic.testing.drill.migration.child import WORKING, Task
from generic.testing.drill.migration.evidence import Kill
from generic.testing.drill.program import Program

__all__ = ["Victim"]

_KILLS = 3
_SOONEST, _LATEST = 0.05, 1.5
"""Seconds between the moment a manager works and its end."""


class Victim:
    """The manager of one seed; it runs until `close`.

    `log` gets what the process says on standard error. Raises ActuatorError where it does not
    start.
    """

    def __init__(self, task: Task, log: Path, now: Callable[[], float]) -> None:
        self.kills: list[Kill] = []
        self._task = task
        self._log = log
        self._now = now
        self._start()

    def close(self) -> None:
        """Ends it by SIGKILL."""
        self._program.kill()

    @contextmanager
    def endangered(self, phase: str, dice: random.Random) -> Iterator[None]:
        """In here it is killed a few times, and started again each time; at the end it works."""
        done = threading.Event()
        moments = [dice.uniform(_SOONEST, _LATEST) for _ in range(_KILLS)]
        failed: list[Exception] = []

        def kill_again_and_again() -> None:
            try:
                for number, moment in enumerate(moments):
                    if done.wait(moment) and number > 0:
                        return
                    self._kill(phase)
            except Exception as error:
                failed.append(error)

        thread = threading.Thread(target=kill_again_and_again, name="killer", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
        if failed:
            raise failed[0]

    def _kill(self, phase: str) -> None:
        self._program.kill()
        self.kills.append(Kill(seed=self._task.seed, phase=phase, at=self._now()))
        self._start()

    def _start(self) -> None:
        self._program = program = Program("generic.testing.drill.migration.child", self._log)
        try:
            program.send(self._task)
            said = program.receive()
        except BrokenPipeError:
            said = ""
        if said != WORKING:
            program.kill()
            why = program.last_words() or "it said nothing"
            raise ActuatorError(f"the manager of the {self._task.seed} did not start: {why}")
