"""The sides of the benchmark as processes: how they are built, started, measured, stopped.

CPU and memory are read from outside (/proc), so that all are measured the same way.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import attrs

from generic.library.programs.golang import GoModule, cached_programs
from generic.library.programs.processes import stop
from generic.testing.envtest.servers import free_port

HERE = Path(__file__).parent
WORKERS = 16
_READY_SECONDS = 120.0
_STOP_SECONDS = 30.0


class SideError(Exception):
    """A side did not start, or not do its work; the text has the end of its log."""


@attrs.frozen
class Process:
    """A running side."""

    pid: int
    metrics: str
    """The address of its metrics, if it has any."""

    def scrape(self) -> str:
        """What it tells Prometheus. Raises SideError."""
        try:
            with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=60) as answer:
                text: bytes = answer.read()
        except OSError as error:
            raise SideError(f"process {self.pid} shows no metrics: {error}") from error
        return text.decode()

    def cpu_seconds(self) -> float:
        """Seconds of CPU so far, user and system (proc(5), stat, fields 14 and 15)."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mib(self, *, peak: bool = False) -> float:
        """Resident memory in MiB, now or at its highest."""
        wanted = "VmHWM:" if peak else "VmRSS:"
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(wanted):
                return int(line.split()[1]) / 1024
        raise SideError(f"process {self.pid} has ended")


@attrs.frozen
class Side:
    """A program to measure; `command` takes the kubeconfig and addresses for /readyz, /metrics."""

    name: str
    command: Callable[[Path, str, str], list[str]]

    @contextmanager
    def running(self, kubeconfig: Path, log: Path) -> Iterator[Process]:
        """Runs it, from when it is ready until the end of the `with` block."""
        address, metrics = (f"127.0.0.1:{free_port()}" for _ in range(2))
        command = self.command(kubeconfig, address, metrics)
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            self._wait_ready(process, address, log)
            yield Process(process.pid, metrics)
        except TimeoutError as error:
            raise SideError(f"{self.name}: {error}; its log ends with:\n{_tail(log)}") from error
        finally:
            stop(process, _STOP_SECONDS)

    def _wait_ready(self, process: subprocess.Popen[bytes], address: str, log: Path) -> None:
        end = time.monotonic() + _READY_SECONDS
        while time.monotonic() < end and process.poll() is None:
            try:
                with urllib.request.urlopen(f"http://{address}/readyz", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise SideError(f"{self.name} did not become ready; its log ends with:\n{_tail(log)}")


def ours(program: str = "ours") -> Side:
    """A manager of ours; `program` is a file here."""
    return Side(program, partial(_our_command, program))


def peer(progress: Callable[[str], None]) -> Side:
    """controller-runtime with the Go library's calls; built into the cache first."""
    folder = HERE / "peer"
    sources = b"".join(path.read_bytes() for path in sorted(folder.glob("*.go")))
    name = f"bench-peer-{hashlib.sha256(sources).hexdigest()[:8]}"
    program = cached_programs(GoModule(name, folder, {"peer": "."}), progress) / "peer"
    return Side("peer", lambda kubeconfig, address, _: _peer_command(program, kubeconfig, address))


def _our_command(program: str, kubeconfig: Path, address: str, metrics: str) -> list[str]:
    return [
        *(sys.executable, str(HERE / f"{program}.py")),
        *("--kubeconfig", str(kubeconfig)),
        *("--health-bind-address", address),
        *("--metrics-bind-address", metrics),
        *("--max-concurrent-reconciles", str(WORKERS)),
    ]


def _peer_command(program: Path, kubeconfig: Path, address: str) -> list[str]:
    return [
        str(program),
        *("--kubeconfig", str(kubeconfig)),
        *("--health-bind-address", address),
        *("--workers", str(WORKERS)),
    ]


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-15:])
