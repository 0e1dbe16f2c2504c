"""Program: a module of ours as a child process that reads lines of JSON and answers in lines."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO

import cattrs

__all__ = ["Program"]

_END_SECONDS = 5.0


class Program:
    """The running process. Its standard error is added to the file `log`."""

    def __init__(self, module: str, log: Path) -> None:
        self._log = log
        with log.open("a") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )

    def send(self, message: object) -> None:
        """Writes an attrs object as one line of JSON. Raises BrokenPipeError."""
        self.write(f"{json.dumps(cattrs.unstructure(message))}\n".encode())

    def write(self, line: bytes) -> None:
        """Writes a line as it is. Raises BrokenPipeError."""
        self._stdin.write(line)
        self._stdin.flush()

    def answers(self, seconds: float) -> bool:
        """Whether there is something to read within that time: a line, or the end."""
        return bool(select.select([self._stdout], [], [], seconds)[0])

    def receive(self) -> str:
        """The next line; "" at the end of its output."""
        return self._stdout.readline().decode().strip()

    def kill(self) -> None:
        """SIGKILL: it gets no chance to finish anything."""
        self._process.kill()
        self.close()

    def close(self) -> None:
        """Ends its input, and kills it where it does not end by itself."""
        for pipe in (self._stdin, self._stdout):
            with suppress(BrokenPipeError):
                pipe.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def last_words(self) -> str:
        """The last line of its log; "" where there is none."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    @property
    def _stdin(self) -> IO[bytes]:
        assert self._process.stdin is not None, "it is a pipe"
        return self._process.stdin

    @property
    def _stdout(self) -> IO[bytes]:
        assert self._process.stdout is not None, "it is a pipe"
        return self._process.stdout
