"""Names of databases: what users may ask for, and how names get into SQL. Pure.

Two walls: what the extension does not like never reaches a server, and what reaches one is quoted.
PostgreSQL's quoting is psycopg's (`psycopg.sql.Identifier`); PyMySQL has none for identifiers.
"""

from __future__ import annotations

import re

from actuator import ConfigurationError

_ALLOWED = re.compile(r"[a-z][a-z0-9_-]{2,62}")
_MOST_BYTES = 63
"""PostgreSQL cuts longer ones off (documentation, "Identifiers and Key Words"); MariaDB has 64."""
_LONGEST_PATTERN = 64


def problem_with(name: str) -> str | None:
    """Why nobody gets a database of that name, or None."""
    if _ALLOWED.fullmatch(name):
        return None
    return (
        f"{name!r} is no name of a database here; take 3 to {_MOST_BYTES} of the characters "
        "a-z, 0-9, _ and -, and begin with a letter"
    )


def checked(name: str) -> str:
    """The name, if a server can take it as it is. Raises ConfigurationError."""
    encoded = name.encode("utf-8", "replace")
    if "\0" in name or encoded.decode() != name or not 0 < len(encoded) <= _MOST_BYTES:
        raise ConfigurationError(f"{name!r} cannot be the name of anything on a database server")
    return name


def identifier(name: str) -> str:
    """The name as MariaDB reads it in SQL. Raises ConfigurationError.

    Source: MariaDB documentation, "Identifier Names".
    """
    if name.endswith(" ") or any(character > "\uffff" for character in name):
        raise ConfigurationError(f"{name!r} cannot be the name of anything on a MariaDB server")
    return _quoted(checked(name))


def pattern(name: str) -> str:
    """The same for GRANT, where _ and % in a database's name stand for other names too.

    Raises ConfigurationError. Source: MariaDB documentation, "GRANT", database privileges.
    """
    identifier(name)
    escaped = re.sub(r"([_%\\])", r"\\\1", name)
    if len(escaped) > _LONGEST_PATTERN:
        raise ConfigurationError(
            f"{name!r} is too long for a grant on a MariaDB server, where each _ counts twice; "
            f"take at most {_LONGEST_PATTERN} characters"
        )
    return _quoted(escaped)


def _quoted(text: str) -> str:
    return "`{}`".format(text.replace("`", "``"))
