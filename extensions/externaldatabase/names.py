"""Names of databases: which names are allowed, and how to quote names in SQL. Pure.

Two layers of protection: a disallowed name never reaches a server, and every other is quoted. For
PostgreSQL, psycopg quotes names (`psycopg.sql.Identifier`); PyMySQL cannot quote them.
"""

import re

from actuator import ConfigurationError

_ALLOWED = re.compile(r"[a-z][a-z0-9_-]{2,62}")
_MAX_BYTES = 63
"""PostgreSQL truncates longer names ("Identifiers and Key Words"); MySQL and MariaDB allow 64."""
_MAX_PATTERN = 64


def problem_with(name: str) -> str | None:
    """Return why a database name is not allowed, or None."""
    if _ALLOWED.fullmatch(name):
        return None
    return (
        f"{name!r} is no name of a database here; take 3 to {_MAX_BYTES} of the characters "
        "a-z, 0-9, _ and -, and begin with a letter"
    )


def checked(name: str) -> str:
    """Return the name if a server can use it unchanged. Raises ConfigurationError."""
    encoded = name.encode("utf-8", "replace")
    if "\0" in name or encoded.decode() != name or not 0 < len(encoded) <= _MAX_BYTES:
        raise ConfigurationError(f"{name!r} cannot be the name of anything on a database server")
    return name


def identifier(name: str) -> str:
    """Return the name quoted for MySQL and MariaDB. Raises ConfigurationError.

    Source: MariaDB documentation, "Identifier Names"; MySQL documentation, "Schema Object Names".
    """
    if name.endswith(" ") or any(character > "\uffff" for character in name):
        raise ConfigurationError(f"{name!r} cannot be the name of anything on a MySQL server")
    return _quoted(checked(name))


def pattern(name: str) -> str:
    """Return the name quoted for GRANT, where _ and % are wildcards.

    Raises ConfigurationError. Source: MariaDB and MySQL documentation, "GRANT".
    """
    identifier(name)
    escaped = re.sub(r"([_%\\])", r"\\\1", name)
    if len(escaped) > _MAX_PATTERN:
        raise ConfigurationError(
            f"{name!r} is too long for a grant on a MySQL server, where each _ counts twice; "
            f"take at most {_MAX_PATTERN} characters"
        )
    return _quoted(escaped)


def _quoted(text: str) -> str:
    return "`{}`".format(text.replace("`", "``"))
