"""`actuator dev` as a program, for tests that change the code of its extension."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.support.cluster.harness import eventually

ACTUATOR = [sys.executable, "-c", "from generic.tools.cli.main import main; main()"]


class Development:
    """A running `actuator dev`, in a session of its own."""

    def __init__(self, log: Path, serves: str, *arguments: str) -> None:
        """`serves` is in the line that each start of the manager prints."""
        self._serves = serves
        free = {f"ACTUATOR_{name}_BIND_ADDRESS": "0" for name in ("METRICS", "HEALTH")}
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [*ACTUATOR, *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **free},
                start_new_session=True,
            )
        self._served = 0
        self.until_served()

    def text(self):
        return self._log.read_text()

    def until_served(self):
        """Wait for the next start of the manager."""
        self._served += 1
        eventually(lambda: self.text().count(self._serves) == self._served, seconds=60)

    def stop(self):
        """Press Ctrl-C; return the exit status. A manager that has to be killed takes longer."""
        os.killpg(self._process.pid, signal.SIGINT)
        return self._process.wait(9)

    def kill(self):
        self._process.kill()
        self._process.wait()

    def processes(self):
        """The processes of its session, all that it started."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(ProcessLookupError, FileNotFoundError):
                is_ours = os.getsid(int(process.name)) == self._process.pid
                command = process.joinpath("cmdline").read_text()  # empty once it has ended
                found += [command] if is_ours and command else []
        return found
