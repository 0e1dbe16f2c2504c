"""Getting metrics out whatever happens: bounded label values, gauges and collectors that raise."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Metric
from prometheus_client.registry import Collector

__all__ = ["Guarded", "WithoutCreated", "bounded", "never_raising"]

logger = logging.getLogger(__name__)

_LABEL_VALUES = 25
"""Of a label whose values authors make up."""
_FURTHER = "exceeded_cardinality_limit"
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


def bounded(labelled: Callable[[str], Counter]) -> Callable[[str], Counter]:
    """The same for the first label values; what comes after those shares one."""
    known: set[str] = set()

    def of(value: str) -> Counter:
        if value not in known and len(known) >= _LABEL_VALUES:
            return labelled(_FURTHER)
        known.add(value)
        return labelled(value)

    return of


def never_raising(function: Callable[[], float]) -> Callable[[], float]:
    """The same, with NaN for what cannot be read."""

    def value() -> float:
        try:
            return float(function())
        except Exception as error:  # whatever it is, the other metrics must get out
            logger.warning("a metric cannot be read", extra={"fields": {"error": str(error)}})
            return math.nan

    return value
