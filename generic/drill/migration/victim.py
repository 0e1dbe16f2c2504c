"""Victim: a seed's manager in a child process, killed at random moments and started again."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import attrs

from actuator.errors import ActuatorError
from generic.drill.migration.child import WORKING, Task
from generic.drill.migration.evidence import Kill

__all__ = ["Victim"]

_KILLS = 3
_SOONEST, _LATEST = 0.05, 1.5
"""Seconds between the moment a manager works and its end."""


class Victim:
    """The manager of one seed; runs while this is open as a context.

    `log` gets what the process says on standard error. Raises ActuatorError where it does not
    start.
    """

    def __init__(self, task: Task, log: Path, now: Callable[[], float]) -> None:
        self.kills: list[Kill] = []
        self._task = task
        self._log = log
        self._now = now
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._end()

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
        self._end()
        self.kills.append(Kill(seed=self._task.seed, phase=phase, at=self._now()))
        self._start()

    def _start(self) -> None:
        path = os.pathsep.join(filter(None, sys.path))
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "generic.drill.migration.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "PYTHONPATH": path},
                text=True,
            )
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None  # noqa: PT018 - they are pipes
        try:
            stdin.write(json.dumps(attrs.asdict(self._task)) + "\n")
            stdin.flush()
            said = stdout.readline().strip()
        except BrokenPipeError:
            said = ""
        if said != WORKING:
            self._end()
            last = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            why = last[-1] if last else "it said nothing"
            raise ActuatorError(f"the manager of the {self._task.seed} did not start: {why}")

    def _end(self) -> None:
        """SIGKILL: it gets no chance to finish anything."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait(10)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
