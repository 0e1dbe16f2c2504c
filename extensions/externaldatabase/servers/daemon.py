"""A server process on a loopback port, in a directory of its own; both end with this process."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from actuator import ActuatorError
from extensions.externaldatabase.servers.account import Account
from generic.library.programs.processes import Process, ProcessGroup, kill
from generic.testing.envtest.certificates import Authority
from generic.testing.envtest.servers import free_port

HOST = "127.0.0.1"
_AUTHORITY = Authority.new("databases")
CA = _AUTHORITY.key_pair.certificate.decode()
"""Verifies all servers of this process; PEM."""
_ONCE_SECONDS = 120.0
_READY_SECONDS = 60.0
_STOP_SECONDS = 10.0
_POLL_SECONDS = 0.05
_TAIL = 5


class ServerError(ActuatorError):
    """A database server cannot be found, fetched or started; the text says the way out."""


class Daemon:
    """One server: its directory, its port, its process.

    Guarantees: `close` leaves neither process nor directory; if this process is killed instead,
    both are gone about a second later (`generic.library.programs.processes`).
    """

    def __init__(self, name: str, stop_signal: signal.Signals = signal.SIGTERM) -> None:
        self.name = name
        self._stop_signal = stop_signal
        self.account = Account.ordinary()
        self.port = free_port()
        self._group = ProcessGroup(Path(tempfile.mkdtemp(prefix=f"actuator-{name}-")))
        self.directory = self.account.own(self._group.directory)
        self._environ = {"HOME": str(self.directory), "PATH": os.defpath, "LC_ALL": "C"}
        self._process: Process | None = None

    def usr(self, root: Path) -> Path:
        """Return `usr` of unpacked packages, or of a copy that the account can reach.

        The server then finds the shared libraries in there that the system lacks.
        """
        root = self.account.reachable(root, self.directory / "root")
        libraries = [*root.glob("lib/*-linux-*"), *root.glob("usr/lib/*-linux-*")]
        self._environ["LD_LIBRARY_PATH"] = os.pathsep.join(map(str, libraries))
        return root / "usr"

    def private(self, name: str, text: str) -> Path:
        """A file in the directory that the account alone may read."""
        path = self.directory / name
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")
        return self.account.own(path)

    def certify(self) -> tuple[Path, Path]:
        """Write a serving certificate that CA verifies, and its key; returns both files."""
        pair = _AUTHORITY.serving([HOST])
        certificate = self.private("tls.crt", pair.certificate.decode())
        return certificate, self.private("tls.key", pair.key.decode())

    def run_once(self, command: Sequence[str | Path], text: str = "") -> None:
        """Runs a program to its end; it reads `text`. Raises ServerError."""
        try:
            done = subprocess.run(
                self.account.command(command),
                input=text.encode(),
                capture_output=True,
                cwd=self.directory,
                env=self._environ,
                timeout=_ONCE_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ServerError(
                f"{self.name}: {Path(command[0]).name} does not run: {error}"
            ) from error
        if done.returncode != 0:
            raise self._failed(Path(command[0]).name, done.stderr.decode(errors="replace"))

    def start(self, command: Sequence[str | Path], ready: Callable[[], bool]) -> None:
        """Starts the server and waits until it is `ready`. Raises ServerError."""
        with self._log.open("ab") as log:
            lowered = self.account.command(command)
            self._process = self._group.start(lowered, log, self._environ)
        deadline = time.monotonic() + _READY_SECONDS
        while not ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise self._failed("the server", self._log.read_text(errors="replace"))
            time.sleep(_POLL_SECONDS)

    def stop(self) -> None:
        """Ends the server in good order, its data are kept. If it is down, does nothing."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(self._stop_signal)
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            kill(self._process)

    def close(self) -> None:
        """Ends everything at once; safe to call twice."""
        if self._process is not None:
            kill(self._process)
        self._group.close()

    @property
    def _log(self) -> Path:
        return self.directory / "server.log"

    def _failed(self, what: str, output: str) -> ServerError:
        """An error with the last lines; where there are more, they are kept."""
        kept = Path(f"{self.directory}.log")
        kept.write_text(output, encoding="utf-8")
        said = " | ".join(output.strip().splitlines()[-_TAIL:]) or "it said nothing"
        return ServerError(f"{self.name}: {what} failed, its output is in {kept}: {said}")


def found(*programs: str) -> Path | None:
    """The first of these programs on PATH, or where Debian puts those of administrators."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])
    paths = (shutil.which(program, path=path) for program in programs)
    return next((Path(one).resolve() for one in paths if one), None)
