"""Child processes that end with this one, even if it is killed.

Not here: the commands (environment.py, golang.py, the modules of landscape).

Why not PR_SET_PDEATHSIG: it fires when the *thread* that forked ends, it does not reach
grandchildren, and only Linux has it. A process group with a leader that watches a pipe
(reaper.py) covers threads, grandchildren and macOS, and removes the directory as well.
"""

import logging
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

from generic.library.programs.errors import EnvtestError

logger = logging.getLogger(__name__)

REAPER = Path(__file__).with_name("reaper.py")

# The only environment variables that named processes inherit: their share of CPU and memory.
GO_SETTINGS = ("GOGC", "GOMAXPROCS", "GOMEMLIMIT")
STOP_SECONDS = 5.0
POLL_SECONDS = 0.05

Process = subprocess.Popen[bytes]
_TAIL_LINES = 15


class ProcessGroup:
    """Processes and their working directory; both are removed soon after this process ends.

    Guarantees: `close()` leaves no process and no directory. If this process is killed, the reaper
    does the same within about a second, grandchildren included.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._children: list[Process] = []
        self._reaper = subprocess.Popen(
            [sys.executable, "-I", "-S", str(REAPER), str(os.getpid()), str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            process_group=0,
        )

    def start(
        self,
        command: Sequence[str | Path],
        output: int | IO[bytes],
        environ: Mapping[str, str],
        cwd: Path | None = None,
        **identity: Any,
    ) -> Process:
        """Start a command in `cwd` (the directory); its output and errors go to `output`.

        `identity` has arguments of Popen: user, group, extra_groups.
        """
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cwd or self.directory,
                env=environ,
                process_group=self._reaper.pid,
                **identity,
            )
        except OSError as error:
            raise EnvtestError(f"cannot run {command[0]}: {error}") from error
        self._children.append(process)
        return process

    def close(self) -> None:
        """Kill running processes and remove the directory. A second call does nothing."""
        assert self._reaper.stdin is not None
        assert self._reaper.stdout is not None
        if self._reaper.stdin.closed:
            return
        for process in self._children:
            kill(process)
        self._reaper.stdin.close()
        self._reaper.wait()  # it kills the rest of its group, including itself
        with self._reaper.stdout as output:
            output.read()  # reads only the end, when the reaper's child ends too
        shutil.rmtree(self.directory, ignore_errors=True)  # if the reaper was killed


class Processes:
    """Processes of one group by name, each with a log file; a name has at most one process.

    Names may be started and stopped from several threads, each name from one at a time. A kept
    process that ends by itself is started again by `restart_ended`.
    """

    def __init__(self, directory: Path) -> None:
        self._group = ProcessGroup(directory)
        self._started: dict[str, Process] = {}
        self._kept: dict[str, Callable[[], Process]] = {}
        self._keeping = threading.Lock()
        self.logs.mkdir()

    @property
    def directory(self) -> Path:
        """The folder of all files of the processes; `close` removes it."""
        return self._group.directory

    @property
    def logs(self) -> Path:
        """The folder of the log files, which a restarted process continues."""
        return self.directory / "logs"

    def log(self, name: str) -> Path:
        """Return the log file of a process."""
        return self.logs / f"{name}.log"

    def start(
        self,
        name: str,
        command: Sequence[str | Path],
        environ: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        *,
        keep: bool = False,
    ) -> Process:
        """Start a command in `cwd`, by default the directory. Raises EnvtestError.

        It inherits none of this process's environment except GO_SETTINGS; `environ` adds to it.
        With `keep` it is started again if it ends before `stop` and `kill`.
        """
        if self.is_running(name):
            raise EnvtestError(f"{name} is running already")
        variables = {key: os.environ[key] for key in GO_SETTINGS if key in os.environ}
        variables |= {"HOME": str(self.directory), "PATH": os.defpath, **(environ or {})}
        with self.log(name).open("ab") as output:
            process = self._group.start(command, output, variables, cwd)
        self._started[name] = process
        if keep:
            with self._keeping:
                self._kept[name] = partial(self.start, name, command, environ, cwd)
        return process

    def restart_ended(self) -> None:
        """Start the kept processes that ended, like a kubelet. Raises EnvtestError."""
        with self._keeping:
            for name, start in self._kept.items():
                if not self.is_running(name):
                    status = self._started[name].poll()
                    logger.warning("%s ended with status %s: it is started again", name, status)
                    start()

    def is_running(self, name: str) -> bool:
        """Return whether the process was started and has not ended."""
        process = self._started.get(name)
        return process is not None and process.poll() is None

    def alive(self) -> list[str]:
        """Return the names of the running processes."""
        return [name for name in list(self._started) if self.is_running(name)]

    def stop(self, name: str) -> None:
        """Stop a process, with SIGKILL after STOP_SECONDS. If it is down, it stays down."""
        self._let_end(name)
        if self.is_running(name):
            stop(self._started[name], STOP_SECONDS)

    def kill(self, name: str) -> None:
        """Kill a process, which stays down."""
        self._let_end(name)
        if self.is_running(name):
            kill(self._started[name])

    def wait_until(self, name: str, ready: Callable[[], bool], seconds: float) -> None:
        """Wait until the process is ready. Raises EnvtestError if it ends, or takes too long."""
        deadline = time.monotonic() + seconds
        while not ready():
            status = self._started[name].poll()
            if status is not None:
                raise self.failure(name, f"ended with status {status}")
            if time.monotonic() > deadline:
                raise self.failure(name, f"was not ready within {seconds:.0f} s")
            time.sleep(POLL_SECONDS)

    def close(self) -> None:
        """Kill all processes and remove the directory. A second call does nothing."""
        self._group.close()

    def failure(self, name: str, what: str) -> EnvtestError:
        """Copy the logs to a folder that outlives the directory; return the error naming it."""
        kept = Path(f"{self.directory}-logs")
        shutil.copytree(self.logs, kept, dirs_exist_ok=True)
        said = tail(self.log(name))
        return EnvtestError(f"{name} {what}; logs are in {kept}; the last lines:\n{said}")

    def _let_end(self, name: str) -> None:
        with self._keeping:
            self._kept.pop(name, None)


def stop(process: subprocess.Popen[Any], grace: float) -> None:
    """End a process: SIGTERM, and SIGKILL after `grace` seconds."""
    process.terminate()
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        kill(process)


def kill(process: subprocess.Popen[Any]) -> None:
    """End a process at once."""
    process.kill()
    process.wait()


def tail(log: Path, lines: int = _TAIL_LINES) -> str:
    """Return the last lines of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
