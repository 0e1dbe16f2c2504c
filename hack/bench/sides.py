"""The sides of the benchmark as processes: builds, starts, measures and stops them.

CPU and memory are read from /proc, so that all sides are measured in the same way.
"""

import os
import re
import sys
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs

from generic.library.programs.golang import GoModule, cached_programs
from generic.testing.envtest.servers import free_port
from generic.tools.packaging.chart import MALLOC
from hack.processes import running

WORKERS = 16


@attrs.frozen
class Process:
    """A running side."""

    pid: int
    metrics: str
    """The address of its metrics, if it has any."""

    def scrape(self) -> str:
        """Return its metrics as text. Raises OSError."""
        with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=60) as answer:
            text: bytes = answer.read()
        return text.decode()

    def cpu_seconds(self) -> float:
        """Return the CPU seconds so far, user and system (proc(5), stat, fields 14 and 15)."""
        fields = self._read("stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mib(self, name: str = "VmRSS") -> float:
        """Return the current resident memory in MiB; VmHWM is the peak."""
        (kib,) = re.findall(rf"^{name}:\s+(\d+) kB$", self._read("status"), re.MULTILINE)
        return int(kib) / 1024

    def _read(self, name: str) -> str:
        return Path(f"/proc/{self.pid}/{name}").read_text()


@attrs.frozen
class BenchSide:
    """A program to measure, and the address at which it serves its metrics, if it has any."""

    name: str
    command: Sequence[str]
    metrics: str = ""

    @contextmanager
    def running(self, kubeconfig: Path, log: Path) -> Iterator[Process]:
        """Run it until the end of the `with` block, entered when it is ready."""
        address = f"127.0.0.1:{free_port()}"
        flags = ["--kubeconfig", str(kubeconfig), "--health-bind-address", address]
        workers = ["--max-concurrent-reconciles", str(WORKERS)]
        with running([*self.command, *flags, *workers], log, address, "/readyz") as process:
            yield Process(process.pid, self.metrics)


def ours(variant: str = "noop") -> BenchSide:
    """Return a variant of our side, with the environment that `actuator chart` gives it."""
    metrics = f"127.0.0.1:{free_port()}"
    options = ["--metrics-bind-address", metrics, "--metrics-zero-seconds", "0"]
    program = [sys.executable, "-m", "hack.bench.ours", variant, *options]
    variables = [f"{name}={value}" for name, value in MALLOC.items()]
    return BenchSide("ours", ["env", *variables, *program], metrics)


def peer(progress: Callable[[str], None]) -> BenchSide:
    """Return controller-runtime with the Go library's calls."""
    return BenchSide("peer", [str(programs(progress) / "peer")])


def programs(progress: Callable[[str], None]) -> Path:
    """Build the programs of controller-runtime into the cache, and return their folder."""
    folder = Path(__file__).parent / "peer"
    packages = {"peer": ".", "webhook": "./webhook"}
    return cached_programs(GoModule("bench-peer", folder, packages), progress)
