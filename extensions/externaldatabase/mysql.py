"""Databases on a MySQL or MariaDB server, by PyMySQL.

Each connection learns the product from the version that the server reports; `dialects` has the
statements, and says how a database is marked. The login has the object's UID in its name. Requires
an account with all privileges and GRANT OPTION.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import attrs
import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from actuator import ErrorCode
from extensions.externaldatabase.dialects import DROP_LOGIN, REQUIRED, Dialect, Step, dialect_of
from extensions.externaldatabase.endpoint import DatabaseEndpoint
from extensions.externaldatabase.names import identifier, pattern
from extensions.externaldatabase.server import (
    DATABASE,
    LOGIN,
    Check,
    Claim,
    ClaimState,
    RequestRefused,
    Traffic,
)

PORT = 3306
_CONNECT_SECONDS = 5
_STATEMENT_SECONDS = 30

_MEANINGS: Mapping[int, ErrorCode] = {
    **dict.fromkeys((1045, 1698, 1862, 3118, 3955, 4151), ErrorCode.ERR_INFRA_UNAUTHENTICATED),
    **dict.fromkeys((1044, 1142, 1227, 1290, 1370, 1410), ErrorCode.ERR_INFRA_UNAUTHORIZED),
    **dict.fromkeys((1021, 1040, 1114, 1203), ErrorCode.ERR_INFRA_RESOURCES_DEPLETED),
    1226: ErrorCode.ERR_INFRA_QUOTA_EXCEEDED,
    **dict.fromkeys((2002, 2003, 2005, 2006, 2013), ErrorCode.ERR_INFRA_DEPENDENCIES),
}
"""MariaDB documentation, "MariaDB Error Codes"; MySQL documentation, "Server Error Message
Reference"; codes from 2000 to 2999 are the client's own."""
_SENDS_PASSWORD = ("mysql_clear_password", "dialog", "sha256_password")
_NEEDS_TLS = "caching_sha2_password"
"""Without TLS it would encrypt the password with any key that the server sends."""
_NO_PLUGIN = 2059
_TAKEN = frozenset((1007, 1304))
"""The database exists, its mark exists."""
_SYNTAX_ERROR = 1064
"""Its message repeats the statement, which may contain a password."""


def _refuse(_connection: object) -> None:
    raise pymysql.OperationalError(_NO_PLUGIN, "the server asks for the password in clear text")


def connect(there: DatabaseEndpoint, database: str | None = None) -> "Connection[Cursor]":
    """Connect with verified TLS and a plugin that hides the password. Raises MySQLError."""
    refused = _SENDS_PASSWORD if there.tls else (*_SENDS_PASSWORD, _NEEDS_TLS)
    return pymysql.connect(
        host=there.host,
        port=there.port,
        user=there.user,
        password=there.password,
        database=database,
        charset="utf8mb4",
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_STATEMENT_SECONDS,
        write_timeout=_STATEMENT_SECONDS,
        autocommit=True,
        ssl=there.tls_context() if there.tls else None,
        ssl_disabled=not there.tls,
        auth_plugin_map=dict.fromkeys(refused, _refuse),
    )


class MySqlServer:
    """See Server."""

    scheme = "mysql"

    def __init__(self, endpoint: DatabaseEndpoint, traffic: Traffic) -> None:
        self.endpoint = endpoint
        self._traffic = traffic

    def look(self, claim: Claim) -> ClaimState:
        """See Server."""
        identifier(claim.database)  # an invalid name cannot be that of an existing database
        with self._connected() as (cursor, dialect), self._request("look for a database"):
            cursor.execute(dialect.look, attrs.asdict(claim))
            mark, has_login, begun = cursor.fetchall()[0]
        if mark == "" and has_login and begun:
            return ClaimState(holder=claim.login, has_login=True, marked=False)
        marked = Claim.marked(claim.database, mark)
        holder = marked.login if marked else ""
        return ClaimState(holder=None if mark is None else holder, has_login=bool(has_login))

    def provision(self, claim: Claim, password: str, found: ClaimState, check: Check) -> None:
        """See Server."""
        with self._connected() as (cursor, dialect):
            grant = self._grant(cursor, dialect, claim.database)
            for step in dialect.provision(found):
                check()
                self._run(cursor, step, claim, grant, password)

    def remove(self, claim: Claim, check: Check) -> None:
        """See Server."""
        found = self.look(claim)
        with self._connected() as (cursor, dialect):
            for step in dialect.remove(found, holds=found.holder == claim.login):
                check()
                self._run(cursor, step, claim)

    def holdings(self) -> Sequence[tuple[str, Claim]]:
        """See Server."""
        with self._connected() as (cursor, dialect), self._request("list"):
            cursor.execute(dialect.databases)
            marked = [Claim.marked(*row) for row in cursor.fetchall()]
            cursor.execute("SELECT User FROM mysql.user")
            logins = {row[0] for row in cursor.fetchall()}
        claims = [claim for claim in marked if claim is not None]
        with_login = [(LOGIN, claim) for claim in claims if claim.login in logins]
        return [*((DATABASE, claim) for claim in claims), *with_login]

    def _grant(self, cursor: Cursor, dialect: Dialect, database: str) -> str:
        """Return the quoted name for GRANT."""
        if dialect.literal:
            with self._request("read its settings"):
                cursor.execute(dialect.literal)
                if cursor.fetchall()[0][0]:
                    return identifier(database)
        return pattern(database)

    def _run(
        self, cursor: Cursor, step: Step, claim: Claim, grant: str = "", password: str = ""
    ) -> None:
        name = identifier(claim.database).replace("%", "%%")
        grant = grant.replace("%", "%%")
        values = {**attrs.asdict(claim), "mark": claim.mark, "password": password}
        what, statements = step
        with self._request(what):
            try:
                for statement in statements:
                    cursor.execute(statement.format(name=name, grant=grant), values)
            except pymysql.MySQLError as error:
                if _TAKEN.intersection(error.args[:1]):  # the login must claim nothing of others
                    cursor.execute(DROP_LOGIN, values)
                raise

    @contextmanager
    def _connected(self) -> Iterator[tuple[Cursor, Dialect]]:
        """Open a connection for one operation; no connection stays open between operations."""
        with self._request("accept a connection"):
            connection = connect(self.endpoint)
        with connection:
            version = connection.get_server_info()
            dialect = dialect_of(version)
            if dialect is None:
                why = f"it is version {version}; use {REQUIRED}"
                raise RequestRefused(self._name, "serve", why, ErrorCode.ERR_CONFIGURATION_PROBLEM)
            yield connection.cursor(), dialect

    @contextmanager
    def _request(self, what: str) -> Iterator[None]:
        with self._traffic.request(f"mysql: {what}"):
            try:
                yield
            except pymysql.MySQLError as error:
                number, *rest = error.args or (0,)
                why = "a syntax error" if number == _SYNTAX_ERROR else " ".join(map(str, rest))
                code = _MEANINGS.get(number, ErrorCode.ERR_RETRYABLE_INFRA_DEPENDENCIES)
                raise RequestRefused(self._name, what, why or str(error), code) from None

    @property
    def _name(self) -> str:
        return f"MySQL or MariaDB at {self.endpoint.host}:{self.endpoint.port}"
