"""The interface between the actuator and any database server: plain data, and errors.

`postgres` and `mysql` implement it. Kubernetes does not belong here, nor there.
"""

import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import attrs

from actuator import ActuatorError, ErrorCode
from extensions.externaldatabase.endpoint import DatabaseEndpoint

DATABASE = "Database"
LOGIN = "Login"
"""The types of the extension's resources on a server."""
_MARK = "actuator"
_NOT_TRUSTED = re.compile(
    r"certificate|does(n't| not) support (it|SSL)|authentication method|channel binding|clear text"
)
"""How libpq and PyMySQL report a server that must not receive the password."""
_REMEDY = (
    "TLS with a verified certificate, and authentication without a clear-text password, are "
    "required: configure the server, and set the key ca.crt of the admin Secret to its CA"
)
_MAX_ROWS = 500
"""Maximum characters of a server's own message."""

Check = Callable[[], None]
"""Called before each step that has an effect; raises if there must be no further step."""


@attrs.frozen(kw_only=True)
class Claim:
    """One object's share of a server: a database, and a login that no other object can have.

    `owner` is the object's `namespace/name`, for users.
    """

    database: str
    login: str
    owner: str

    @property
    def mark(self) -> str:
        """The text that marks a resource on a server as the extension's."""
        return f"{_MARK} {self.login} {self.owner}"

    @classmethod
    def marked(cls, database: str, text: str | None) -> "Claim | None":
        """Return the claim that a text is the mark of, or None."""
        words = (text or "").split()
        if len(words) != 3 or words[0] != _MARK:
            return None
        return cls(database=database, login=words[1], owner=words[2])


@attrs.frozen(kw_only=True)
class ClaimState:
    """The state of a claim on a server: `holder` is the login that has the database.

    `holder` is None if there is no such database, and "" if it belongs to others. `marked` is False
    if the database has no mark yet, and the claim's login proves that it is the claim's.
    """

    holder: str | None
    has_login: bool
    marked: bool = True


class RequestRefused(ActuatorError):
    """A server did not execute a request."""

    def __init__(self, server: str, what: str, why: str, code: ErrorCode) -> None:
        text = f"{server} did not {what}: {' '.join(why.split())[:_MAX_ROWS]}"
        if _NOT_TRUSTED.search(why):
            code = ErrorCode.ERR_CONFIGURATION_PROBLEM
            text = f"{text}; {_REMEDY}"
        super().__init__(text, codes=[code])


class Traffic:
    """Limits the rate of requests to one server, for all workers together.

    Like a client of the Kubernetes API, it delays a request that is too early, at most for the time
    of one request of each worker. The requests of one second may be sent at once.
    """

    def __init__(self, per_second: float) -> None:
        self._gap = 1 / per_second
        self._lock = threading.Lock()
        self._next = 0.0

    @contextmanager
    def request(self, what: str) -> Iterator[None]:
        """Wrap each request to the server; `what` names it, with equal words for all objects."""
        now = time.monotonic()
        with self._lock:
            self._next = max(self._next, now - 1) + self._gap
            seconds = max(0.0, self._next - now)
        time.sleep(seconds)
        yield


class DatabaseServer(Protocol):
    """A server on which the extension may create databases. All methods raise Refused."""

    scheme: str
    """The scheme of its databases' URLs."""

    endpoint: DatabaseEndpoint

    def look(self, claim: Claim) -> ClaimState:
        """Return the current state."""

    def provision(self, claim: Claim, password: str, found: ClaimState, check: Check) -> None:
        """Create or update database and login; only that login may use the database.

        `found` is the previous state; the database must not belong to others.
        """

    def remove(self, claim: Claim, check: Check) -> None:
        """Delete database and login; already deleted ones, and those of others, are success."""

    def holdings(self) -> Sequence[tuple[str, Claim]]:
        """Return all resources with the extension's mark, each a DATABASE or a LOGIN."""
