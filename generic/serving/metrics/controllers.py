"""The metrics of controllers: those of controller-runtime, and ours of operations and deletions."""

from collections.abc import Collection, Iterable, Sequence

from prometheus_client import CollectorRegistry

from actuator.errors import ErrorCode
from generic.serving.metrics import values
from generic.serving.metrics.exposition import Bounded, Families
from generic.serving.metrics.queues import QueueMetrics

_NO_CODE = "none"
_CODES = (*(code.value for code in ErrorCode), _NO_CODE)


class ControllerMetrics:
    """The metrics of one controller; get one from `Metrics.controller`."""

    def __init__(
        self, families: "ControllerFamilies", name: str, kind: str, queue: QueueMetrics
    ) -> None:
        """All known children exist from now on, at 0."""
        f = families
        self.queue = queue
        self._results = {r: f.reconciles.labels(name, r.value) for r in values.ReconcileResult}
        self._errors = f.errors.labels(name)
        self._seconds = f.seconds.labels(name)
        self._tries = {
            (o, r): f.tries.labels(name, o, r.value)
            for o in values.OPERATIONS
            for r in values.TryResult
        }
        self._codes = {
            (o, c): f.codes.labels(name, o, c) for o in values.OPERATIONS for c in _CODES
        }
        self._calls = {o: f.calls.labels(name, o) for o in values.OPERATIONS}
        self._deletions = {o: f.deletions.labels(name, kind, o.value) for o in values.Outcome}
        self._deletion_seconds = {
            o: f.deletion_seconds.labels(name, kind, o.value) for o in values.Outcome if o.final
        }
        self._force_seconds = f.force_seconds.labels(name, kind)
        self._over_budget = f.over_budget.labels(name, kind)
        self.panicked = f.panics.labels(name).inc
        """Count an unexpected exception: a bug."""
        self.timed_out = f.timeouts.labels(name).inc
        """Count a call that exceeded its deadline."""
        self.active = f.active.labels(name).inc
        """Change the number of workers with a request."""
        self.removed_externally = f.removed_externally.labels(name, kind).inc
        """Count an object that was deleted before our cleanup finished."""
        self.not_recorded = f.unrecorded.labels(name).inc
        """Count a force deletion whose record could not be written."""
        self._name = name
        self._families = families
        self._types = Bounded()

    def status_not_written(self) -> None:
        """Count a status that the API server refused, or stored in part."""
        self._families.unwritten.labels(self._name).inc()

    def stripped(self, resource: str) -> None:
        """Count another owner's finalizer stripped from a seed object; with its plural.group."""
        self._families.stripped.labels(self._name, resource).inc()

    def orphaned(self, type: str) -> None:
        """Count an Orphan recorded for an external resource of that type."""
        self._families.orphaned.labels(self._name, self._types(type)).inc()

    def reconciled(self, result: values.ReconcileResult, seconds: float) -> None:
        """Count a processed request."""
        self._results[result].inc()
        self._seconds.observe(seconds)
        if result is values.ReconcileResult.ERROR:
            self._errors.inc()

    def tried(self, operation: str, result: values.TryResult) -> None:
        """Count the result of an attempt at one of OPERATIONS."""
        self._tries[operation, result].inc()

    def erred(self, operation: str, codes: Collection[ErrorCode]) -> None:
        """Count a failed attempt once for each of its codes."""
        for code in codes or (_NO_CODE,):
            self._codes[operation, str(code)].inc()

    def called(self, operation: str, seconds: float) -> None:
        """Observe the duration of a call into the actuator."""
        self._calls[operation].observe(seconds)

    def deletion(self, outcome: values.Outcome) -> None:
        """Count the outcome of a pass over an object under deletion."""
        self._deletions[outcome].inc()

    def released(self, outcome: values.Outcome, seconds: float) -> None:
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
        new = Families(registry, "controller")
        runtime = "controller_runtime"
        self.reconciles = new.counter(
            f"{runtime}_reconcile_total", "Total number of reconciliations, by result.", "result"
        )
        self.errors = new.counter(
            f"{runtime}_reconcile_errors_total", "Total number of failed reconciliations."
        )
        self.terminal = new.counter(
            f"{runtime}_terminal_reconcile_errors_total",
            "Total number of reconciliations that failed without a retry.",
        )
        self.panics = new.counter(
            f"{runtime}_reconcile_panics_total",
            "Total number of unexpected exceptions in reconciliations.",
        )
        self.timeouts = new.counter(
            f"{runtime}_reconcile_timeouts_total",
            "Total number of calls that exceeded their deadline.",
        )
        self.seconds = new.histogram(
            f"{runtime}_reconcile_time_seconds",
            "Duration of a reconciliation.",
            values.RECONCILE_SECONDS,
        )
        self.workers = new.gauge(f"{runtime}_max_concurrent_reconciles", "Number of workers.")
        self.active = new.gauge(
            f"{runtime}_active_workers", "Number of workers that reconcile an object."
        )
        self.info = new.gauge(
            "actuator_controller_info",
            "Kind, type and finalizer that a controller serves; always 1.",
            "kind",
            "type",
            "finalizer",
        )
        self.tries = new.counter(
            "actuator_operations_total",
            "Total number of attempts at operations.",
            "operation",
            "result",
        )
        self.codes = new.counter(
            "actuator_errors_total",
            "Total number of failed attempts at operations, by error code; counts each code.",
            "operation",
            "code",
        )
        self.calls = new.histogram(
            "actuator_operation_duration_seconds",
            "Duration of one call of the actuator.",
            values.CALL_SECONDS,
            "operation",
        )
        self.deletions = new.counter(
            "actuator_deletions_total",
            "Total number of reconciliations of terminating objects, by outcome.",
            "kind",
            "outcome",
        )
        self.deletion_seconds = new.histogram(
            "actuator_deletion_duration_seconds",
            "Time from the deletionTimestamp until the finalizer was removed.",
            values.DELETION_SECONDS,
            "kind",
            "outcome",
        )
        self.force_seconds = new.histogram(
            "actuator_force_deletion_duration_seconds",
            "Time from the observed force deletion until the finalizer was removed.",
            values.FORCE_SECONDS,
            "kind",
        )
        self.budget = new.gauge(
            "actuator_force_delete_budget_seconds",
            "Time budget of a force deletion; no sample without a budget.",
            "kind",
        )
        self.over_budget = new.counter(
            "actuator_force_deletions_over_budget_total",
            "Total number of force deletions that exceeded their budget and skipped force_delete.",
            "kind",
        )
        self.removed_externally = new.counter(
            "actuator_finalizers_removed_externally_total",
            "Total number of finalizers removed externally before cleanup finished.",
            "kind",
        )
        self.unwritten = new.counter(
            "actuator_status_writes_refused_total",
            "Total number of statuses that the API server refused, or stored in part.",
        )
        self.unrecorded = new.counter(
            "actuator_force_deletions_not_recorded_total",
            "Total number of force deletions whose ForceDeletionRecord could not be written.",
        )
        self.orphaned = new.counter(
            "actuator_orphaned_resources_reported_total",
            "Total number of external resources recorded as Orphans, by type.",
            "resource_type",
        )
        self.stripped = new.counter(
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
            self.stripped.labels(name, resource)
        for type in types or ("",):
            self.info.labels(name, kind, type, finalizer).set(1)
        if budget is not None:
            self.budget.labels(name, kind).set(budget)

    def bind(self, name: str, kind: str, workers: int, queue: QueueMetrics) -> ControllerMetrics:
        """Return the metrics of one controller."""
        self.workers.labels(name).set(workers)
        self.terminal.labels(name)
        return ControllerMetrics(self, name, kind, queue)
