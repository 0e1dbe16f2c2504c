"""Families of metrics; bounded label values; gauges and collectors that may raise."""

import logging
import math
from collections.abc import Callable, Iterable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from actuator.interface import Clock

logger = logging.getLogger(__name__)

MANY = 25
"""Maximum values of an author-defined label that have their own series."""
_LENGTH = 128
TOO_MANY = "exceeded_cardinality_limit"
"""The label value of all others, as in the Kubernetes components."""


class Families:
    """Makes metric families with common labels in one registry; `prefix` precedes each name."""

    def __init__(self, registry: CollectorRegistry, *labels: str, prefix: str = "") -> None:
        self._registry = registry
        self._labels = labels
        self._prefix = prefix

    def counter(self, name: str, text: str, *labels: str) -> Counter:
        """Return a new counter; `labels` follow the common ones."""
        labels = (*self._labels, *labels)
        return Counter(f"{self._prefix}{name}", text, labels, registry=self._registry)

    def gauge(self, name: str, text: str, *labels: str) -> Gauge:
        """Return a new gauge."""
        labels = (*self._labels, *labels)
        return Gauge(f"{self._prefix}{name}", text, labels, registry=self._registry)

    def histogram(self, name: str, text: str, buckets: Sequence[float], *labels: str) -> Histogram:
        """Return a new histogram with these upper bounds."""
        labels = (*self._labels, *labels)
        name = f"{self._prefix}{name}"
        return Histogram(name, text, labels, buckets=buckets, registry=self._registry)


class Exposition(Collector):
    """The metrics of a registry as Prometheus reads them.

    Each series has the label `extension`, so that rules need no name of a job. A counter is 0 for
    `zero_seconds` after it was first exposed: Prometheus counts only increments of a value that
    it has read. The unused `_created` series are omitted; the switch of the Prometheus client is
    global to the process.
    """

    def __init__(
        self, registry: CollectorRegistry, clock: Clock, extension: str, zero_seconds: float
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._extension = extension
        self._zero_seconds = zero_seconds
        self._first: dict[int, float] = {}
        """When each counter was first exposed, by the hash of its name and label values."""

    def collect(self) -> Iterable[Metric]:
        """See Collector."""
        now = self._clock.monotonic()
        for family in self._registry.collect():
            if family.type in ("counter", "histogram", "summary"):
                created = f"{family.name}_created"
                counted = [s for s in family.samples if s.name != created]
                family.samples = [self._settled(sample, now) for sample in counted]
            if self._extension:
                named = {"extension": self._extension}
                family.samples = [s._replace(labels={**s.labels, **named}) for s in family.samples]
            yield family

    def _settled(self, sample: Sample, now: float) -> Sample:
        """Return the sample, with 0 as long as its series is new."""
        key = hash((sample.name, *sample.labels.values()))
        is_new = now - self._first.setdefault(key, now) < self._zero_seconds
        return sample._replace(value=0.0) if is_new else sample


class GuardedCollector(Collector):
    """A collector whose failure is counted and affects no other metric; `families` computes all."""

    def __init__(self, families: Callable[[], list[Metric]], errors: Counter) -> None:
        self._families = families
        self._errors = errors

    def collect(self) -> Iterable[Metric]:
        """See Collector."""
        try:
            return self._families()
        except Exception as error:  # any error: the other metrics must be exposed
            logger.warning("metrics collector failed", extra={"fields": {"error": str(error)}})
            self._errors.inc()
            return []


class Bounded:
    """Label values of authors and tenants: the first `MANY` as they are, others as `TOO_MANY`."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def __call__(self, value: str) -> str:
        """Return the label value, of at most `_LENGTH` characters."""
        value = value[:_LENGTH]
        if value not in self._known and len(self._known) >= MANY:
            return TOO_MANY
        self._known.add(value)
        return value


def never_raising(function: Callable[[], float]) -> Callable[[], float]:
    """Return the function with NaN for a value that cannot be read."""

    def value() -> float:
        try:
            return float(function())
        except Exception as error:  # any error: the other metrics must be exposed
            logger.warning("metric read failed", extra={"fields": {"error": str(error)}})
            return math.nan

    return value
