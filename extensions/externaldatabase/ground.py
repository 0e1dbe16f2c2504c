"""The two servers of a rehearsal, each with an account for the extension, and their administrator.

The administrator can revoke the permissions of the extension's accounts and restore them; the
databases on the servers stay unchanged.
"""

import secrets
from contextlib import ExitStack

import attrs

from extensions.externaldatabase import mariadb, postgres
from extensions.externaldatabase.endpoint import Endpoint
from extensions.externaldatabase.kind import Engine
from extensions.externaldatabase.servers import MariaDb, Postgres
from generic.library.programs.cache import Progress

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
        with mariadb.connect(self.mariadb.administrator) as connection:
            connection.cursor().execute(statement)
