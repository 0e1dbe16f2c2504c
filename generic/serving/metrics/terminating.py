"""Metrics of objects under deletion, read from the cache at the scrape: count, state, age.

Only these metrics show blocked deletions: counters do not change for them. A series ends with the
last object that it counts.
"""

import heapq
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from prometheus_client import Metric
from prometheus_client.core import GaugeHistogramMetricFamily, GaugeMetricFamily

from actuator.interface import Clock
from generic.serving.metrics.exposition import Bounded
from generic.serving.metrics.values import AGES, TerminatingState

STUCK_SECONDS = 3600.0
"""Age from which a deletion is stuck: retries are at most a minute apart."""
_NO_CAUSE = "none"
_BY = ("controller", "kind")


class Terminating(Struct, frozen=True):
    """One object under deletion; `since` is its deletionTimestamp in seconds since 1970."""

    namespace: str
    name: str
    state: TerminatingState
    since: float
    cause: str = ""
    """Gardener's error code, or the reason that blocks the deletion; "" if it does not fail."""


Source = Callable[[], Iterable[Terminating]]
"""Return the objects of one controller now under deletion; none while another process leads."""


class TerminatingObjects:
    """The metric families of the objects under deletion of all controllers.

    The `oldest` objects of each controller have a series of their own: none by default, since
    names are unbounded.
    """

    def __init__(self, clock: Clock, oldest: int = 0) -> None:
        self._clock = clock
        self._oldest = oldest
        self._sources: list[tuple[tuple[str, str], Source]] = []
        self._bounded = Bounded()

    def add(self, controller: str, kind: str, source: Source) -> None:
        """Add the objects of that controller from now on."""
        self._sources.append(((controller, kind), source))

    def families(self) -> list[Metric]:
        """Return all families with their current values."""
        states = GaugeMetricFamily(
            "actuator_terminating_objects",
            "Number of terminating objects, by state.",
            labels=(*_BY, "state"),
        )
        oldest = GaugeMetricFamily(
            "actuator_terminating_oldest_deletion_timestamp_seconds",
            "Earliest deletionTimestamp of the terminating objects.",
            labels=_BY,
        )
        ages = GaugeHistogramMetricFamily(
            "actuator_terminating_age_seconds",
            "Time since the deletionTimestamp of the terminating objects.",
            labels=_BY,
        )
        single = GaugeMetricFamily(
            "actuator_terminating_object_deletion_timestamp_seconds",
            "deletionTimestamp of each of the oldest terminating objects.",
            labels=(*_BY, "namespace", "name", "state"),
        )
        now = self._clock.now().timestamp()
        everything: list[Terminating] = []
        for labels, source in self._sources:
            found = list(source())
            everything += found
            counts = Counter(item.state for item in found)
            for state in TerminatingState:
                states.add_metric((*labels, state.value), counts[state])
            if found:
                oldest.add_metric(labels, min(item.since for item in found))
            passed = [max(now - item.since, 0.0) for item in found]
            ages.add_metric(labels, _buckets(passed), gsum_value=sum(passed))
            for item in heapq.nsmallest(self._oldest, found, key=lambda item: item.since):
                named = (*labels, item.namespace, item.name, item.state.value)
                single.add_metric(named, item.since)
        stuck = self._stuck(everything, now)
        return [states, oldest, ages, stuck, *([single] if self._oldest else [])]

    def _stuck(self, everything: Iterable[Terminating], now: float) -> Metric:
        """Return the number of stuck shoots by cause; each counts once, whatever is stuck in it."""
        family = GaugeMetricFamily(
            "actuator_stuck_shoots",
            "Number of shoots, or objects without a shoot, whose deletion is stuck, by cause.",
            labels=("cause",),
        )
        causes: dict[str, tuple[int, float, str]] = {}
        for item in everything:
            if is_stuck(item, now):
                place = item.namespace or item.name
                candidate = _cause(item)
                causes[place] = min(candidate, causes.get(place, candidate))
        counts = Counter(self._bounded(cause) for _rank, _since, cause in causes.values())
        for cause in {_NO_CAUSE: 0} | counts:
            family.add_metric((cause,), counts[cause])
        return family


def is_stuck(item: Terminating, now: float) -> bool:
    """Whether its deletion is given up here, or has taken an hour.

    Gardener itself gave up the shoots of skipped objects, or migrates them.
    """
    if item.state is TerminatingState.SKIPPED:
        return False
    return item.state is TerminatingState.GAVE_UP or now - item.since > STUCK_SECONDS


def _cause(item: Terminating) -> tuple[int, float, str]:
    """Return the rank, age and text of its cause; the least explains a shoot.

    Gardener's codes come first, and errors before waiting: objects that wait usually wait for one
    that fails.
    """
    if item.state is TerminatingState.FOREIGN_FINALIZER:
        return (2, item.since, "ForeignFinalizer")
    if item.cause:
        return (0 if item.cause.startswith("ERR_") else 1, item.since, item.cause)
    return (3, item.since, _NO_CAUSE)


def _buckets(ages: Sequence[float]) -> list[tuple[str, float]]:
    """Return the cumulative number of objects up to each age bound."""
    counts = Counter(bisect_left(AGES, age) for age in ages)
    buckets = []
    total = 0
    for number, bound in enumerate((*map(float, AGES), "+Inf")):
        total += counts[number]
        buckets.append((str(bound), float(total)))
    return buckets
