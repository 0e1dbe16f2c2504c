"""The outside world of the sample: a register in a SQLite file. Kubernetes does not belong here.

Each method is one transaction, so that concurrent processes see an entry completely or not at all.
The owner of the register controls access: a trigger can refuse deletions to all users.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import uuid4

import attrs

from actuator import ActuatorError, ErrorCode, ExternalResource

TYPE = "Relations::Entry"
REGION = "register"
_SECONDS = 10.0
_NO_ANSWER = ErrorCode.ERR_INFRA_DEPENDENCIES
_TABLE = """
    CREATE TABLE IF NOT EXISTS entries (
        id TEXT PRIMARY KEY, namespace TEXT, name TEXT, uid TEXT UNIQUE, text TEXT
    )
"""
_PUT = """
    INSERT INTO entries VALUES (:id, :namespace, :name, :uid, :text)
    ON CONFLICT (uid) DO UPDATE SET text = excluded.text RETURNING id
"""
_DENY = "CREATE TRIGGER deny BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'denied'); END"


@attrs.frozen
class Register:
    """The entries in one file. Each method raises ActuatorError."""

    path: Path

    def open(self) -> None:
        """Create the file if it does not exist."""
        with closing(sqlite3.connect(self.path)) as database, database:
            database.execute(_TABLE)

    def put(self, owner: Mapping[str, str], text: str) -> str:
        """Set the text of the owner's only entry; return its id."""
        with self.asked("put an entry") as database:
            found = database.execute(_PUT, {**owner, "id": uuid4().hex, "text": text})
            return str(found.fetchone()[0])

    def remove(self, owner: Mapping[str, str]) -> None:
        """Remove the owner's entry."""
        with self.asked("remove an entry") as database:
            database.execute("DELETE FROM entries WHERE uid = :uid", owner)

    def entries(self) -> list[ExternalResource]:
        """Return all entries."""
        with self.asked("list the entries") as database:
            rows = database.execute("SELECT id, namespace, name, uid FROM entries").fetchall()
        names = ("namespace", "name", "uid")
        return [
            ExternalResource(
                type=TYPE, id=id, tags=dict(zip(names, owner, strict=True)), region=REGION
            )
            for id, *owner in rows
        ]

    def deny_deletions(self) -> None:
        """Refuse to remove entries."""
        with self.asked("deny deletions") as database:
            database.execute(_DENY)

    def allow_deletions(self) -> None:
        """Allow to remove entries again."""
        with self.asked("allow deletions") as database:
            database.execute("DROP TRIGGER IF EXISTS deny")

    @contextmanager
    def asked(self, request: str) -> Iterator[sqlite3.Connection]:
        """Open a transaction on a file that must exist."""
        where = f"{self.path.absolute().as_uri()}?mode=rw"
        try:
            with closing(sqlite3.connect(where, timeout=_SECONDS, uri=True)) as database, database:
                yield database
        except sqlite3.Error as error:
            is_denied = isinstance(error, sqlite3.IntegrityError)  # by the trigger
            code = ErrorCode.ERR_INFRA_UNAUTHORIZED if is_denied else _NO_ANSWER
            text = f"The register refused to {request}: {error}"
            raise ActuatorError(text, codes=[code]) from error
