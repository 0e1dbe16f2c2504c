"""The calls of prometheus-client's methods: their number, shown by /metrics, and their duration."""

import statistics
import timeit
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics import MetricWrapperBase

from generic.serving.metrics.values import RECONCILE_SECONDS

FAMILY = "bench_metric_calls"
_WRAPPED = {
    "labels": (MetricWrapperBase, "labels"),
    "inc of a counter": (Counter, "inc"),
    "inc of a gauge": (Gauge, "inc"),
    "set of a gauge": (Gauge, "set"),
    "observe": (Histogram, "observe"),
}
"""Operations on metrics, by name: class and method."""
_NUMBER = 20_000
_ROUNDS = 9


def seconds_per_call() -> dict[str, float]:
    """Return the median seconds of each operation."""
    counter = Counter("c", "-", ("a", "b"), registry=None)
    gauge = Gauge("g", "-", registry=None)
    histogram = Histogram("h", "-", buckets=RECONCILE_SECONDS, registry=None)
    calls: dict[str, Callable[[], object]] = {
        "labels": lambda: counter.labels("x", "y"),
        "inc of a counter": counter.labels("x", "y").inc,
        "inc of a gauge": gauge.inc,
        "set of a gauge": lambda: gauge.set(1),
        "observe": lambda: histogram.observe(0.2),
    }
    return {
        name: statistics.median(timeit.repeat(call, number=_NUMBER, repeat=_ROUNDS)) / _NUMBER
        for name, call in calls.items()
    }


def count_calls(registry: CollectorRegistry) -> None:
    """Count the calls of each operation in the registry from now on."""
    total = Counter(FAMILY, "Calls, by what was called.", ("call",), registry=registry)
    children = {name: total.labels(name) for name in _WRAPPED}
    for name, (cls, method) in _WRAPPED.items():
        count = children[name]._value.inc  # noqa: SLF001 - not itself wrapped
        setattr(cls, method, _counted(getattr(cls, method), count))


def _counted(call: Callable[..., object], count: Callable[[float], None]) -> Callable[..., object]:
    def counted(*args: object, **kwargs: object) -> object:
        count(1)
        return call(*args, **kwargs)

    return counted
