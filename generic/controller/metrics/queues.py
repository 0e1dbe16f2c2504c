"""The metrics of work queues. A queue has its controller's name, twice, as in Go."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from generic.controller.metrics.exposition import never_raising
from generic.controller.metrics.values import QUEUE_SECONDS


@attrs.frozen
class QueueMetrics:
    """The metrics of one work queue."""

    _adds: Counter
    _retries: Counter
    _wait: Histogram
    _work: Histogram
    _depth: Gauge
    _unfinished: Gauge
    _longest: Gauge

    def added(self) -> None:
        """A key became ready that was not."""
        self._adds.inc()

    def retried(self) -> None:
        """A key was put back with a backoff."""
        self._retries.inc()

    def waited(self, seconds: float) -> None:
        """A worker took a key that had been ready for so long."""
        self._wait.observe(seconds)

    def worked(self, seconds: float) -> None:
        """A worker had a key for so long."""
        self._work.observe(seconds)

    def watch(
        self,
        depth: Callable[[], int],
        unfinished: Callable[[], float],
        longest: Callable[[], float],
    ) -> None:
        """Asks these at every scrape; one that raises shows as NaN and breaks nothing."""
        self._depth.set_function(never_raising(depth))
        self._unfinished.set_function(never_raising(unfinished))
        self._longest.set_function(never_raising(longest))


class QueueFamilies:
    """The families of all queues."""

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

        self._adds = counter("adds_total", "Keys that became ready.")
        self._retries = counter("retries_total", "Keys put back with a backoff.")
        self._wait = histogram("queue_duration_seconds", "Time a key is ready before its turn.")
        self._work = histogram("work_duration_seconds", "Time a worker has a key.")
        self._depth = gauge("depth", "Keys that wait for a worker.", "priority")
        self._unfinished = gauge("unfinished_work_seconds", "Time spent on keys not done, summed.")
        self._longest = gauge(
            "longest_running_processor_seconds", "Time spent on the key that takes longest."
        )

    def bind(self, name: str) -> QueueMetrics:
        """Those of one queue."""
        return QueueMetrics(
            adds=self._adds.labels(name, name),
            retries=self._retries.labels(name, name),
            wait=self._wait.labels(name, name),
            work=self._work.labels(name, name),
            depth=self._depth.labels(name, name, ""),
            unfinished=self._unfinished.labels(name, name),
            longest=self._longest.labels(name, name),
        )
