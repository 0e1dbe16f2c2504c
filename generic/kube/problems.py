"""ProblemLog: the problems of watches in the log, one line for equal ones of several kinds."""

import logging
import re
import threading

from actuator.errors import Forbidden
from generic.kube.timers import Timers

logger = logging.getLogger(__name__)

ABSENT = "the API server does not serve this kind: its CRD is not installed"
_REMEDIES = {
    ABSENT.partition(":")[0]: "install the CRD: `actuator crds` prints those of Gardener's kinds, "
    "`actuator crds MODULE:CLASS` that of your own",
    "forbidden": "grant the roles that `actuator rbac` prints",
}
"""By the text before the first colon of a problem."""
_TOGETHER = 1.0
"""Seconds in which equal problems are collected."""


def describe_problem(error: Exception, path: str) -> str:
    """Return the text of an error of a watch at `path`, equal for watches with the same problem."""
    text = str(error).removeprefix(f"GET {path}: ")
    if isinstance(error, Forbidden) and (user := re.search('User "[^"]*"', text)):
        return f"forbidden: {user[0]} cannot list or watch"
    return text


class ProblemLog:
    """Collects equal problems for a second; without `timers`, it logs each one at once."""

    def __init__(self, timers: Timers | None = None) -> None:
        self._timers = timers
        self._lock = threading.Lock()
        self._seen: dict[tuple[int, str], list[str]] = {}

    def say(self, level: int, resource: str, problem: str) -> None:
        """Log the problem of a resource."""
        with self._lock:
            resources = self._seen.setdefault((level, problem), [])
            is_first = not resources
            resources.append(resource)
        if self._timers is None:
            self._log(level, problem)
        elif is_first:
            self._timers.call_later(_TOGETHER, lambda: self._log(level, problem))

    def _log(self, level: int, problem: str) -> None:
        with self._lock:
            resources = sorted(self._seen.pop((level, problem), ()))
        if not resources:  # another thread has logged it
            return
        fields: dict[str, object] = {"resources": resources, "problem": problem}
        if remedy := _REMEDIES.get(problem.partition(":")[0]):
            fields["remedy"] = remedy
        text = "kind is not served" if problem == ABSENT else "watch ended"
        logger.log(level, text, extra={"fields": fields})
