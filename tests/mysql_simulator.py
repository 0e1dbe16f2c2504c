"""go-mysql-server, a simulator of MySQL 8 with TLS, accounts and caching_sha2_password.

It has no account locks and no wildcards in GRANT. Everything is in memory: a restart forgets it.
"""

from pathlib import Path

from extensions.externaldatabase.servers.daemon import HOST, Daemon
from extensions.externaldatabase.servers.mariadb import answers
from tests.go_programs import build_mysql_simulator


class MySqlSimulator(Daemon):
    """See Daemon."""

    name = "mysql"
    user = "admin"

    def _prepare(self) -> list[str | Path]:
        program = build_mysql_simulator(print)
        folder = self.account.reachable(program.parent, self.directory / "program")
        files = (*self.certify(), self.private("password", self._password))
        return [folder / program.name, f"{HOST}:{self.port}", *files]

    def _answers(self) -> bool:
        return answers(self.administrator)
