"""A MariaDB server: the machine's own, or the one in its distribution's packages."""

from collections.abc import Iterator
from pathlib import Path

import pymysql

from extensions.externaldatabase.endpoint import DatabaseEndpoint
from extensions.externaldatabase.mysql import connect
from extensions.externaldatabase.servers.daemon import HOST, Daemon, ServerError, found
from extensions.externaldatabase.servers.debian import unpacked

_PACKAGE = "mariadb-server-core"
_PROGRAM = "mariadbd"
_TABLES = ("system_tables", "performance_tables", "system_tables_data")
"""The scripts that create the server's own tables, in the order of mariadb-install-db."""
_FAST = (
    "--debug-no-sync",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-flush-method=nosync",
    "--innodb-buffer-pool-size=32M",
    "--innodb-log-file-size=8M",
    "--skip-log-bin",
    "--skip-name-resolve",
    "--require-secure-transport=ON",
)
"""Not durable across a power failure; refuses connections without TLS."""


class MariaDb(Daemon):
    """See Daemon."""

    name = "mariadb"
    user = "root"

    def _prepare(self) -> list[str | Path]:
        program = found(_PROGRAM)
        place = program.parent.parent if program else self.usr(unpacked(_PACKAGE))
        command = _command(place, self.directory)
        script = "".join(_bootstrap(place))
        (self.directory / "data").mkdir()
        self.account.own(self.directory / "data")
        self.run_once([*command, "--bootstrap", "--skip-networking"], script)
        certificate, key = self.certify()
        command += [f"--ssl-cert={certificate}", f"--ssl-key={key}"]
        command += [f"--bind-address={HOST}", f"--port={self.port}"]
        init = self.private("init.sql", self._administrators)
        return [*command, f"--socket={self.directory / 'socket'}", f"--init-file={init}"]

    @property
    def _administrators(self) -> str:
        """SQL of each start, before connections are accepted: one account with all permissions."""
        return (
            f"CREATE OR REPLACE USER root@'%' IDENTIFIED BY '{self._password}';\n"
            "GRANT ALL PRIVILEGES ON *.* TO root@'%' WITH GRANT OPTION;\n"
            "DELETE FROM mysql.global_priv WHERE User IN ('', 'root') AND Host <> '%';\n"
            "FLUSH PRIVILEGES;\n"
        )

    def _answers(self) -> bool:
        return answers(self.administrator)


def answers(endpoint: DatabaseEndpoint) -> bool:
    """Return whether a server of this protocol accepts connections there."""
    try:
        connect(endpoint).close()
    except pymysql.err.OperationalError:
        return False
    return True


def _command(place: Path, directory: Path) -> list[str | Path]:
    programs = (place / folder / _PROGRAM for folder in ("sbin", "bin", "libexec"))
    program = next((program for program in programs if program.is_file()), None)
    if program is None:
        raise ServerError(f"mariadb: there is no {_PROGRAM} in {place}; install MariaDB")
    folders = [f"--datadir={directory / 'data'}", f"--tmpdir={directory}"]
    messages = f"--lc-messages-dir={_share(place)}"
    return [program, "--no-defaults", f"--basedir={place}", messages, *folders, *_FAST]


def _bootstrap(place: Path) -> Iterator[str]:
    """Yield the input of `mariadbd --bootstrap`: SQL that creates the server's own tables."""
    yield "CREATE DATABASE IF NOT EXISTS mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n"
    for name in _TABLES:
        files = (_share(place) / f"{flavour}_{name}.sql" for flavour in ("mariadb", "mysql"))
        script = next((file for file in files if file.is_file()), None)
        if script is None:
            raise ServerError(f"mariadb: {_share(place)} lacks the script of {name}")
        yield script.read_text(encoding="utf-8")


def _share(place: Path) -> Path:
    folders = (place / "share" / name for name in ("mariadb", "mysql"))
    return next((folder for folder in folders if folder.is_dir()), place / "share")
