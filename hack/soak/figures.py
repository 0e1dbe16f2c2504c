"""Memory and threads of another process, measured every second; a line through them."""

from __future__ import annotations

import resource
import statistics
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import attrs

_EVERY_SECONDS = 1.0
_MIB = 2**20


@attrs.frozen
class Sample:
    """One look. `at` in seconds since the first, `memory` is what is resident, in MiB."""

    at: float
    memory: float
    threads: int


class Sampler:
    """Looks at a process (Linux: /proc) until it is gone or `stop` is called."""

    def __init__(self, pid: int) -> None:
        self.samples: list[Sample] = []
        self._process = Path("/proc", str(pid))
        self._start = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Looks no longer."""
        self._stop.set()
        self._thread.join()

    def look(self) -> Sample:
        """How it is now. Raises OSError where the process is gone."""
        pages = int((self._process / "statm").read_text().split()[1])
        threads = sum(1 for _ in (self._process / "task").iterdir())
        at = time.monotonic() - self._start
        return Sample(at, pages * resource.getpagesize() / _MIB, threads)

    def _run(self) -> None:
        while not self._stop.wait(_EVERY_SECONDS):
            try:
                self.samples.append(self.look())
            except OSError:
                return


def growth(samples: Sequence[Sample]) -> float:
    """MiB a minute, by a straight line through all samples."""
    if len(samples) < 2:
        return 0.0
    line = statistics.linear_regression([s.at for s in samples], [s.memory for s in samples])
    return line.slope * 60
