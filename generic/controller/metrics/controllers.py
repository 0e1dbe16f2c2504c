"""The metrics of controllers: those of controller-runtime, and ours of operations and deletions."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import attrs
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from actuator.errors import ErrorCode
from generic.controller.metrics.exposition import Bounded
from generic.controller.metrics.queues import QueueMetrics
from generic.controller.metrics.values import (
    CALL_SECONDS,
    DELETION_SECONDS,
    FORCE_SECONDS,
    OPERATIONS,
    RECONCILE_SECONDS,
    Outcome,
    ReconcileResult,
    TryResult,
)

_NO_CODE = "none"
_CODES = (*(code.value for code in ErrorCode), _NO_CODE)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ControllerMetrics:
    """The metrics of one controller; get one from `Metrics.controller`."""

    queue: QueueMetrics
    _results: Mapping[ReconcileResult, Counter]
    _errors: Counter
    _seconds: Histogram
    _tries: Mapping[tuple[str, TryResult], Counter]
    _codes: Mapping[tuple[str, str], Counter]
    _calls: Mapping[str, Histogram]
    _deletions: Mapping[Outcome, Counter]
    _deletion_seconds: Mapping[Outcome, Histogram]
    _force_seconds: Histogram
    _over_budget: Counter
    panicked: Callable[[], None]
    """Count an unexpected exception: a bug."""
    timed_out: Callable[[], None]
    """Count a call that exceeded its deadline."""
    active: Callable[[int], None]
    """Change the number of workers with a request."""
    bypassed: Callable[[], None]
    """Count an object that was deleted before our cleanup finished."""
    status_not_written: Callable[[], None]
    """Count a status that the API server refused."""
    stripped: Callable[[str], None]
    """Count another owner's finalizer stripped from a seed object; with its plural.group."""
    orphaned: Callable[[str], None]
    """Count an Orphan recorded for an external resource of that type."""

    def reconciled(self, result: ReconcileResult, seconds: float) -> None:
        """Count a processed request."""
        self._results[result].inc()
        self._seconds.observe(seconds)
        if result is ReconcileResult.ERROR:
            self._errors.inc()

    def tried(self, operation: str, result: TryResult) -> None:
        """Count the result of an attempt at one of OPERATIONS."""
        self._tries[operation, result].inc()

    def erred(self, operation: str, codes: Collection[ErrorCode]) -> None:
        """Count a failed attempt once for each of its codes."""
        for code in codes or (_NO_CODE,):
            self._codes[operation, str(code)].inc()

    def called(self, operation: str, seconds: float) -> None:
        """Observe the duration of a call into the actuator."""
        self._calls[operation].observe(seconds)

    def deletion(self, outcome: Outcome) -> None:
        """Count the outcome of a pass over an object under deletion."""
        self._deletions[outcome].inc()

    def released(self, outcome: Outcome, seconds: float) -> None:
        """Observe the seconds from deletionTimestamp to our release; for final outcomes."""
        self.deletion(outcome)
        self._deletion_seconds[outcome].observe(max(seconds, 0.0))  # clocks differ

    def forced(self, seconds: float, *, over_budget: bool) -> None:
        """Observe the seconds from the detection of a force deletion to its end."""
        self._force_seconds.observe(seconds)
        if over_budget:
            self._over_budget.inc()


class ControllerFamilies:
    """The metric families with a label `controller`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, ("controller", *labels), registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(name, text, ("controller", *labels), registry=registry)

        def histogram(name: str, text: str, buckets: Sequence[float], *labels: str) -> Histogram:
            labels = ("controller", *labels)
            return Histogram(name, text, labels, buckets=buckets, registry=registry)

        runtime = "controller_runtime"
        self._reconciles = counter(
            f"{runtime}_reconcile_total", "Total number of reconciliations, by result.", "result"
        )
        self._errors = counter(
            f"{runtime}_reconcile_errors_total", "Total number of failed reconciliations."
        )
        self._terminal = counter(
            f"{runtime}_terminal_reconcile_errors_total",
            "Total number of reconciliations that failed without a retry.",
        )
        self._panics = counter(
            f"{runtime}_reconcile_panics_total",
            "Total number of unexpected exceptions in reconciliations.",
        )
        self._timeouts = counter(
            f"{runtime}_reconcile_timeouts_total",
            "Total number of calls that exceeded their deadline.",
        )
        self._seconds = histogram(
            f"{runtime}_reconcile_time_seconds", "Duration of a reconciliation.", RECONCILE_SECONDS
        )
        self._workers = gauge(f"{runtime}_max_concurrent_reconciles", "Number of workers.")
        self._active = gauge(
            f"{runtime}_active_workers", "Number of workers that reconcile an object."
        )
        self._info = gauge(
            "actuator_controller_info",
            "Kind, type and finalizer that a controller serves; always 1.",
            *("kind", "type", "finalizer"),
        )
        self._tries = counter(
            "actuator_operations_total",
            "Total number of attempts at operations.",
            "operation",
            "result",
        )
        self._codes = counter(
            "actuator_errors_total",
            "Total number of failed attempts at operations, by error code; counts each code.",
            *("operation", "code"),
        )
        self._calls = histogram(
            "actuator_operation_duration_seconds",
            "Duration of one call of the actuator.",
            CALL_SECONDS,
            "operation",
        )
        self._deletions = counter(
            "actuator_deletions_total",
            "Total number of reconciliations of terminating objects, by outcome.",
            *("kind", "outcome"),
        )
        self._deletion_seconds = histogram(
            "actuator_deletion_duration_seconds",
            "Time from the deletionTimestamp until the finalizer was removed.",
            DELETION_SECONDS,
            *("kind", "outcome"),
        )
        self._force_seconds = histogram(
            "actuator_force_deletion_duration_seconds",
            "Time from the observed force deletion until the finalizer was removed.",
            FORCE_SECONDS,
            "kind",
        )
        self._budget = gauge(
            "actuator_force_delete_budget_seconds",
            "Time budget of a force deletion; no sample without a budget.",
            "kind",
        )
        self._over_budget = counter(
            "actuator_force_deletions_over_budget_total",
            "Total number of force deletions that exceeded their budget and skipped force_delete.",
            "kind",
        )
        self._bypassed = counter(
            "actuator_deletions_bypassed_total",
            "Total number of finalizers removed externally before cleanup finished.",
            "kind",
        )
        self._unwritten = counter(
            "actuator_status_writes_refused_total",
            "Total number of statuses that the API server refused, even reduced to the error.",
        )
        self._orphaned = counter(
            "actuator_orphaned_resources_reported_total",
            "Total number of external resources recorded as Orphans, by type.",
            "resource_type",
        )
        self._stripped = counter(
            "actuator_seed_finalizers_stripped_total",
            "Total number of finalizers of other controllers removed from seed objects.",
            "resource",
        )

    def describe(
        self,
        name: str,
        kind: str,
        types: Sequence[str],
        finalizer: str,
        strips: Iterable[str],
        budget: float | None,
    ) -> None:
        """Set the info metric, the stripped resources at 0, and the force-delete budget.

        `strips` are plural.group, `budget` is in seconds.
        """
        for resource in strips:
            self._stripped.labels(name, resource)
        for type in types or ("",):
            self._info.labels(name, kind, type, finalizer).set(1)
        if budget is not None:
            self._budget.labels(name, kind).set(budget)

    def bind(self, name: str, kind: str, workers: int, queue: QueueMetrics) -> ControllerMetrics:
        """Return the metrics of one controller; all known children exist at 0."""
        self._workers.labels(name).set(workers)
        self._terminal.labels(name)
        types = Bounded()
        return ControllerMetrics(
            queue=queue,
            results={r: self._reconciles.labels(name, r.value) for r in ReconcileResult},
            errors=self._errors.labels(name),
            panicked=self._panics.labels(name).inc,
            timed_out=self._timeouts.labels(name).inc,
            seconds=self._seconds.labels(name),
            active=self._active.labels(name).inc,
            tries={
                (o, r): self._tries.labels(name, o, r.value) for o in OPERATIONS for r in TryResult
            },
            codes={(o, c): self._codes.labels(name, o, c) for o in OPERATIONS for c in _CODES},
            calls={o: self._calls.labels(name, o) for o in OPERATIONS},
            deletions={o: self._deletions.labels(name, kind, o.value) for o in Outcome},
            deletion_seconds={
                o: self._deletion_seconds.labels(name, kind, o.value) for o in Outcome if o.final
            },
            force_seconds=self._force_seconds.labels(name, kind),
            over_budget=self._over_budget.labels(name, kind),
            bypassed=self._bypassed.labels(name, kind).inc,
            status_not_written=lambda: self._unwritten.labels(name).inc(),
            stripped=lambda resource: self._stripped.labels(name, resource).inc(),
            orphaned=lambda value: self._orphaned.labels(name, types(value)).inc(),
        )
