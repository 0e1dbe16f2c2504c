"""Our side, counting how often it touches a metric: on /metrics, beside what it counts with them.

`seconds_per_call` measures what each of these calls takes.
"""

from __future__ import annotations

import statistics
import timeit
from collections.abc import Callable

from ours import Noop
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics import MetricWrapperBase

from generic import Manager
from generic.metrics.values import RECONCILE_SECONDS

__all__ = ["CALLS", "FAMILY", "seconds_per_call"]

FAMILY = "bench_metric_calls"
CALLS: dict[str, tuple[type[MetricWrapperBase], str]] = {
    "labels": (MetricWrapperBase, "labels"),
    "inc of a counter": (Counter, "inc"),
    "inc of a gauge": (Gauge, "inc"),
    "set of a gauge": (Gauge, "set"),
    "observe": (Histogram, "observe"),
}
"""What a program does with prometheus-client's metrics, by name."""


def seconds_per_call() -> dict[str, float]:
    """The median of nine rounds."""
    registry = CollectorRegistry()
    counter = Counter("c", "-", ("a", "b"), registry=registry)
    gauge = Gauge("g", "-", registry=registry)
    histogram = Histogram("h", "-", buckets=RECONCILE_SECONDS, registry=registry)
    child = counter.labels("x", "y")
    calls: dict[str, Callable[[], object]] = {
        "labels": lambda: counter.labels("x", "y"),
        "inc of a counter": child.inc,
        "inc of a gauge": gauge.inc,
        "set of a gauge": lambda: gauge.set(1),
        "observe": lambda: histogram.observe(0.2),
    }
    number = 20_000
    return {
        name: statistics.median(timeit.repeat(call, number=number, repeat=9)) / number
        for name, call in calls.items()
    }


def _count(registry: CollectorRegistry) -> None:
    """From now on the registry says how often each was called."""
    total = Counter(FAMILY, "Calls, by what was called.", ("call",), registry=registry)
    for name, (cls, method) in CALLS.items():
        uncounted = total.labels(name)._value.inc  # noqa: SLF001 - below what is wrapped here
        _wrap(cls, method, uncounted)


def _wrap(cls: type[MetricWrapperBase], method: str, count: Callable[[float], None]) -> None:
    original = getattr(cls, method)

    def counted(self: MetricWrapperBase, *args: object, **kwargs: object) -> object:
        count(1)
        return original(self, *args, **kwargs)

    setattr(cls, method, counted)


if __name__ == "__main__":
    manager = Manager.from_args()
    manager.add(Noop(), type="bench")
    _count(manager.metrics.registry)
    manager.run()
