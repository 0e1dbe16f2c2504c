"""DatabaseRehearsal: two real servers to break, for `actuator drill`; a shoot uses both.

A shoot has one database on each. Its namespaces are called shoots because drills call them so;
nothing in the sample needs Gardener.
"""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from actuator import Actuator, ExternalResource
from actuator.meta import Raw
from extensions.externaldatabase import mysql, postgres, server_for
from extensions.externaldatabase.actuator import DatabaseActuator, external
from extensions.externaldatabase.endpoint import Endpoint
from extensions.externaldatabase.kind import Engine, ExternalDatabase
from extensions.externaldatabase.server import Traffic
from extensions.externaldatabase.servers import CA, MariaDb, Postgres
from generic.library.manifests import manifest_of
from generic.library.programs.cache import Progress
from generic.testing.envtest.environment import silent
from generic.testing.rehearsal import Around, Rehearsal, RehearsedShoot

_ACCOUNT = "extension"


class Ground:
    """A PostgreSQL and a MariaDB, between `start` and `stop`."""

    def __init__(self, progress: Progress) -> None:
        self.postgres = Postgres(progress)
        self.mariadb = MariaDb(progress)
        self._password = secrets.token_hex(16)

    def start(self) -> None:
        """Start both, without any database. Raises ServerError."""
        with ExitStack() as on_error:
            for server in (self.postgres, self.mariadb):
                on_error.callback(server.close)
                server.start()
            self._postgres(f"CREATE ROLE {_ACCOUNT} LOGIN CREATEDB CREATEROLE")
            self._mariadb(f"CREATE USER {_ACCOUNT}@'%'")
            self.give_back()
            on_error.pop_all()

    def stop(self) -> None:
        """Stop both; safe to call twice, and without start."""
        self.postgres.close()
        self.mariadb.close()

    def endpoint(self, engine: Engine) -> Endpoint:
        """Return the server's endpoint with the extension's account."""
        there = self.administrator(engine)
        return attrs.evolve(there, user=_ACCOUNT, password=self._password)

    def administrator(self, engine: Engine) -> Endpoint:
        """Return the server's endpoint with the administrator's account."""
        server = self.postgres if engine is Engine.POSTGRES else self.mariadb
        return server.administrator

    def change_passwords(self) -> None:
        """Change the passwords of the extension's accounts, without informing the extension."""
        self._set_passwords(secrets.token_hex(16))

    def lock_out(self) -> None:
        """Lock the extension's accounts."""
        self._postgres(f"ALTER ROLE {_ACCOUNT} NOLOGIN")
        self._mariadb(f"ALTER USER {_ACCOUNT}@'%' ACCOUNT LOCK")

    def deny_deletions(self) -> None:
        """Let the extension's accounts read, but drop nothing."""
        self._postgres(f"ALTER ROLE {_ACCOUNT} SET default_transaction_read_only = on")
        self._mariadb(f"REVOKE DROP, DELETE, CREATE USER ON *.* FROM {_ACCOUNT}@'%'")

    def give_back(self) -> None:
        """Restore the permissions and passwords of the extension's accounts."""
        self._set_passwords(self._password)
        self._postgres(f"ALTER ROLE {_ACCOUNT} LOGIN")
        self._postgres(f"ALTER ROLE {_ACCOUNT} RESET default_transaction_read_only")
        self._mariadb(f"ALTER USER {_ACCOUNT}@'%' ACCOUNT UNLOCK")
        self._mariadb(f"GRANT ALL PRIVILEGES ON *.* TO {_ACCOUNT}@'%' WITH GRANT OPTION")

    def _set_passwords(self, password: str) -> None:
        self._postgres(f"ALTER ROLE {_ACCOUNT} PASSWORD '{password}'")
        self._mariadb(f"ALTER USER {_ACCOUNT}@'%' IDENTIFIED BY '{password}'")

    def _postgres(self, statement: str) -> None:
        with postgres.connect(self.postgres.administrator) as connection:
            connection.execute(statement.encode())

    def _mariadb(self, statement: str) -> None:
        with mysql.connect(self.mariadb.administrator) as connection:
            connection.cursor().execute(statement)


_REQUESTS_PER_SECOND = 500.0
_CA = "ca.crt"
_HOSTILE = 'x"; DROP DATABASE `postgres`; --'


class DatabaseRehearsal(Rehearsal):
    """The outside world of the ExternalDatabase sample."""

    title = "Databases (a PostgreSQL and a MariaDB)"
    region = "local"
    never_migrates = True

    def __init__(self) -> None:
        self._ground = Ground(silent)
        self._shared: Mapping[str, str] = {}
        self._traffic: Callable[[], Traffic] = partial(Traffic, _REQUESTS_PER_SECOND)
        self._breaks: dict[str, tuple[str, Callable[[Ground], None]]] = {
            "credentials-revoked": (
                "The passwords of the extension's accounts are others now: it has the old ones.",
                Ground.change_passwords,
            ),
            "everything-fails": (
                "The extension's accounts are locked: neither server lets it in any more.",
                Ground.lock_out,
            ),
            "deletion-denied": (
                "The extension's accounts may not drop anything any more.",
                Ground.deny_deletions,
            ),
        }
        self.scenarios: Mapping[str, str] = {name: text for name, (text, _) in self._breaks.items()}

    def start(self, directory: Path) -> None:
        """Start both servers, empty, in their own directories. Raises ServerError."""
        self._ground.start()
        urls = {engine.value: self._ground.endpoint(engine).url("server") for engine in Engine}
        self._shared = {**urls, _CA: CA}

    def stop(self) -> None:
        """Stop both; safe to call twice, and without start."""
        self._ground.stop()

    def share(self) -> Mapping[str, str]:
        """Return the servers' endpoints; their passwords are valid as long as the servers run."""
        return self._shared

    def attach(self, shared: Mapping[str, str]) -> None:
        """Use the servers that another process started."""
        self._shared = shared

    def observe(self, around: Around) -> None:
        """Enter `around` for each request to a server."""
        self._traffic = partial(_ObservedTraffic, _REQUESTS_PER_SECOND, around)

    def actuators(self) -> Sequence[Actuator[Any]]:
        """The extension's actuator, with both servers."""
        servers = {
            engine: server_for(engine, self._shared[engine], self._traffic(), self._shared[_CA])
            for engine in Engine
        }
        return [DatabaseActuator(servers)]

    def manifests(self, shoot: RehearsedShoot) -> Sequence[Raw]:
        """One object for each engine."""
        return [_manifest(shoot, engine) for engine in Engine]

    def spoil(self, manifest: Raw) -> None:
        """Request a name that is not allowed."""
        manifest["spec"]["name"] = _HOSTILE

    def break_outside(self, scenario: str) -> None:
        """Start the scenario. Raises KeyError for a name not in `scenarios`."""
        _, bring_about = self._breaks[scenario]
        bring_about(self._ground)

    def mend_outside(self) -> None:
        """Restore the extension's accounts; no database was lost."""
        self._ground.give_back()

    def left_outside(self) -> Sequence[ExternalResource]:
        """Return all resources with the extension's mark on both servers."""
        found = []
        for engine in Engine:
            url = self._ground.administrator(engine).url("server")
            there = server_for(engine, url, Traffic(_REQUESTS_PER_SECOND), CA)
            found += [external(engine, there, holding) for holding in there.holdings()]
        return found


class _ObservedTraffic(Traffic):
    """Sends each request in the context of `around`."""

    def __init__(self, per_second: float, around: Around) -> None:
        super().__init__(per_second)
        self._around = around

    @contextmanager
    def request(self, what: str) -> Iterator[None]:
        with super().request(what), self._around(what):
            yield


def _manifest(shoot: RehearsedShoot, engine: Engine) -> Raw:
    where = f"database-{engine}", shoot.technical_id, shoot.labels
    spec = {"name": shoot.technical_id, "engine": engine.value}
    return manifest_of(ExternalDatabase, *where, spec=spec)
