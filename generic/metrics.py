"""What a manager counts, and how it is exposed to Prometheus.

Machinery metrics have the exact names and labels of controller-runtime and client-go, so that
dashboards and alerts made for those work unchanged. Deletions are ours: each pass over an object
under deletion is counted by how it ended, so nothing has to be remembered between passes.

Every child that is known when a controller registers exists from then on, at 0: a counter born
at 1 is invisible to `increase()`. (Relists have theirs from an informer's first list on.)

Not here yet: operations, errors by code, deletion durations, gauges of the objects under
deletion, build and controller info. Left out for good: `go_*` (this is no Go program),
`rest_client_request_duration_seconds` (controller-runtime switched it off as well), and
`leader_election_slowpath_total` (which it declares but never registers).

No global registry: each Metrics has its own, and two in one process do not meet.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable
from enum import StrEnum

import attrs
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.registry import Collector

__all__ = [
    "ControllerMetrics",
    "Metrics",
    "Outcome",
    "QueueMetrics",
    "ReconcileResult",
    "RelistReason",
]

logger = logging.getLogger(__name__)

# controller-runtime's bounds of controller_runtime_reconcile_time_seconds.
_RECONCILE_SECONDS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8),
    *(0.9, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50),
    60,
)
# Not client-go's: with a bound per decade nobody can tell a P99. Dashboards depend on names only.
_QUEUE_SECONDS = (
    *(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1000),
)


_LABEL_VALUES = 25
"""Of a label whose values authors make up."""


class ReconcileResult(StrEnum):
    """How controller-runtime calls the ends of a reconcile."""

    SUCCESS = "success"
    ERROR = "error"
    REQUEUE = "requeue"
    REQUEUE_AFTER = "requeue_after"


class Outcome(StrEnum):
    """How one pass over an object under deletion ended.

    Counted after the API server acknowledged what the outcome says.
    """

    DELETED = "deleted"
    FORCE_DELETED = "force_deleted"
    ORPHANED = "orphaned"
    """Released although something outside may remain; wins over the two above."""
    FAILED = "failed"
    GAVE_UP = "gave_up"
    SKIPPED = "skipped"

    @property
    def final(self) -> bool:
        """Whether our finalizer came off: at most once for each object."""
        return self in _FINAL


_FINAL = frozenset({Outcome.DELETED, Outcome.FORCE_DELETED, Outcome.ORPHANED})


class RelistReason(StrEnum):
    """Why an informer listed everything: the first time, after a 410, or after another error."""

    INITIAL = "initial"
    EXPIRED = "expired"
    ERROR = "error"


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
        self._depth.set_function(_never_raising(depth))
        self._unfinished.set_function(_never_raising(unfinished))
        self._longest.set_function(_never_raising(longest))


@attrs.frozen
class ControllerMetrics:
    """The metrics of one controller; get one from `Metrics.controller`."""

    queue: QueueMetrics
    _results: dict[ReconcileResult, Counter]
    _errors: Counter
    _panics: Counter
    _timeouts: Counter
    _seconds: Histogram
    _active: Gauge
    _deletions: dict[Outcome, Counter]
    _bypassed: Counter
    _stripped: Callable[[str], Counter]
    _orphaned: Callable[[str], Counter]

    def reconciled(self, result: ReconcileResult, seconds: float) -> None:
        """A worker is done with a request."""
        self._results[result].inc()
        self._seconds.observe(seconds)
        if result is ReconcileResult.ERROR:
            self._errors.inc()

    def panicked(self) -> None:
        """An exception that nobody raised on purpose came out: a bug."""
        self._panics.inc()

    def timed_out(self) -> None:
        """A call ran into its deadline."""
        self._timeouts.inc()

    def active(self, delta: int) -> None:
        """So many workers more have, or fewer no longer have, a request."""
        self._active.inc(delta)

    def deletion(self, outcome: Outcome) -> None:
        """A pass over an object under deletion ended like this."""
        self._deletions[outcome].inc()

    def bypassed(self) -> None:
        """An object vanished while our cleanup was unfinished."""
        self._bypassed.inc()

    def orphaned(self, resource_type: str) -> None:
        """It is on record that something of that type may be left outside."""
        self._orphaned(resource_type).inc()

    def stripped(self, resource: str) -> None:
        """Another owner's finalizer was taken off a seed object; `resource` is plural.group."""
        self._stripped(resource).inc()


class Metrics:
    """The metrics of one manager, in a registry where authors may register theirs too."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry(auto_describe=True)
        ProcessCollector(registry=self.registry)
        self._controllers = _ControllerFamilies(self.registry)
        self._queues = _QueueFamilies(self.registry)
        self._requests = Counter(
            "rest_client_requests_total",
            "Requests to the API server, by status code, method and host.",
            ("code", "method", "host"),
            registry=self.registry,
        )
        self._leader = Gauge(
            "leader_election_master_status",
            "Whether this process holds the lease: 1, or 0.",
            ("name",),
            registry=self.registry,
        )
        self._relists = Counter(
            "actuator_informer_relists_total",
            "How often an informer listed all objects, and why.",
            ("kind", "reason"),
            registry=self.registry,
        )

    def controller(self, name: str, kind: str, workers: int) -> ControllerMetrics:
        """Registers a controller: everything known of it exists from now on, at 0."""
        return self._controllers.bind(name, kind, workers, self._queues.bind(name))

    def request(self, method: str, host: str, code: str) -> None:
        """A request to the API server ended; `code` is "<error>" where no answer came."""
        self._requests.labels(code, method, host).inc()

    def leader(self, name: str, leading: bool) -> None:
        """Whether this process leads by the Lease of that name."""
        self._leader.labels(name).set(int(leading))

    def relisted(self, kind: str, reason: str) -> None:
        """An informer listed everything. Raises ValueError for no RelistReason."""
        for known in RelistReason:
            self._relists.labels(kind, known.value)
        self._relists.labels(kind, RelistReason(reason).value).inc()

    def total(self, name: str, by: str, **labels: str) -> dict[str, int]:
        """The samples of a counter with these labels, summed up by one label."""
        sums: dict[str, int] = {}
        for family in self.registry.collect():
            for sample in family.samples:
                if sample.name == name and labels.items() <= sample.labels.items():
                    key = sample.labels[by]
                    sums[key] = sums.get(key, 0) + int(sample.value)
        return sums

    def expose(self) -> tuple[bytes, str]:
        """The body and the content type of an answer to Prometheus."""
        return generate_latest(_WithoutCreated(self.registry)), CONTENT_TYPE_LATEST


class _ControllerFamilies:
    """The families with a label `controller`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, ("controller", *labels), registry=registry)

        prefix = "controller_runtime"
        self._reconciles = counter(f"{prefix}_reconcile_total", "Reconciles by result.", "result")
        self._errors = counter(f"{prefix}_reconcile_errors_total", "Reconciles that failed.")
        self._terminal = counter(
            f"{prefix}_terminal_reconcile_errors_total", "Reconciles that failed for good."
        )
        self._panics = counter(f"{prefix}_reconcile_panics_total", "Unexpected exceptions.")
        self._timeouts = counter(f"{prefix}_reconcile_timeouts_total", "Calls out of time.")
        self._seconds = Histogram(
            f"{prefix}_reconcile_time_seconds",
            "Time of a reconcile.",
            ("controller",),
            buckets=_RECONCILE_SECONDS,
            registry=registry,
        )
        self._workers = Gauge(
            f"{prefix}_max_concurrent_reconciles", "Workers.", ("controller",), registry=registry
        )
        self._active = Gauge(
            f"{prefix}_active_workers", "Workers at work.", ("controller",), registry=registry
        )
        self._deletions = counter(
            "actuator_deletions_total",
            "Passes over objects under deletion, by how they ended.",
            "kind",
            "outcome",
        )
        self._bypassed = counter(
            "actuator_deletions_bypassed_total",
            "Objects that vanished while our cleanup was unfinished.",
            "kind",
        )
        self._orphaned = counter(
            "actuator_orphaned_resources_reported_total",
            "Things that may be left outside the seed, by type.",
            "resource_type",
        )
        self._stripped = counter(
            "actuator_seed_finalizers_stripped_total",
            "Finalizers of other owners that were taken off seed objects.",
            "resource",
        )

    def bind(self, name: str, kind: str, workers: int, queue: QueueMetrics) -> ControllerMetrics:
        self._workers.labels(name).set(workers)
        self._terminal.labels(name)
        return ControllerMetrics(
            queue=queue,
            results={r: self._reconciles.labels(name, r.value) for r in ReconcileResult},
            errors=self._errors.labels(name),
            panics=self._panics.labels(name),
            timeouts=self._timeouts.labels(name),
            seconds=self._seconds.labels(name),
            active=self._active.labels(name),
            deletions={o: self._deletions.labels(name, kind, o.value) for o in Outcome},
            bypassed=self._bypassed.labels(name, kind),
            stripped=lambda resource: self._stripped.labels(name, resource),
            orphaned=_bounded(lambda value: self._orphaned.labels(name, value)),
        )


class _QueueFamilies:
    """The families of work queues. A queue has its controller's name, twice, as in Go."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ("name", "controller")

        def counter(name: str, text: str) -> Counter:
            return Counter(f"workqueue_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str, *more: str) -> Gauge:
            return Gauge(f"workqueue_{name}", text, (*labels, *more), registry=registry)

        def histogram(name: str, text: str) -> Histogram:
            return Histogram(
                f"workqueue_{name}", text, labels, buckets=_QUEUE_SECONDS, registry=registry
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
        return QueueMetrics(
            adds=self._adds.labels(name, name),
            retries=self._retries.labels(name, name),
            wait=self._wait.labels(name, name),
            work=self._work.labels(name, name),
            depth=self._depth.labels(name, name, ""),
            unfinished=self._unfinished.labels(name, name),
            longest=self._longest.labels(name, name),
        )


class _WithoutCreated(Collector):
    """A registry without the `_created` series: one per counter, and nobody reads them.

    The client's own switch for this is global to the process.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterable[Metric]:
        for family in self._registry.collect():
            if family.type in ("counter", "histogram", "summary"):
                created = f"{family.name}_created"
                family.samples = [s for s in family.samples if s.name != created]
            yield family


def _bounded(labelled: Callable[[str], Counter]) -> Callable[[str], Counter]:
    """The same for the first label values; what comes after those shares one."""
    known: set[str] = set()

    def bounded(value: str) -> Counter:
        if value not in known and len(known) >= _LABEL_VALUES:
            return labelled("exceeded_cardinality_limit")
        known.add(value)
        return labelled(value)

    return bounded


def _never_raising(function: Callable[[], float]) -> Callable[[], float]:
    def value() -> float:
        try:
            return float(function())
        except Exception as error:  # whatever it is, the other metrics must get out
            logger.warning("a metric cannot be read", extra={"fields": {"error": str(error)}})
            return math.nan

    return value
