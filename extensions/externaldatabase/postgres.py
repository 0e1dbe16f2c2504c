"""Databases on a PostgreSQL server, by psycopg 3.

The mark is the owner, which CREATE DATABASE sets atomically, so that the extension's database never
exists without an owner. The login has the object's UID in its name, and a comment from the
transaction that creates it. Requires an account with CREATEDB and CREATEROLE; it becomes a member
of each login, as PostgreSQL requires of accounts without superuser (PostgreSQL documentation,
"CREATE DATABASE").
"""

import ssl
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql

from actuator import ErrorCode
from extensions.externaldatabase.endpoint import DatabaseEndpoint
from extensions.externaldatabase.names import checked
from extensions.externaldatabase.server import (
    DATABASE,
    LOGIN,
    Check,
    Claim,
    ClaimState,
    RequestRefused,
    Traffic,
)

PORT = 5432
_DATABASE = "postgres"
"""The database that every server has."""
_SYSTEM_CAS = ssl.get_default_verify_paths().cafile or "system"
_CONNECT_SECONDS = 5
_STATEMENT_SECONDS = 30

_MEANINGS: Mapping[str, ErrorCode] = {
    "28": ErrorCode.ERR_INFRA_UNAUTHENTICATED,
    "42501": ErrorCode.ERR_INFRA_UNAUTHORIZED,
    "25006": ErrorCode.ERR_INFRA_UNAUTHORIZED,
    "2BP01": ErrorCode.ERR_INFRA_DEPENDENCIES,
    "53": ErrorCode.ERR_INFRA_RESOURCES_DEPLETED,
}
"""SQLSTATE, or its class (PostgreSQL documentation, "PostgreSQL Error Codes")."""
_NOT_LET_IN = ("authentication failed", "not permitted to log in")
"""A failed connection has no SQLSTATE, only the server's message."""

Connection = psycopg.Connection[tuple[Any, ...]]

_LOOK = """
SELECT (SELECT r.rolname FROM pg_database d JOIN pg_roles r ON r.oid = d.datdba
        WHERE d.datname = %s),
       EXISTS (SELECT FROM pg_roles WHERE rolname = %s)
"""
_ELSEWHERE = """
SELECT DISTINCT COALESCE(d.datname, objects.datname, 'the server itself')
FROM pg_shdepend s JOIN pg_roles r ON s.refclassid = 'pg_authid'::regclass AND r.oid = s.refobjid
LEFT JOIN pg_database d ON d.oid = s.dbid
LEFT JOIN pg_database objects ON s.classid = 'pg_database'::regclass AND objects.oid = s.objid
WHERE r.rolname = %s AND COALESCE(d.datname, objects.datname, '') <> %s ORDER BY 1
"""
"""Where objects depend on a role: in a database, or a database itself (PostgreSQL documentation,
"pg_shdepend"). DROP ROLE refuses then."""
_HOLDINGS = """
SELECT r.rolname, shobj_description(r.oid, 'pg_authid'), d.datname
FROM pg_roles r LEFT JOIN pg_database d ON d.datdba = r.oid
"""


@contextmanager
def connect(there: DatabaseEndpoint, database: str = _DATABASE) -> Iterator[Connection]:
    """Connect with verified TLS and SCRAM, which never sends the password itself.

    Raises psycopg.Error. Source: PostgreSQL documentation, "Parameter Key Words" of libpq.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".crt") as file:  # libpq needs a CA in a file
        file.write(there.ca)
        file.flush()
        with psycopg.connect(
            host=there.host,
            port=there.port,
            user=there.user,
            password=there.password,
            dbname=database,
            connect_timeout=_CONNECT_SECONDS,
            options=f"-c statement_timeout={_STATEMENT_SECONDS}s",
            autocommit=True,
            sslmode="verify-full" if there.tls else "disable",
            sslrootcert=file.name if there.ca else _SYSTEM_CAS,
            gssencmode="disable",
            require_auth="scram-sha-256",
            channel_binding="require" if there.tls else "prefer",
        ) as connection:
            yield connection


class PostgresServer:
    """See Server."""

    scheme = "postgresql"

    def __init__(self, endpoint: DatabaseEndpoint, traffic: Traffic) -> None:
        self.endpoint = endpoint
        self._traffic = traffic

    def look(self, claim: Claim) -> ClaimState:
        """See Server."""
        with self._request("look for a database") as connection:
            names = (checked(claim.database), claim.login)
            row = connection.execute(_LOOK, names).fetchone()
        assert row is not None, "it is no query for rows"
        return ClaimState(holder=row[0], has_login=row[1])

    def provision(self, claim: Claim, password: str, found: ClaimState, check: Check) -> None:
        """See Server."""
        check()
        self._set_login(claim, password, "ALTER" if found.has_login else "CREATE")
        if found.holder is None:
            check()
            self._run("create a database", "CREATE DATABASE {database} OWNER {login}", claim)
        check()
        self._run("close a database", "REVOKE ALL ON DATABASE {database} FROM PUBLIC", claim)

    def remove(self, claim: Claim, check: Check) -> None:
        """See Server."""
        if self.look(claim).holder == claim.login:
            self._refuse_dependents(claim)
            check()
            self._run("drop a database", "DROP DATABASE IF EXISTS {database} WITH (FORCE)", claim)
        check()
        self._run("drop a login", "DROP ROLE IF EXISTS {login}", claim)

    def _refuse_dependents(self, claim: Claim) -> None:
        """Raise Refused if the login could not be dropped after its database."""
        what = "drop a login"
        with self._request(what) as connection:
            rows = connection.execute(_ELSEWHERE, (claim.login, claim.database)).fetchall()
        if rows:
            places = ", ".join(str(name) for (name,) in rows)
            why = f"{claim.login} has privileges or objects in {places}; revoke or drop them there"
            raise RequestRefused(self._name, what, why, ErrorCode.ERR_INFRA_DEPENDENCIES)

    def holdings(self) -> Sequence[tuple[str, Claim]]:
        """See Server."""
        with self._request("list") as connection:
            rows = connection.execute(_HOLDINGS).fetchall()
        found: dict[tuple[str, Claim], None] = {}
        for role, comment, database in rows:
            claim = Claim.marked(database or "", comment)
            if claim is not None and claim.login == role:
                found[LOGIN, claim] = None
                if database is not None:
                    found[DATABASE, claim] = None
        return list(found)

    def _set_login(self, claim: Claim, password: str, verb: str) -> None:
        """Set the login's password, and make this account one of its members.

        The server receives the SCRAM verifier that it stores, not the password.
        """
        with self._request("set a login") as connection, connection.transaction():
            login = sql.Identifier(claim.login)
            stored = connection.pgconn.encrypt_password(
                password.encode(), claim.login.encode(), b"scram-sha-256"
            ).decode()
            connection.execute(
                sql.SQL("{} ROLE {} LOGIN PASSWORD {}").format(
                    sql.SQL(verb), login, sql.Literal(stored)
                )
            )
            mark = sql.Literal(claim.mark)
            connection.execute(sql.SQL("COMMENT ON ROLE {} IS {}").format(login, mark))
            connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(login))

    def _run(self, what: str, statement: str, claim: Claim) -> None:
        names = {
            "database": sql.Identifier(checked(claim.database)),
            "login": sql.Identifier(claim.login),
        }
        with self._request(what) as connection:
            connection.execute(sql.SQL(statement).format(**names))

    @contextmanager
    def _request(self, what: str) -> Iterator[Connection]:
        """Open a connection for one request; no connection stays open between requests."""
        with self._traffic.request(f"postgres: {what}"):
            try:
                with connect(self.endpoint) as connection:
                    yield connection
            except psycopg.Error as error:
                raise self._refused(what, error) from None

    def _refused(self, what: str, error: psycopg.Error) -> RequestRefused:
        """Return the error without the statement, and without the driver's context."""
        said = error.diag.message_primary or str(error) or type(error).__name__
        why = said.rpartition("FATAL: ")[2]  # without the driver's prefix
        if detail := error.diag.message_detail:
            why = f"{why} ({'; '.join(detail.splitlines())})"
        return RequestRefused(self._name, what, why, _code(error))

    @property
    def _name(self) -> str:
        return f"PostgreSQL at {self.endpoint.host}:{self.endpoint.port}"


def _code(error: psycopg.Error) -> ErrorCode:
    if error.sqlstate is None:
        if any(text in str(error) for text in _NOT_LET_IN):
            return ErrorCode.ERR_INFRA_UNAUTHENTICATED
        return ErrorCode.ERR_INFRA_DEPENDENCIES
    known = (error.sqlstate, error.sqlstate[:2])
    meanings = (_MEANINGS[item] for item in known if item in _MEANINGS)
    return next(meanings, ErrorCode.ERR_RETRYABLE_INFRA_DEPENDENCIES)
