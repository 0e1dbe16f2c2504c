"""go-mysql-server, a simulator of MySQL 8 with TLS, accounts and caching_sha2_password.

It has no account locks and no wildcards in GRANT. Everything is in memory: a restart forgets it.
"""

from pathlib import Path

import attrs

from extensions.externaldatabase.endpoint import DatabaseEndpoint
from extensions.externaldatabase.kind import Engine
from extensions.externaldatabase.servers.daemon import HOST, Daemon
from extensions.externaldatabase.servers.mariadb import answers
from tests.support.landscape.go_programs import build_mysql_simulator
from tests.support.samples.databases import run

ACCOUNT = "extension@'%'"


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


class MySqlGround:
    """As DatabaseRehearsal, with the simulator for each engine."""

    def __init__(self) -> None:
        self.simulator = MySqlSimulator()

    def start(self) -> None:
        self.simulator.start()
        self.execute(f"CREATE USER {ACCOUNT} IDENTIFIED WITH caching_sha2_password BY 'given'")
        self.repair_failure()

    def administrator(self, _engine: Engine) -> DatabaseEndpoint:
        return self.simulator.administrator

    def endpoint(self, engine: Engine) -> DatabaseEndpoint:
        return attrs.evolve(self.administrator(engine), user="extension", password="given")

    def execute(self, statement: str) -> None:
        run(Engine.MYSQL, self.simulator.administrator, statement)

    def set_password(self, password: str) -> None:
        self.execute(f"ALTER USER {ACCOUNT} IDENTIFIED WITH caching_sha2_password BY '{password}'")

    def inject_failure(self, scenario: str) -> None:
        if scenario == "deletion-denied":
            self.execute(f"REVOKE DROP, DELETE, CREATE USER, SUPER ON *.* FROM {ACCOUNT}")
        else:
            self.set_password("another")

    def repair_failure(self) -> None:
        self.set_password("given")
        self.execute(f"GRANT ALL PRIVILEGES ON *.* TO {ACCOUNT} WITH GRANT OPTION")
