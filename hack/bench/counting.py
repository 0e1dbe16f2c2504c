"""Our manager with wrapped prometheus-client methods: /metrics shows the number of their calls.

`seconds_per_call` measures the duration of each of these calls.
"""

import statistics
import timeit
from collections.abc import Callable
from functools import partial

from ours import Noop
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics import MetricWrapperBase

from generic import Manager
from generic.controller.metrics.values import RECONCILE_SECONDS

FAMILY = "bench_metric_calls"
WRAPPED: dict[str, tuple[type[MetricWrapperBase], str, tuple[object, ...]]] = {
    "labels": (MetricWrapperBase, "labels", ("x", "y")),
    "inc of a counter": (Counter, "inc", ()),
    "inc of a gauge": (Gauge, "inc", ()),
    "set of a gauge": (Gauge, "set", (1,)),
    "observe": (Histogram, "observe", (0.2,)),
}
"""Operations on metrics, by name: class, method, and arguments for measuring it."""
_NUMBER, _ROUNDS = 20_000, 9


def seconds_per_call() -> dict[str, float]:
    """Return the median seconds of each operation."""
    registry = CollectorRegistry()
    family = Counter("c", "-", ("a", "b"), registry=registry)
    metrics = {
        MetricWrapperBase: family,
        Counter: family.labels("x", "y"),
        Gauge: Gauge("g", "-", registry=registry),
        Histogram: Histogram("h", "-", buckets=RECONCILE_SECONDS, registry=registry),
    }
    seconds = {}
    for name, (cls, method, arguments) in WRAPPED.items():
        call = partial(getattr(metrics[cls], method), *arguments)
        rounds = timeit.repeat(call, number=_NUMBER, repeat=_ROUNDS)
        seconds[name] = statistics.median(rounds) / _NUMBER
    return seconds


def _count(registry: CollectorRegistry) -> None:
    """Count the calls of each operation in the registry from now on."""
    total = Counter(FAMILY, "Calls, by what was called.", ("call",), registry=registry)
    children = {name: total.labels(name) for name in WRAPPED}
    for name, (cls, method, _) in WRAPPED.items():
        count = children[name]._value.inc  # noqa: SLF001 - not itself wrapped
        setattr(cls, method, _counted(getattr(cls, method), count))


def _counted(call: Callable[..., object], count: Callable[[float], None]) -> Callable[..., object]:
    def counted(*args: object, **kwargs: object) -> object:
        count(1)
        return call(*args, **kwargs)

    return counted


if __name__ == "__main__":
    manager = Manager.from_args()
    manager.add(Noop(), type="bench")
    _count(manager.metrics.registry)
    manager.run()
