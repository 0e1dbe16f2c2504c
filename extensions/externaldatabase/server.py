"""What the actuator wants of a database server, whichever it is; plain data, and what can go wrong.

`postgres` and `mariadb` do it. Nothing in here, nor there, knows Kubernetes.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import attrs

from actuator import ActuatorError, ErrorCode
from extensions.externaldatabase.endpoint import Endpoint

DATABASE, LOGIN = "Database", "Login"
"""What a server has of us."""
_MARK = "actuator"
_NOT_TRUSTED = re.compile(
    r"certificate|does(n't| not) support (it|SSL)|authentication method|channel binding|clear text"
)
"""How libpq and PyMySQL report a server that must not get the password."""
_REMEDY = (
    "TLS with a verified certificate, and authentication without a clear-text password, are "
    "required: configure the server, and set the key ca.crt of the admin Secret to its CA"
)
_MOST = 500
"""Characters of a server's own text."""

Check = Callable[[], None]
"""Called before each step that has an effect; raises where there must be no more."""


@attrs.frozen(kw_only=True)
class Claim:
    """One object's share of a server: a database, and a login that nobody else can have.

    `owner` is the object's `namespace/name`, for people.
    """

    database: str
    login: str
    owner: str

    @property
    def mark(self) -> str:
        """What is written beside what is ours on a server, where it has room for a text."""
        return f"{_MARK} {self.login} {self.owner}"

    @classmethod
    def marked(cls, database: str, text: str | None) -> Claim | None:
        """The claim that such a text is the mark of, or None."""
        words = (text or "").split()
        if len(words) != 3 or words[0] != _MARK:
            return None
        return cls(database=database, login=words[1], owner=words[2])


@attrs.frozen(kw_only=True)
class Found:
    """What a server has of a claim: `holder` is the login that has the database.

    None where there is no such database, and "" where it is marked by nobody.
    """

    holder: str | None
    has_login: bool


@attrs.frozen(kw_only=True)
class Holding:
    """Something on a server that carries our mark: a DATABASE or a LOGIN."""

    what: str
    claim: Claim


class Refused(ActuatorError):
    """A server did not do what was asked."""

    def __init__(self, server: str, what: str, why: str, code: ErrorCode) -> None:
        text = f"{server} did not {what}: {' '.join(why.split())[:_MOST]}"
        if _NOT_TRUSTED.search(why):
            code, text = ErrorCode.ERR_CONFIGURATION_PROBLEM, f"{text}; {_REMEDY}"
        super().__init__(text, codes=[code])


class Traffic:
    """At most so many requests a second to one server, for all workers together.

    As a client of the Kubernetes API does it: who comes too early waits, and never longer than it
    takes to serve one request of each worker. A second's worth may go at once.
    """

    def __init__(self, per_second: float) -> None:
        self._gap = 1 / per_second
        self._lock = threading.Lock()
        self._next = 0.0

    @contextmanager
    def request(self, what: str) -> Iterator[None]:
        """Around each request to the server; `what` says which, the same words for each object."""
        time.sleep(self._turn(time.monotonic()))
        yield

    def _turn(self, now: float) -> float:
        """In how many seconds a request of this moment may go."""
        with self._lock:
            self._next = max(self._next, now - 1) + self._gap
            return max(0.0, self._next - now)


class Server(Protocol):
    """A server on which the extension may make databases. All methods raise Refused."""

    scheme: str
    """Of URLs that lead to its databases."""

    endpoint: Endpoint

    def look(self, claim: Claim) -> Found:
        """What there is."""

    def provision(self, claim: Claim, password: str, found: Found, check: Check) -> None:
        """Afterwards database and login exist, and that login alone may use that database.

        `found` is what there was; a database of somebody else must not be given here.
        """

    def remove(self, claim: Claim, check: Check) -> None:
        """Afterwards neither is there. What is gone already, or is another's, is success."""

    def holdings(self) -> Sequence[Holding]:
        """All that carries our mark."""
