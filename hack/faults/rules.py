"""Rules: how often a fault occurs, and the table of active faults.

Not here: the effects, which subclasses of `Rule` define: requests.py for the way to the API
server, actuators.py for calls of an actuator.
"""

import random
import threading
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Generic, TypeVar

import attrs

ANY = "*"


@attrs.frozen(kw_only=True)
class Rule:
    """How often a rule applies to its matches.

    The first `after` matches pass; each later match is hit with `probability`, decided by a random
    generator with `seed`; after `times` hits (0: no limit) all pass again.
    """

    after: int = 0
    times: int = 0
    probability: float = 1.0
    seed: int = 0


R = TypeVar("R", bound=Rule)


class Injection(Generic[R]):
    """A rule that is active until `remove()`. Safe to use from any thread."""

    def __init__(self, rule: R) -> None:
        self.rule = rule
        self._lock = threading.Lock()
        self._random = random.Random(rule.seed)
        self._matches = 0
        self._hits = 0
        self._removed = threading.Event()

    @property
    def hits(self) -> int:
        """The number of times the rule applied."""
        return self._hits

    @property
    def removed(self) -> bool:
        """Whether `remove` was called."""
        return self._removed.is_set()

    def remove(self) -> None:
        """Deactivate the rule and release waiting calls. Calling it again does nothing."""
        self._removed.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait at most `seconds` until it is removed; return whether it was."""
        return self._removed.wait(seconds)

    def strikes(self) -> bool:
        """Count one more match; return whether the rule applies to it."""
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
    """All active rules, in the order in which they were added."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: list[Injection[R]] = []

    def add(self, rule: R) -> Injection[R]:
        """Activate a rule."""
        injection = Injection(rule)
        with self._lock:
            self._all = [item for item in self._all if not item.removed] + [injection]
        return injection

    def pick(self, matches: Callable[[R], bool]) -> Injection[R] | None:
        """Return the first injection whose rule matches and applies this time."""
        for injection in self._all:  # replaced as a whole, never changed
            if matches(injection.rule) and injection.strikes():
                return injection
        return None

    def remove_all(self) -> None:
        """Deactivate all rules."""
        for injection in self._all:
            injection.remove()


def fits(text: str, pattern: str) -> bool:
    """Return whether a shell-style pattern matches, case-sensitively."""
    return pattern == ANY or fnmatchcase(text, pattern)
