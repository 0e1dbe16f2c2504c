"""The metrics of work queues, labelled with the controller's name twice, as in Go."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry

from generic.serving.metrics.exposition import Families, never_raising
from generic.serving.metrics.values import QUEUE_SECONDS


class QueueMetrics:
    """The metrics of one work queue."""

    def __init__(self, families: "QueueFamilies", name: str) -> None:
        f = families
        self.added = f.adds.labels(name, name).inc
        """Count a key that became ready."""
        self.retried = f.retries.labels(name, name).inc
        """Count a key requeued with a backoff."""
        self.waited = f.wait.labels(name, name).observe
        """Observe the seconds that a key was ready before a worker took it."""
        self.worked = f.work.labels(name, name).observe
        """Observe the seconds that a worker had a key."""
        self._depth = f.depth.labels(name, name, "")
        self._unfinished = f.unfinished.labels(name, name)
        self._longest = f.longest.labels(name, name)

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
        new = Families(registry, "name", "controller", prefix="workqueue_")
        self.adds = new.counter("adds_total", "Total number of keys that became ready.")
        self.retries = new.counter("retries_total", "Total number of keys requeued with a backoff.")
        self.wait = new.histogram(
            "queue_duration_seconds", "Time that a ready key waits for a worker.", QUEUE_SECONDS
        )
        self.work = new.histogram(
            "work_duration_seconds", "Time that a worker processes a key.", QUEUE_SECONDS
        )
        self.depth = new.gauge("depth", "Number of ready keys that wait for a worker.", "priority")
        self.unfinished = new.gauge(
            "unfinished_work_seconds", "Total processing time so far of the keys in progress."
        )
        self.longest = new.gauge(
            "longest_running_processor_seconds",
            "Processing time so far of the longest-running key.",
        )
