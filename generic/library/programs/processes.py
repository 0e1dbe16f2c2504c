"""Child processes that end with this one, however it ends.

Not here: what the processes are (environment.py, golang.py).

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


class ProcessGroup:
    """Processes and the directory they work in; both are gone soon after this process is.

    Guarantees: `close()` leaves no process and no directory. If this process is killed instead,
    the reaper does the same within about a second, grandchildren included.
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

        `identity` is Popen's: user, group, extra_groups.
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
        """Kill what still runs and remove the directory. Calling it again does nothing."""
        assert self._reaper.stdin is not None
        assert self._reaper.stdout is not None
        if self._reaper.stdin.closed:
            return
        for process in self._children:
            kill(process)
        self._reaper.stdin.close()
        self._reaper.wait()  # it kills what is left of its group, itself too
        with self._reaper.stdout as output:
            output.read()  # nothing comes but the end, when its child is done as well
        shutil.rmtree(self.directory, ignore_errors=True)  # if somebody killed the reaper


def stop(process: Process, grace: float) -> None:
    """End a process: SIGTERM, and SIGKILL after `grace` seconds."""
    process.terminate()
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        kill(process)


def kill(process: Process) -> None:
    """End a process at once."""
    process.kill()
    process.wait()
