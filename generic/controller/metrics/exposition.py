"""Getting metrics out whatever happens: bounded label values, gauges and collectors that raise."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Metric
from prometheus_client.registry import Collector

logger = logging.getLogger(__name__)

MANY = 25
"""So many values of a label that authors make up have series of their own."""
TOO_MANY = "exceeded_cardinality_limit"
"""The value of all further ones, as the Kubernetes components call it."""


class WithoutCreated(Collector):
    """A registry without the `_created` series: one per counter, and nobody reads them.

    The client's own switch for this is global to the process.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterable[Metric]:
        """See Collector."""
        for family in self._registry.collect():
            if family.type in ("counter", "histogram", "summary"):
                created = f"{family.name}_created"
                family.samples = [s for s in family.samples if s.name != created]
            yield family


class Guarded(Collector):
    """A collector whose failure is counted and costs no other metric; `families` computes all."""

    def __init__(self, families: Callable[[], list[Metric]], errors: Counter) -> None:
        self._families = families
        self._errors = errors

    def collect(self) -> Iterable[Metric]:
        """See Collector."""
        try:
            return self._families()
        except Exception as error:  # whatever it is, the other metrics must get out
            logger.warning("a collector failed", extra={"fields": {"error": str(error)}})
            self._errors.inc()
            return []


class Bounded:
    """The values of a label that authors make up: the first `MANY` as they are, the rest as one."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def __call__(self, value: str) -> str:
        """What the label says for it."""
        if value not in self._known and len(self._known) >= MANY:
            return TOO_MANY
        self._known.add(value)
        return value


def never_raising(function: Callable[[], float]) -> Callable[[], float]:
    """The same, with NaN for what cannot be read."""

    def value() -> float:
        try:
            return float(function())
        except Exception as error:  # whatever it is, the other metrics must get out
            logger.warning("a metric cannot be read", extra={"fields": {"error": str(error)}})
            return math.nan

    return value
