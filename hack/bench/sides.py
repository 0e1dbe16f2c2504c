"""The sides of the benchmark as processes: builds, starts, measures and stops them.

CPU and memory are read from /proc, so that all sides are measured in the same way.
"""

import hashlib
import os
import sys
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import attrs

from actuator.errors import ActuatorError
from generic.library.programs.golang import GoModule, cached_programs
from generic.testing.envtest.servers import free_port
from generic.tools.packaging.chart import MALLOC
from hack.processes import running

HERE = Path(__file__).parent
WORKERS = 16


@attrs.frozen
class Process:
    """A running side."""

    pid: int
    metrics: str
    """The address of its metrics, if it has any."""

    def scrape(self) -> str:
        """Return its metrics as text. Raises ActuatorError."""
        try:
            with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=60) as answer:
                text: bytes = answer.read()
        except OSError as error:
            raise ActuatorError(f"process {self.pid} shows no metrics: {error}") from error
        return text.decode()

    def cpu_seconds(self) -> float:
        """Return the CPU seconds so far, user and system (proc(5), stat, fields 14 and 15)."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mib(self, *, peak: bool = False) -> float:
        """Return the resident memory in MiB, current or peak."""
        wanted = "VmHWM:" if peak else "VmRSS:"
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(wanted):
                return int(line.split()[1]) / 1024
        raise ActuatorError(f"process {self.pid} has ended")


@attrs.frozen
class Side:
    """A program to measure."""

    name: str
    command: Sequence[str]
    workers: str
    """The flag that sets the number of workers."""
    has_metrics: bool = True

    @contextmanager
    def running(self, kubeconfig: Path, log: Path) -> Iterator[Process]:
        """Run it until the end of the `with` block, entered when it is ready."""
        address, metrics = (f"127.0.0.1:{free_port()}" for _ in range(2))
        flags = {"--kubeconfig": str(kubeconfig), "--health-bind-address": address}
        flags |= {"--metrics-bind-address": metrics} if self.has_metrics else {}
        command = [*self.command, *chain(*flags.items()), self.workers, str(WORKERS)]
        with running(command, log, address, "/readyz") as process:
            yield Process(process.pid, metrics)


def ours(program: str = "ours") -> Side:
    """Return our side; `program` is the name of a module in this folder.

    It has the environment that `actuator chart` gives it.
    """
    variables = [f"{name}={value}" for name, value in MALLOC.items()]
    command = ["env", *variables, sys.executable, str(HERE / f"{program}.py")]
    return Side(program, command, "--max-concurrent-reconciles")


def peer(progress: Callable[[str], None]) -> Side:
    """Return controller-runtime with the Go library's calls."""
    return Side("peer", [str(programs(progress) / "peer")], "--workers", has_metrics=False)


def programs(progress: Callable[[str], None]) -> Path:
    """Build the programs of controller-runtime into the cache, and return their folder."""
    folder = HERE / "peer"
    sources = b"".join(path.read_bytes() for path in sorted(folder.rglob("*.go")))
    name = f"bench-peer-{hashlib.sha256(sources).hexdigest()[:8]}"
    packages = {"peer": ".", "webhook": "./webhook"}
    return cached_programs(GoModule(name, folder, packages), progress)
