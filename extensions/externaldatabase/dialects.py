"""The SQL of MariaDB and of MySQL, which one driver and one protocol serve. Pure.

MariaDB marks a database by its comment, which CREATE DATABASE sets atomically. Its login is created
after the database and dropped before it, so that the comment always names the owner of both.

MySQL has no comments on databases. The comment of a stored procedure that does nothing is the mark:
it is dropped with the database, and tools that compare tables ignore it. The login is created
before the database, and gets its privileges after the mark. A crash in between leaves a login
without privileges, and a database without mark. The database is that login's while it is empty;
any other database without mark belongs to others.
"""

import re
from collections.abc import Sequence

import attrs

from extensions.externaldatabase.server import ClaimState

REQUIRED = "MySQL 8.0.16 or later, or MariaDB 10.5 or later"
_OLDEST = (8, 0, 16)
"""The first MySQL with the setting `literal` (MySQL 8.0 Release Notes)."""

Step = tuple[str, Sequence[str]]
"""The name of a request, and its statements, with the placeholders of `Dialect`."""

_LOOK = """
SELECT (SELECT mark FROM ({databases}) AS found
        WHERE CAST(name AS BINARY) = CAST(%(database)s AS BINARY)),
       EXISTS (SELECT 1 FROM mysql.user WHERE User = %(login)s),
       {begun}
"""
DROP_LOGIN = "DROP USER IF EXISTS %(login)s@'%%'"
_OPEN = "open a database", ["GRANT ALL PRIVILEGES ON {grant}.* TO %(login)s@'%%'"]


@attrs.frozen(kw_only=True)
class Dialect:
    """The statements of one product.

    The placeholders are {name}, the quoted database, {grant}, its pattern for privileges, and the
    values %(database)s, %(login)s, %(password)s and %(mark)s.
    """

    databases: str
    """The name of each database and its mark."""
    begun: str = "FALSE"
    """Whether the login has no privileges yet, and the database is empty."""
    literal: str = ""
    """Whether GRANT has no wildcards."""
    identified: str
    create: str
    mark: str = ""
    """Marks a database that `create` did not mark."""

    @property
    def look(self) -> str:
        """Return the query for a database's mark, NULL if missing, a login, and `begun`."""
        return _LOOK.format(databases=self.databases, begun=self.begun)

    def provision(self, found: ClaimState) -> list[Step]:
        """Return the steps that create or update database and login."""
        verbs = ("CREATE USER IF NOT EXISTS", "ALTER USER")
        login = "set a login", [f"{verb} %(login)s@'%%' {self.identified}" for verb in verbs]
        missing = [("create a database", [self.create])] if found.holder is None else []
        if not self.mark:
            return [*missing, login, _OPEN]
        unmarked = self._marking() if missing or not found.marked else []
        return [login, *missing, *unmarked, _OPEN]

    def remove(self, found: ClaimState, *, holds: bool) -> list[Step]:
        """Return the steps that delete the login, and the database if the login holds it.

        A database without mark is marked first, because another object may mark it meanwhile.
        """
        login = "drop a login", [DROP_LOGIN]
        held = [("drop a database", ["DROP DATABASE IF EXISTS {name}"])] if holds else []
        unmarked = [] if found.marked else self._marking()
        return [*unmarked, *held, login] if self.mark else [login, *held]

    def _marking(self) -> list[Step]:
        return [("mark a database", [self.mark])]


MARIADB = Dialect(
    databases="SELECT SCHEMA_NAME AS name, SCHEMA_COMMENT AS mark FROM information_schema.SCHEMATA",
    identified="IDENTIFIED BY %(password)s",
    create="CREATE DATABASE {name} COMMENT %(mark)s",
)
MYSQL = Dialect(
    databases="""
SELECT SCHEMA_NAME AS name, COALESCE(ROUTINE_COMMENT, '') AS mark FROM information_schema.SCHEMATA
LEFT JOIN information_schema.ROUTINES
ON ROUTINE_SCHEMA = SCHEMA_NAME AND ROUTINE_NAME = 'actuator_owner'
AND ROUTINE_TYPE = 'PROCEDURE'
""",
    begun="""
NOT EXISTS (SELECT 1 FROM mysql.db WHERE User = %(login)s) AND NOT EXISTS (
    SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = %(database)s
    UNION SELECT 1 FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = %(database)s
    UNION SELECT 1 FROM information_schema.EVENTS WHERE EVENT_SCHEMA = %(database)s)
""",
    literal="SELECT @@partial_revokes",
    identified="IDENTIFIED WITH caching_sha2_password BY %(password)s",
    create="CREATE DATABASE {name}",
    mark="CREATE PROCEDURE {name}.actuator_owner() COMMENT %(mark)s BEGIN END",
)


def dialect_of(version: str) -> Dialect | None:
    """Return the dialect of a server that reports this version; None if it is too old."""
    if "MariaDB" in version:
        return MARIADB
    numbers = tuple(map(int, re.findall(r"\d+", version)[:3]))
    return MYSQL if numbers >= _OLDEST else None
