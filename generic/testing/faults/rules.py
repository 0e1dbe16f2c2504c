"""Rules: how often something goes wrong, and the table of what is to go wrong right now.

What goes wrong, and where, is the business of those who derive from `Rule`: requests.py for the
way to the API server, actuators.py for calls into an actuator.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Generic, TypeVar

import attrs

ANY = "*"


@attrs.frozen(kw_only=True)
class Rule:
    """How often a rule applies to what it matches.

    The first `after` matches pass; of the rest each is hit with `probability`, decided by a
    generator that starts from `seed`; after `times` hits (0: no limit) all pass again.
    """

    after: int = 0
    times: int = 0
    probability: float = 1.0
    seed: int = 0


R = TypeVar("R", bound=Rule)


class Injection(Generic[R]):
    """A rule that is in force until `remove()`. Safe to use from any thread."""

    def __init__(self, rule: R) -> None:
        self.rule = rule
        self._lock = threading.Lock()
        self._random = random.Random(rule.seed)
        self._matches = 0
        self._hits = 0
        self._removed = threading.Event()

    @property
    def hits(self) -> int:
        """How often it applied."""
        return self._hits

    @property
    def removed(self) -> bool:
        """Whether it is over."""
        return self._removed.is_set()

    def remove(self) -> None:
        """End it, and release what it holds up. Calling it again does nothing."""
        self._removed.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is removed, at most `seconds`; whether it was."""
        return self._removed.wait(seconds)

    def strikes(self) -> bool:
        """Whether it applies to one more match."""
        rule = self.rule
        with self._lock:
            if self.removed or (rule.times and self._hits >= rule.times):
                return False
            self._matches += 1
            if self._matches <= rule.after or self._random.random() >= rule.probability:
                return False
            self._hits += 1
            return True


class Injections(Generic[R]):
    """All rules in force; the one that was added first is asked first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: list[Injection[R]] = []

    def add(self, rule: R) -> Injection[R]:
        """Put a rule in force."""
        injection = Injection(rule)
        with self._lock:
            self._all = [one for one in self._all if not one.removed] + [injection]
        return injection

    def pick(self, matches: Callable[[R], bool]) -> Injection[R] | None:
        """The first whose rule matches and applies this time."""
        for injection in self._all:  # replaced as a whole, never changed
            if matches(injection.rule) and injection.strikes():
                return injection
        return None

    def remove_all(self) -> None:
        """End all of them."""
        for injection in self._all:
            injection.remove()


def fits(text: str, pattern: str) -> bool:
    """Whether a shell-style pattern matches, upper and lower case told apart."""
    return pattern == ANY or fnmatchcase(text, pattern)
