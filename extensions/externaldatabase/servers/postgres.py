"""A PostgreSQL server: the machine's own, or the one in its distribution's packages."""

import re
import signal
from pathlib import Path

import psycopg

from extensions.externaldatabase.postgres import connect
from extensions.externaldatabase.servers.daemon import HOST, Daemon, ServerError, found
from extensions.externaldatabase.servers.debian import unpacked

_PACKAGE = "postgresql"
"""A package that depends on the distribution's version of the server."""
_PROGRAM = "postgres"
_INSTALLED = Path("/usr")
_SETTINGS = (
    *("fsync=off", "synchronous_commit=off", "full_page_writes=off"),
    "dynamic_shared_memory_type=mmap",
    "unix_socket_directories=",
    "max_connections=60",
)
"""Not durable across a power failure; keeps all possible files in its own directory."""


class Postgres(Daemon):
    """See Daemon."""

    name = user = "postgres"
    stop_signal = signal.SIGINT  # does not wait for clients

    def close(self) -> None:
        """See Daemon. A killed server would not release its shared memory."""
        self.pause()
        super().close()

    def _prepare(self) -> list[str | Path]:
        program = found(_PROGRAM) or _newest(_INSTALLED) or _newest(self.usr(unpacked(_PACKAGE)))
        if program is None:
            raise ServerError(f"postgres: {_PACKAGE} has no {_PROGRAM}; install PostgreSQL")
        certificate, key = self.certify()
        self._programs = program.parent
        data = self.directory / "data"
        password = self.private("password", self._password)
        options = ("--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync")
        cluster = (f"--pgdata={data}", f"--username={self.user}", f"--pwfile={password}")
        self.run_once([self._programs / "initdb", *cluster, *options])
        tls = ("ssl=on", f"ssl_cert_file={certificate}", f"ssl_key_file={key}")
        settings = [f"--{setting}" for setting in (*_SETTINGS, *tls)]
        address = [f"--listen_addresses={HOST}", f"--port={self.port}"]
        return [self._programs / _PROGRAM, "-D", data, *settings, *address]

    def _answers(self) -> bool:
        try:
            with connect(self.administrator):
                return True
        except psycopg.OperationalError:
            return False


def _newest(usr: Path) -> Path | None:
    """Return the server of the highest version in Debian's layout, with one folder per version."""
    programs = usr.glob(f"lib/postgresql/*/bin/{_PROGRAM}")
    version = re.compile(r"\d+")
    return max(
        programs, key=lambda item: [*map(int, version.findall(item.parts[-3]))], default=None
    )
