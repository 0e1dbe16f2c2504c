"""Memory and threads of another process, measured every second, and their trend."""

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
    """One measurement. `at` in seconds since the start, `memory` is resident, in MiB."""

    at: float
    memory: float
    threads: int


class Sampler:
    """Measures a process (Linux: /proc) until it ends or `stop` is called."""

    def __init__(self, pid: int) -> None:
        self.samples: list[Sample] = []
        self._process = Path("/proc", str(pid))
        self._start = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop measuring."""
        self._stop.set()
        self._thread.join()

    def look(self) -> Sample:
        """Measure once. Raises OSError if the process has ended."""
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
    """Return the growth in MiB per minute, by linear regression over all samples."""
    if len(samples) < 2:
        return 0.0
    line = statistics.linear_regression([s.at for s in samples], [s.memory for s in samples])
    return line.slope * 60
