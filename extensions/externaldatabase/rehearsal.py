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

from actuator import Actuator, ExternalResource, Raw
from extensions.externaldatabase import mysql, postgres, server_for
from extensions.externaldatabase.actuator import DatabaseActuator, external
from extensions.externaldatabase.endpoint import DatabaseEndpoint
from extensions.externaldatabase.kind import Engine, ExternalDatabase
from extensions.externaldatabase.server import Traffic
from extensions.externaldatabase.servers import CA, MariaDb, Postgres
from generic.library import manifest_of
from generic.testing import Around, Rehearsal, RehearsedShoot

_ACCOUNT = "extension"
_BREAKS: Mapping[str, tuple[str, str]] = {
    "credentials-revoked": (
        f"ALTER ROLE {_ACCOUNT} PASSWORD 'another'",
        f"ALTER USER {_ACCOUNT}@'%' IDENTIFIED BY 'another'",
    ),
    "everything-fails": (
        f"ALTER ROLE {_ACCOUNT} NOLOGIN",
        f"ALTER USER {_ACCOUNT}@'%' ACCOUNT LOCK",
    ),
    "deletion-denied": (
        f"ALTER ROLE {_ACCOUNT} SET default_transaction_read_only = on",
        f"REVOKE DROP, DELETE, CREATE USER ON *.* FROM {_ACCOUNT}@'%'",
    ),
}
"""The statements of each scenario, for PostgreSQL and for MariaDB."""
_REQUESTS_PER_SECOND = 500.0
_CA = "ca.crt"
_HOSTILE = 'x"; DROP DATABASE `postgres`; --'


class DatabaseRehearsal(Rehearsal):
    """The outside world of the ExternalDatabase sample."""

    title = "Databases (a PostgreSQL and a MariaDB)"
    region = "local"
    never_migrates = True
    scenarios: Mapping[str, str] = {
        "credentials-revoked": (
            "The passwords of the extension's accounts are others now: it has the old ones."
        ),
        "everything-fails": (
            "The extension's accounts are locked: neither server lets it in any more."
        ),
        "deletion-denied": "The extension's accounts may not drop anything any more.",
    }

    def __init__(self) -> None:
        self.servers = {Engine.POSTGRES: Postgres(), Engine.MYSQL: MariaDb()}
        self._password = secrets.token_hex(16)
        self._shared: Mapping[str, str] = {}
        self._traffic: Callable[[], Traffic] = partial(Traffic, _REQUESTS_PER_SECOND)

    def start(self, directory: Path) -> None:
        """Start both servers, empty, in their own directories. Raises ServerError."""
        with ExitStack() as on_error:
            on_error.callback(self.stop)
            for server in self.servers.values():
                server.start()
            role = f"CREATE ROLE {_ACCOUNT} LOGIN CREATEDB CREATEROLE"
            self._execute(role, f"CREATE USER {_ACCOUNT}@'%'")
            self.repair_failure()
            on_error.pop_all()
        urls = {engine.value: self.endpoint(engine).url("server") for engine in Engine}
        self._shared = {**urls, _CA: CA}

    def stop(self) -> None:
        """Stop both; safe to call twice, and without start."""
        for server in self.servers.values():
            server.close()

    def endpoint(self, engine: Engine) -> DatabaseEndpoint:
        """Return the server's endpoint with the extension's account."""
        return attrs.evolve(self.administrator(engine), user=_ACCOUNT, password=self._password)

    def administrator(self, engine: Engine) -> DatabaseEndpoint:
        """Return the server's endpoint with the administrator's account."""
        return self.servers[engine].administrator

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

    def inject_failure(self, scenario: str) -> None:
        """Start the scenario. Raises KeyError for a name not in `scenarios`."""
        self._execute(*_BREAKS[scenario])

    def repair_failure(self) -> None:
        """Restore permissions and passwords of the extension's accounts; no database was lost."""
        self._execute(
            f"ALTER ROLE {_ACCOUNT} LOGIN PASSWORD '{self._password}'",
            f"ALTER USER {_ACCOUNT}@'%' IDENTIFIED BY '{self._password}' ACCOUNT UNLOCK",
        )
        self._execute(
            f"ALTER ROLE {_ACCOUNT} RESET default_transaction_read_only",
            f"GRANT ALL PRIVILEGES ON *.* TO {_ACCOUNT}@'%' WITH GRANT OPTION",
        )

    def remaining_resources(self) -> Sequence[ExternalResource]:
        """Return all resources with the extension's mark on both servers."""
        found = []
        for engine in Engine:
            url = self.administrator(engine).url("server")
            there = server_for(engine, url, Traffic(_REQUESTS_PER_SECOND), CA)
            found += [external(engine, there, *holding) for holding in there.holdings()]
        return found

    def _execute(self, on_postgres: str, on_mariadb: str) -> None:
        """Run a statement on each server, as administrator."""
        with postgres.connect(self.administrator(Engine.POSTGRES)) as connection:
            connection.execute(on_postgres.encode())
        with mysql.connect(self.administrator(Engine.MYSQL)) as connection:
            connection.cursor().execute(on_mariadb)


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
