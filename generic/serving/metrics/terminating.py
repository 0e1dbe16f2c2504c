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
from generic.serving.metrics.values import AGES, TerminatingState

_BY = ("controller", "kind")


class Terminating(Struct, frozen=True):
    """One object under deletion; `since` is its deletionTimestamp in seconds since 1970."""

    namespace: str
    name: str
    state: TerminatingState
    since: float


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
        for labels, source in self._sources:
            found = list(source())
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
        return [states, oldest, ages, *([single] if self._oldest else [])]


def _buckets(ages: Sequence[float]) -> list[tuple[str, float]]:
    """Return the cumulative number of objects up to each age bound."""
    counts = Counter(bisect_left(AGES, age) for age in ages)
    buckets = []
    total = 0
    for number, bound in enumerate((*map(float, AGES), "+Inf")):
        total += counts[number]
        buckets.append((str(bound), float(total)))
    return buckets
