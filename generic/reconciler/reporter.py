"""Reporter: reports outcomes as log lines, events and metrics, and to listeners.

Not here: the status of the object (`attempt`).
"""

import json
import logging
from collections.abc import Callable, Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import asdict

from actuator.cluster import FORCE_DELETION
from actuator.codec import encode
from actuator.errors import DeadlineExceeded
from actuator.interface import ExternalResource
from actuator.meta import Kind
from generic.kube.dropped import NotStored
from generic.kube.errorinfo import ErrorInfo, describe
from generic.kube.events import About, EventRecorder
from generic.reconciler.attempt import is_refused
from generic.reconciler.blocked import NO_RETRY
from generic.reconciler.operation import Operation
from generic.reconciler.origin import ORIGIN, DeletionOrigin
from generic.reconciler.orphans import ForceDeletionRecord, OrphanedFrom
from generic.reconciler.stripping import Stripped
from generic.reconciler.track import Track
from generic.serving import logs
from generic.serving.metrics import ControllerMetrics, Outcome, TryResult

STATUS_NOT_WRITTEN = "StatusNotWritten"
"""Reason of the event about an object whose status the API server refuses."""

_LISTED = 100
"""Maximum recorded resources that are named in logs; all are in Orphans."""

logger = logging.getLogger(__name__)


def event_reason(outcome: Outcome) -> str:
    """Return the reason of the event about an outcome: "ForceDeleted"."""
    return outcome.value.title().replace("_", "")


class DeletionEnded(Struct, frozen=True, kw_only=True):
    """The end of one pass over an object under deletion, acknowledged by the API server."""

    kind: str
    namespace: str
    name: str
    uid: str
    outcome: Outcome
    origin: DeletionOrigin = DeletionOrigin()


Listener = Callable[[DeletionEnded], None]
"""Receives every outcome of a deletion, in the worker's thread, so it must not block.

An exception is logged, and changes nothing."""


class Sinks(Struct, frozen=True, kw_only=True):
    """The destinations of one controller's reports."""

    events: EventRecorder
    metrics: ControllerMetrics
    listeners: Sequence[Listener] = ()
    all_outcomes: bool = False
    """Whether every outcome of a deletion becomes an event, not only exceptional ones."""


class Reporter(Struct, frozen=True, dict=True):
    """Reports on one object; one instance per reconciliation."""

    kind: Kind
    track: Track
    sinks: Sinks
    type: str = ""
    """The extension type, "aws"."""
    find_origin: Callable[[], DeletionOrigin] = DeletionOrigin

    @cached_property
    def origin(self) -> DeletionOrigin:
        """The origin of the object, read at its first use."""
        return self.find_origin()

    @property
    def outcomes(self) -> logs.Log:
        """The logger of lines about the outcome of a deletion: they have the origin too."""
        return logs.bind(self.log, **self.origin.fields)

    @cached_property
    def log(self) -> logs.Log:
        """A logger that adds the object to each line."""
        return logs.bind(
            logger, kind=self.kind.name, object=str(self.track.request), uid=self.track.uid
        )

    @property
    def about(self) -> About:
        """The object as events refer to it."""
        return {
            "apiVersion": self.kind.api_version,
            "kind": self.kind.name,
            "namespace": self.track.request.namespace,
            "name": self.track.request.name,
            "uid": self.track.uid,
        }

    def event(
        self,
        reason: str,
        message: str,
        *,
        warning: bool = False,
        once: bool = False,
        origin: bool = False,
    ) -> None:
        """Record an event, best effort; with `origin`, an annotation has the origin."""
        annotations = {ORIGIN: json.dumps(encode(self.origin))} if origin else None
        self.sinks.events.record(
            self.about, reason, message, warning=warning, once=once, annotations=annotations
        )

    def failed(self, operation: Operation, error: ErrorInfo, *, gives_up: bool = False) -> None:
        """Report a failed operation, which is retried unless `gives_up`."""
        self._count_failed(operation, error, gives_up=gives_up)
        text = error.text
        fields = {"operation": operation.value, "error": text, "codes": error.codes}
        log = self.outcomes if operation.deletes else self.log
        log.error("operation failed", extra={"fields": fields}, exc_info=error.unexpected)
        reason = f"{operation.value.title().replace('_', '')}Error"
        self.event(reason, text, warning=True, origin=operation.deletes)
        if gives_up:
            self.event("GaveUp", f"{NO_RETRY.capitalize()}: {text}", warning=True, origin=True)

    def _count_failed(self, operation: Operation, error: ErrorInfo, *, gives_up: bool) -> None:
        if operation.calls:
            self.sinks.metrics.tried(
                operation.value, TryResult.TERMINAL if gives_up else TryResult.ERROR
            )
            self.sinks.metrics.erred(operation.value, error.codes)
        if gives_up or operation.deletes:
            self.deletion(Outcome.GAVE_UP if gives_up else Outcome.FAILED)
        if error.is_a(DeadlineExceeded):
            self.sinks.metrics.timed_out()
        elif error.is_bug:
            self.sinks.metrics.panicked()

    def succeeded(self, operation: Operation) -> None:
        """Report an operation that succeeded, after everything is written.

        `released` already logged the end of a deletion.
        """
        if operation.reports:
            self.log.info("operation succeeded", extra={"fields": {"operation": operation.value}})
        if operation.calls:
            self.sinks.metrics.tried(operation.value, TryResult.SUCCESS)

    def requeued(self, operation: Operation) -> None:
        """Report an operation that asked to be called again."""
        self.sinks.metrics.tried(operation.value, TryResult.PENDING)

    def status_not_written(self, error: BaseException) -> None:
        """Report a status that was not written; if refused or stored in part, also as an event."""
        text = describe(error)
        self.log.warning("status update failed", extra={"fields": {"error": text}})
        if is_refused(error) or isinstance(error, NotStored):
            self.sinks.metrics.status_not_written()
            self.event(STATUS_NOT_WRITTEN, text, warning=True)

    def stripped(self, one: Stripped) -> None:
        """Report a finalizer of another controller that was removed from a seed object."""
        self.sinks.metrics.stripped(one.resource)
        self.log.warning("finalizer stripped", extra={"fields": asdict(one)})
        text = f"Stripped {one.finalizer} from {one.resource} {one.name}"
        self.event("FinalizerStripped", text, warning=True)

    @property
    def orphaned_from(self) -> OrphanedFrom:
        """The object as Orphans refer to it."""
        return OrphanedFrom(
            api_version=self.kind.api_version,
            kind=self.kind.name,
            namespace=self.track.request.namespace,
            name=self.track.request.name,
            uid=self.track.uid,
            type=self.type,
            origin=self.origin,
        )

    def orphans_recorded(self, resources: Sequence[ExternalResource]) -> None:
        """Report that these resources may remain and are recorded."""
        for resource in resources:
            self.sinks.metrics.orphaned(resource.type)
        for resource in resources[:_LISTED]:
            fields = {"resource": str(resource)}
            self.outcomes.warning("external resource recorded as Orphan", extra={"fields": fields})
        more = len(resources) - _LISTED
        if more > 0:
            fields = {"count": str(more)}
            self.outcomes.warning("more external resources recorded", extra={"fields": fields})
        listed = "; ".join(map(str, resources[:_LISTED]))
        self.once(
            "OrphansRecorded", f"Recorded {len(resources)} external resources as Orphans: {listed}"
        )

    def not_recorded(self, record: ForceDeletionRecord, error: str) -> None:
        """Report a force deletion without a record: the log has its content instead."""
        self.sinks.metrics.not_recorded()
        fields = {"error": error, "record": json.dumps(encode(record.spec))}
        self.log.error("force deletion not recorded", extra={"fields": fields})
        self.once("ForceDeletionNotRecorded", f"{error}; the manager's log has the record")

    def deletion(self, outcome: Outcome) -> None:
        """Count the end of one pass over an object under deletion."""
        self.sinks.metrics.deletion(outcome)
        self._announce(outcome)

    def _announce(self, outcome: Outcome) -> None:
        if not self.sinks.listeners:
            return
        namespace, name = self.track.request
        ended = DeletionEnded(
            kind=self.kind.name,
            namespace=namespace,
            name=name,
            uid=self.track.uid,
            outcome=outcome,
            origin=self.origin,
        )
        for listen in self.sinks.listeners:
            try:
                listen(ended)
            except Exception:  # the outcome stands, and the other listeners must receive it
                self.log.exception("outcome listener failed")

    def ends(self, outcome: Outcome) -> None:
        """Report the end of a deletion, before our finalizer is removed."""
        if self.sinks.all_outcomes:
            text = f"Deletion ended with outcome {outcome.value}"
            self.once(event_reason(outcome), text, warning=False)

    def released(self, outcome: Outcome, seconds: float, others: Sequence[str] = ()) -> None:
        """Report that our finalizer is removed, `seconds` after the deletionTimestamp."""
        if outcome.final:
            self.sinks.metrics.released(outcome, seconds)
            self._announce(outcome)
        else:
            self.deletion(outcome)
        self.outcomes.info("finalizer released", extra={"fields": {"outcome": outcome.value}})
        if others:
            text = f"Finalizer removed; the object waits for the finalizers {', '.join(others)}"
            self.event("WaitsForOthers", text)

    def removed_externally(self) -> None:
        """Report that our finalizer was removed externally while cleanup was unfinished."""
        self.sinks.metrics.removed_externally()
        self.outcomes.error("finalizer removed externally before cleanup finished")
        self.once(
            "FinalizerRemovedExternally", "Finalizer removed externally before cleanup finished"
        )

    def once(self, reason: str, message: str, *, warning: bool = True) -> None:
        """Record an event once for the object and this reason, also across restarts."""
        self.event(reason, message, warning=warning, once=True, origin=True)

    def bad_force_value(self, value: str) -> None:
        """Report an annotation for force deletion whose value is not a boolean."""
        text = f"{FORCE_DELETION}: expected a boolean, got {value!r}; deletion is not forced"
        self.event("ForceDeletionNotUnderstood", f'{text}; set "true"', warning=True)
