"""Databases on a MariaDB server, 10.5 or later, by PyMySQL.

The mark is the comment of the database, which CREATE DATABASE sets atomically (MariaDB
documentation, "CREATE DATABASE"). MySQL has no such comment, so a MySQL server is refused. The
login has the object's UID in its name. It is created after its database and dropped before it, so
that a login always has a database whose comment names its owner. Requires an account with all
privileges and GRANT OPTION.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from actuator import ErrorCode
from extensions.externaldatabase.endpoint import Endpoint
from extensions.externaldatabase.names import identifier, pattern
from extensions.externaldatabase.server import (
    DATABASE,
    LOGIN,
    Check,
    Claim,
    Found,
    Holding,
    Refused,
    Traffic,
)

PORT = 3306
_CONNECT_SECONDS = 5
_STATEMENT_SECONDS = 30

_MEANINGS: Mapping[int, ErrorCode] = {
    **dict.fromkeys((1045, 1698, 4151), ErrorCode.ERR_INFRA_UNAUTHENTICATED),
    **dict.fromkeys((1044, 1142, 1227, 1290, 1370, 1410), ErrorCode.ERR_INFRA_UNAUTHORIZED),
    **dict.fromkeys((1021, 1040, 1114, 1203), ErrorCode.ERR_INFRA_RESOURCES_DEPLETED),
    1226: ErrorCode.ERR_INFRA_QUOTA_EXCEEDED,
    **dict.fromkeys((2002, 2003, 2005, 2006, 2013), ErrorCode.ERR_INFRA_DEPENDENCIES),
}
"""MariaDB documentation, "MariaDB Error Codes"; codes from 2000 on are the client's own."""
_SENDS_PASSWORD = ("mysql_clear_password", "dialog", "sha256_password", "caching_sha2_password")
_NO_PLUGIN = 2059
_SYNTAX_ERROR = 1064
"""Its message repeats the statement, which may contain a password."""

_LOOK = """
SELECT (SELECT SCHEMA_COMMENT FROM information_schema.SCHEMATA
        WHERE BINARY SCHEMA_NAME = BINARY %s),
       EXISTS (SELECT 1 FROM mysql.user WHERE User = %s)
"""


def _refuse(_connection: object) -> None:
    raise pymysql.OperationalError(_NO_PLUGIN, "the server asks for the password in clear text")


def connect(there: Endpoint, database: str | None = None) -> "Connection[Cursor]":
    """Connect with verified TLS and a plugin that hides the password. Raises MySQLError."""
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
        auth_plugin_map=dict.fromkeys(_SENDS_PASSWORD, _refuse),
    )


class MariaDbServer:
    """See Server."""

    scheme = "mysql"

    def __init__(self, endpoint: Endpoint, traffic: Traffic) -> None:
        self.endpoint = endpoint
        self._traffic = traffic

    def look(self, claim: Claim) -> Found:
        """See Server."""
        identifier(claim.database)  # an invalid name cannot be that of an existing database
        with self._request("look for a database") as cursor:
            cursor.execute(_LOOK, (claim.database, claim.login))
            comment, has_login = cursor.fetchall()[0]
        marked = Claim.marked(claim.database, comment)
        holder = marked.login if marked else ""
        return Found(holder=None if comment is None else holder, has_login=bool(has_login))

    def provision(self, claim: Claim, password: str, found: Found, check: Check) -> None:
        """See Server."""
        name, granted = identifier(claim.database), pattern(claim.database)
        if found.holder is None:
            check()
            self._run("create a database", "CREATE DATABASE {} COMMENT %s", name, claim.mark)
        check()
        account = (claim.login, password)
        with self._request("set a login") as cursor:
            cursor.execute("CREATE USER IF NOT EXISTS %s@'%%' IDENTIFIED BY %s", account)
            cursor.execute("ALTER USER %s@'%%' IDENTIFIED BY %s", account)
        check()
        grant = "GRANT ALL PRIVILEGES ON {}.* TO %s@'%%'"
        self._run("open a database", grant, granted, claim.login)

    def remove(self, claim: Claim, check: Check) -> None:
        """See Server."""
        check()
        self._run("drop a login", "DROP USER IF EXISTS %s@'%%'", "", claim.login)
        if self.look(claim).holder == claim.login:
            check()
            name = identifier(claim.database)
            self._run("drop a database", "DROP DATABASE IF EXISTS {}", name)

    def holdings(self) -> Sequence[Holding]:
        """See Server."""
        with self._request("list") as cursor:
            cursor.execute("SELECT SCHEMA_NAME, SCHEMA_COMMENT FROM information_schema.SCHEMATA")
            marked = [Claim.marked(*row) for row in cursor.fetchall()]
            cursor.execute("SELECT User FROM mysql.user")
            logins = {row[0] for row in cursor.fetchall()}
        claims = [claim for claim in marked if claim is not None]
        databases = [Holding(what=DATABASE, claim=claim) for claim in claims]
        with_login = [claim for claim in claims if claim.login in logins]
        return [*databases, *(Holding(what=LOGIN, claim=claim) for claim in with_login)]

    def _run(self, what: str, statement: str, name: str, *values: str) -> None:
        """Run a statement with the quoted `name` in place of {}, and the values in place of %s."""
        with self._request(what) as cursor:
            cursor.execute(statement.format(name.replace("%", "%%")), values)

    @contextmanager
    def _request(self, what: str) -> Iterator[Cursor]:
        """Open a connection for one request; no connection stays open between requests."""
        with self._traffic.request(f"mysql: {what}"):
            try:
                with connect(self.endpoint) as connection:
                    self._expect_mariadb(connection.get_server_info())
                    yield connection.cursor()
            except pymysql.MySQLError as error:
                raise self._refused(what, error) from None

    def _expect_mariadb(self, version: str) -> None:
        if "MariaDB" not in version:
            code = ErrorCode.ERR_CONFIGURATION_PROBLEM
            why = f"it is version {version}, which has no comments on databases; use MariaDB"
            raise Refused(self._name, "serve", why, code)

    def _refused(self, what: str, error: pymysql.MySQLError) -> Refused:
        number, *rest = error.args or (0,)
        why = "a syntax error" if number == _SYNTAX_ERROR else " ".join(map(str, rest))
        retryable = ErrorCode.ERR_RETRYABLE_INFRA_DEPENDENCIES
        return Refused(self._name, what, why or str(error), _MEANINGS.get(number, retryable))

    @property
    def _name(self) -> str:
        return f"MariaDB at {self.endpoint.host}:{self.endpoint.port}"
