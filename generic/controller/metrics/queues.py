"""The metrics of work queues, labelled with the controller's name twice, as in Go."""

from collections.abc import Callable

import attrs
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from generic.controller.metrics.exposition import never_raising
from generic.controller.metrics.values import QUEUE_SECONDS


@attrs.frozen(eq=False, repr=False)
class QueueMetrics:
    """The metrics of one work queue."""

    added: Callable[[], None]
    """Count a key that became ready."""
    retried: Callable[[], None]
    """Count a key requeued with a backoff."""
    waited: Callable[[float], None]
    """Observe the seconds that a key was ready before a worker took it."""
    worked: Callable[[float], None]
    """Observe the seconds that a worker had a key."""
    _depth: Gauge
    _unfinished: Gauge
    _longest: Gauge

    def watch(
        self,
        depth: Callable[[], int],
        unfinished: Callable[[], float],
        longest: Callable[[], float],
    ) -> None:
        """Call these at every scrape; one that raises shows as NaN and affects no other."""
        self._depth.set_function(never_raising(depth))
        self._unfinished.set_function(never_raising(unfinished))
        self._longest.set_function(never_raising(longest))


class QueueFamilies:
    """The metric families of all queues."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ("name", "controller")

        def counter(name: str, text: str) -> Counter:
            return Counter(f"workqueue_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str, *more: str) -> Gauge:
            return Gauge(f"workqueue_{name}", text, (*labels, *more), registry=registry)

        def histogram(name: str, text: str) -> Histogram:
            return Histogram(
                f"workqueue_{name}", text, labels, buckets=QUEUE_SECONDS, registry=registry
            )

        self._adds = counter("adds_total", "Total number of keys that became ready.")
        self._retries = counter("retries_total", "Total number of keys requeued with a backoff.")
        self._wait = histogram(
            "queue_duration_seconds", "Time that a ready key waits for a worker."
        )
        self._work = histogram("work_duration_seconds", "Time that a worker processes a key.")
        self._depth = gauge("depth", "Number of ready keys that wait for a worker.", "priority")
        self._unfinished = gauge(
            "unfinished_work_seconds", "Total processing time so far of the keys in progress."
        )
        self._longest = gauge(
            "longest_running_processor_seconds",
            "Processing time so far of the longest-running key.",
        )

    def bind(self, name: str) -> QueueMetrics:
        """Return the metrics of one queue."""
        return QueueMetrics(
            added=self._adds.labels(name, name).inc,
            retried=self._retries.labels(name, name).inc,
            waited=self._wait.labels(name, name).observe,
            worked=self._work.labels(name, name).observe,
            depth=self._depth.labels(name, name, ""),
            unfinished=self._unfinished.labels(name, name),
            longest=self._longest.labels(name, name),
        )
