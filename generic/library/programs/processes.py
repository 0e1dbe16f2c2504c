"""Child processes that end with this one, even if it is killed.

Not here: the commands (environment.py, golang.py).

Why not PR_SET_PDEATHSIG: it fires when the *thread* that forked ends, it does not reach
grandchildren, and only Linux has it. A process group with a leader that watches a pipe
(reaper.py) covers threads, grandchildren and macOS, and removes the directory as well.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from generic.library.programs.errors import EnvtestError

REAPER = Path(__file__).with_name("reaper.py")

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
        **identity: Any,
    ) -> Process:
        """Start a command in the directory; its standard output and error go to `output`.

        `identity` has arguments of Popen: user, group, extra_groups.
        """
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
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


def tail(log: Path) -> str:
    """Return the last lines of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])
