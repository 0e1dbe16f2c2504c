"""The common base of both database servers: a process on a loopback port, in its own directory.

It runs as this process's own user, or as `nobody` in place of root: PostgreSQL refuses to run as
root, and no server that listens should (PostgreSQL documentation, "The PostgreSQL User Account").
"""

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs

from actuator import ActuatorError
from extensions.externaldatabase.endpoint import DatabaseEndpoint
from generic.library.programs import Process, ProcessGroup, kill
from generic.testing import LocalAuthority, free_port


@attrs.frozen
class ServerUser:
    """The user that runs a server; None is the user of this process."""

    user: pwd.struct_passwd | None

    @classmethod
    def ordinary(cls) -> "ServerUser":
        """Return an account other than root. Raises KeyError if there is no `nobody`."""
        return cls(None if os.geteuid() else pwd.getpwnam("nobody"))

    @property
    def identity(self) -> dict[str, Any]:
        """Arguments with which `subprocess` runs a command under this account."""
        if self.user is None:
            return {}
        return {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []}

    def own(self, path: Path) -> Path:
        """Make this account the owner of the path; return the path."""
        if self.user is not None:
            os.chown(path, self.user.pw_uid, self.user.pw_gid)
        return path

    def reachable(self, folder: Path, near: Path) -> Path:
        """Return `folder`, or `near`, a new copy of it, if the account cannot read `folder`.

        A cache below root's home is closed to other accounts.
        """
        places = (folder, *folder.parents)
        if self.user is None or all(place.stat().st_mode & 0o005 == 0o005 for place in places):
            return folder
        return shutil.copytree(folder, near, symlinks=True)


HOST = "127.0.0.1"
_AUTHORITY = LocalAuthority.new("databases")
CA = _AUTHORITY.key_pair.certificate.decode()
"""The PEM certificate that verifies all servers of this process."""
_ONCE_SECONDS = 120.0
_READY_SECONDS = 60.0
_STOP_SECONDS = 10.0
_POLL_SECONDS = 0.05
_TAIL = 5


class ServerError(ActuatorError):
    """A database server cannot be found, fetched or started; the message names the fix."""


class Daemon(ABC):
    """A server without any database, between `start` and `close`.

    `close` removes process and directory; if this process is killed instead, both are removed about
    a second later (`generic.library.programs.processes`).
    """

    name: ClassVar[str]
    user: ClassVar[str]
    stop_signal = signal.SIGTERM

    def __init__(self) -> None:
        self._password = secrets.token_hex(16)
        self._group: ProcessGroup | None = None
        self._process: Process | None = None

    def start(self) -> None:
        """Create the server's own data in a new directory, and start it. Raises ServerError."""
        self.account = ServerUser.ordinary()
        self.port = free_port()
        self._group = ProcessGroup(Path(tempfile.mkdtemp(prefix=f"actuator-{self.name}-")))
        self.directory = self.account.own(self._group.directory)
        self._environ = {"HOME": str(self.directory), "PATH": os.defpath, "LC_ALL": "C"}
        self._command = self._prepare()
        self.resume()

    def resume(self) -> None:
        """Start the server again, with all its data. Raises ServerError."""
        assert self._group is not None, "the server is not started"
        with self._log.open("ab") as log:
            identity = self.account.identity
            self._process = self._group.start(self._command, log, self._environ, **identity)
        deadline = time.monotonic() + _READY_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise self._failed("the server", self._log.read_text(errors="replace"))
            time.sleep(_POLL_SECONDS)

    def pause(self) -> None:
        """Stop the server gracefully; its data are kept. Do nothing if it is down."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(self.stop_signal)
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            kill(self._process)

    def close(self) -> None:
        """Stop everything at once; safe to call twice, and without start."""
        if self._process is not None:
            kill(self._process)
        if self._group is not None:
            self._group.close()

    @property
    def administrator(self) -> DatabaseEndpoint:
        """The server's endpoint with an account that has all permissions."""
        return DatabaseEndpoint(
            host=HOST, port=self.port, user=self.user, password=self._password, ca=CA
        )

    @abstractmethod
    def _prepare(self) -> list[str | Path]:
        """Find the program, and create its own data; return its command. Raises ServerError."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether the administrator can log in."""

    def usr(self, root: Path) -> Path:
        """Return `usr` of unpacked packages, or of a copy that the account can reach.

        The server then finds the shared libraries in there that the system lacks.
        """
        root = self.account.reachable(root, self.directory / "root")
        libraries = [*root.glob("lib/*-linux-*"), *root.glob("usr/lib/*-linux-*")]
        self._environ["LD_LIBRARY_PATH"] = os.pathsep.join(map(str, libraries))
        return root / "usr"

    def private(self, name: str, text: str) -> Path:
        """Write a file in the directory that only the account may read."""
        path = self.directory / name
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")
        return self.account.own(path)

    def certify(self) -> tuple[Path, Path]:
        """Write a serving certificate that CA verifies, and its key; return both files."""
        pair = _AUTHORITY.serving([HOST])
        certificate = self.private("tls.crt", pair.certificate.decode())
        return certificate, self.private("tls.key", pair.key.decode())

    def run_once(self, command: Sequence[str | Path], text: str = "") -> None:
        """Run a program to its end; it reads `text`. Raises ServerError."""
        try:
            done = subprocess.run(
                command,
                input=text.encode(),
                capture_output=True,
                cwd=self.directory,
                env=self._environ,
                timeout=_ONCE_SECONDS,
                check=False,
                **self.account.identity,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ServerError(
                f"{self.name}: {Path(command[0]).name} does not run: {error}"
            ) from error
        if done.returncode != 0:
            raise self._failed(Path(command[0]).name, done.stderr.decode(errors="replace"))

    @property
    def _log(self) -> Path:
        return self.directory / "server.log"

    def _failed(self, what: str, output: str) -> ServerError:
        """Return an error with the last lines; a file keeps the whole output."""
        kept = Path(f"{self.directory}.log")
        kept.write_text(output, encoding="utf-8")
        said = " | ".join(output.strip().splitlines()[-_TAIL:]) or "no output"
        return ServerError(f"{self.name}: {what} failed, its output is in {kept}: {said}")


def found(*programs: str) -> Path | None:
    """Return the first of these programs on PATH, or in Debian's directories for administrators."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])
    paths = (shutil.which(program, path=path) for program in programs)
    return next((Path(path).resolve() for path in paths if path), None)
