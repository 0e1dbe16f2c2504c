"""go-mysql-server, a simulator of MySQL 8 with TLS, accounts and caching_sha2_password.

It has no account locks and no wildcards in GRANT. Everything is in memory: a restart forgets it.
"""

import hashlib
from pathlib import Path

from extensions.externaldatabase.servers.daemon import HOST, Daemon
from extensions.externaldatabase.servers.mariadb import answers
from generic.library.programs.cache import Progress
from generic.library.programs.golang import GoModule, cached_programs

_FOLDER = Path(__file__).parent / "e2e" / "externaldatabase" / "mysqlserver"


def build_simulator(progress: Progress) -> Path:
    """The program, built into the cache if it is not there."""
    name = f"mysqlserver-{hashlib.sha256((_FOLDER / 'main.go').read_bytes()).hexdigest()[:8]}"
    return cached_programs(GoModule(name, _FOLDER, {"mysqlserver": "."}), progress) / "mysqlserver"


class MySqlSimulator(Daemon):
    """See Daemon."""

    name = "mysql"
    user = "admin"

    def _find(self) -> tuple[Path | None, Path]:
        return build_simulator(self._progress), Path()

    def _prepare(self, program: Path | None, packages: Path) -> list[str | Path]:
        assert program is not None
        folder = self.account.reachable(program.parent, self.directory / "program")
        files = (*self.certify(), self.private("password", self._password))
        return [folder / program.name, f"{HOST}:{self.port}", *files]

    def _answers(self) -> bool:
        return answers(self.administrator)
