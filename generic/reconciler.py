"""The one reconciler: from a request to an outcome, for every kind.

`Reconciler.reconcile` reads as the story: look the object up, choose the operation, guard, call
the actuator, report, release. Deciding is `operation`'s business, writing `attempt`'s, making
visible `reporter`'s, queueing `controller`'s.

Rules that nothing in here may break:
1. Our finalizer is on the object, acknowledged, before the first reconcile or restore.
2. It comes off only after the actuator succeeded, or a force deletion said what it leaves.
3. Nobody else's finalizer on our objects is ever touched.
4. After deletionTimestamp no finalizer is added, and spec is never patched.
5. An error is visible: lastError with codes, an event, a metric.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import attrs

from actuator.cluster import Cluster
from actuator.errors import (
    ActuatorError,
    ApiError,
    LeaseLost,
    RequeueAfter,
    SetAside,
)
from actuator.interface import (
    Actuator,
    Client,
    Clock,
    ExternalResource,
    Result,
    invalid,
    kind_of,
    object_class,
)
from actuator.meta import Kind, Object
from generic import logs
from generic.attempt import Attempt
from generic.calls import Call, Calls, Services
from generic.clusters import Clusters
from generic.controller import Again, Done, Failed, Outcome, WorkerReplaced
from generic.events import EventRecorder
from generic.finalizers import Stale
from generic.force_delete import delete_seed_objects
from generic.metrics import ControllerMetrics
from generic.metrics import Outcome as Deletion
from generic.operation import (
    Blocked,
    Nothing,
    Operation,
    bad_force_value,
    choose_operation,
    is_forced,
)
from generic.reporter import Reporter, codes, describe
from generic.store import Entry, Header, Request
from generic.timers import Timer, Timers
from generic.writer import Vanished, Writer

__all__ = ["Machinery", "Reconciler"]

logger = logging.getLogger(__name__)

DELETION_BACKOFF_CAP = 60.0
"""Seconds at most between two tries at a deletion."""
SET_ASIDE_AFTER = 10.0
"""Seconds that a cancelled call has to return by itself."""


class CallFailed(Exception):
    """What an actuator raised, whatever it was, kept apart from errors of our own."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


@attrs.frozen
class Machinery:
    """What a reconciler works with; the manager puts it together."""

    client: Client
    writer: Writer
    clusters: Clusters
    events: EventRecorder
    metrics: ControllerMetrics
    clock: Clock
    calls: Calls
    soon: Timers
    """For what never waits for the API server: setting calls aside."""
    later: Timers
    """For what does: publishing Processing."""
    gate: Callable[[], None]
    """Raises LeaseLost where this process no longer leads."""
    processing_after: float | None = 1.0
    """Seconds an operation runs before Processing is published; None: always, at once."""


class Reconciler:
    """Runs one actuator for the objects of its kind."""

    def __init__(self, actuator: Actuator[Any], machinery: Machinery) -> None:
        self.kind: Kind = kind_of(actuator)
        self._actuator = actuator
        self._cls = object_class(actuator)
        self._m = machinery
        self._cleaned: dict[Request, tuple[str, Deletion]] = {}
        self.replace_worker: Callable[[Request], None] = lambda _request: None

    def reconcile(self, request: Request) -> Outcome:
        """Does what the object needs now; raises WorkerReplaced and nothing else on purpose."""
        entry = self._m.writer.store.get(request)
        self._count_vanished(request, entry)
        if entry is None:
            return Done()
        report = self._reporter(request, entry.header.uid)
        chosen = self._choose(request, entry.header, report)
        if isinstance(chosen, Nothing):
            report.log.debug("nothing to do", extra={"fields": {"reason": chosen.value}})
            return Done()
        operation = chosen.operation if isinstance(chosen, Blocked) else chosen
        attempt = Attempt(self.kind, request, entry, operation, self._m.writer, self._m.clock)
        try:
            if isinstance(chosen, Blocked):
                raise CallFailed(ActuatorError(chosen.by.format(name=request.namespace)))
            return self._perform(attempt, report)
        except Stale:
            return Again(0)
        except Vanished:
            return Done()
        except CallFailed as failure:
            return self._failed(attempt, failure.error, report)
        except WorkerReplaced:
            raise
        except Exception as error:  # what we could not read or write: said like any other error
            return self._failed(attempt, error, report)

    def _choose(
        self, request: Request, header: Header, report: Reporter
    ) -> Operation | Nothing | Blocked:
        """The operation; on the way, what is odd about a deleting object is said."""
        chosen = self._decide(request, header)
        if header.deletion_timestamp is not None:
            cluster = self._m.clusters.verdict(self.kind, request.namespace)
            value = bad_force_value(self.kind, header, cluster)
            if value is not None:
                report.bad_force_value(value)
            waits = chosen in (Nothing.SHOOT_FAILED, Nothing.WAITS_FOR_STATE)
            if waits and self.kind.finalizer in header.finalizers:
                self._m.metrics.deletion(Deletion.SKIPPED)
        return chosen

    def preempt(self, request: Request) -> None:
        """Ends a call for an object whose deletion is forced by now."""
        call = self._m.calls.running(request)
        entry = self._m.writer.store.get(request)
        if call is None or entry is None or entry.header.deletion_timestamp is None:
            return
        if call.cancelled or call.operation is Operation.FORCE_DELETE:
            return
        if self._decide(request, entry.header) is Operation.FORCE_DELETE:
            call.cancel("deletion is forced now")
            self._m.soon.call_later(SET_ASIDE_AFTER, lambda: self._set_aside(request, call))

    def _decide(self, request: Request, header: Header) -> Operation | Nothing | Blocked:
        cluster = self._m.clusters.verdict(self.kind, request.namespace)
        forced = is_forced(self.kind, header, cluster)
        return choose_operation(self.kind, header, cluster, forced=forced)

    def _set_aside(self, request: Request, call: Call) -> None:
        if self._m.calls.set_aside(request, call):
            fields = {"kind": self.kind.name, "object": str(request)}
            logger.warning("a call that hangs was set aside", extra={"fields": fields})
            self.replace_worker(request)

    def _perform(self, attempt: Attempt, report: Reporter) -> Outcome:
        """Guard, call, report, release."""
        operation = attempt.operation
        if operation.guards:
            attempt.guard()
        if self._m.processing_after is None and operation is not Operation.LET_GO:
            attempt.publish()
        deletion, result = self._call(attempt, report)
        if operation.reports:
            attempt.succeed()
        if operation.releases:
            attempt.release()
            self._cleaned.pop(attempt.request, None)
        elif result.requeue_after is None or operation is not Operation.RESTORE:
            attempt.settle()
        if deletion is not None:
            report.released(deletion)
        report.log.info("done", extra={"fields": {"operation": operation.value}})
        return Done() if result.requeue_after is None else Again(result.requeue_after)

    def _call(self, attempt: Attempt, report: Reporter) -> tuple[Deletion | None, Result]:
        """Calls the actuator where there is something to do; says how a deletion ends."""
        if attempt.operation is Operation.LET_GO:
            return Deletion.SKIPPED, Result()
        cleaned = self._cleaned.get(attempt.request)
        if attempt.operation.deletes and cleaned is not None and cleaned[0] == attempt.uid:
            return cleaned[1], Result()  # only the finalizer patch failed
        obj = attempt.open(self._cls)
        forced = attempt.operation is Operation.FORCE_DELETE
        if forced and self._m.calls.aside.full:
            report.log.error("too many calls hang: this force deletion goes without its actuator")
            result = Result()
        else:
            result = self._invoke(attempt, obj, report)
        if not attempt.operation.deletes:
            return None, result
        deletion = Deletion.DELETED
        if forced:
            left = self._record_left_outside(obj, report)
            deletion = Deletion.ORPHANED if left else Deletion.FORCE_DELETED
        self._cleaned[attempt.request] = (attempt.uid, deletion)
        return deletion, result

    def _invoke(self, attempt: Attempt, obj: Any, report: Reporter) -> Result:
        """The call itself. Raises CallFailed with whatever the actuator raised."""
        call = self._new_call(attempt, report)
        cluster = self._m.clusters.cluster(attempt.request.namespace)
        self._m.calls.start(attempt.request, call)
        timer = self._announce(attempt, report)
        self.preempt(attempt.request)  # what was forced between the decision and now
        failure: BaseException | None = None
        result = None
        try:
            result = self._operate(call, obj, cluster)
        except BaseException as error:  # SystemExit included: an actuator ends no process
            failure = error
        finally:
            if timer is not None:
                timer.cancel()
            kept = self._m.calls.finish(attempt.request, call)
        if not kept:
            raise WorkerReplaced
        if failure is not None:
            raise CallFailed(failure) from failure
        return result if isinstance(result, Result) else Result()

    def _operate(self, call: Call, obj: Any, cluster: Cluster) -> object:
        if call.operation.guards:
            problems = list(self._actuator.validate(call, obj, cluster))
            if problems:
                raise invalid(obj, problems)
        return getattr(self._actuator, call.operation.value)(call, obj, cluster)

    def _new_call(self, attempt: Attempt, report: Reporter) -> Call:
        """The Context for one call."""
        author = logging.getLogger(type(self._actuator).__module__)
        call = Call(
            attempt.operation,
            self._m.client,
            logs.bind(author, **report.log.fields),
            self._m.clock,
            self._m.clock.monotonic() + self.kind.timeout,
            self._m.gate,
        )
        namespace = attempt.request.namespace
        call.serve(
            Services(
                event=lambda reason, text, warning: report.event(reason, text, warning=warning),
                save=lambda _obj: attempt.save(),
                delete_seed_objects=lambda groups: delete_seed_objects(
                    call.client, namespace, groups, report.stripped
                ),
            )
        )
        return call

    def _announce(self, attempt: Attempt, report: Reporter) -> Timer | None:
        """Publishes Processing if the operation is still running after a while."""
        wait = self._m.processing_after
        if wait is None:
            return None  # published already
        return self._m.later.call_later(wait, partial(self._write, attempt.publish, report))

    def _failed(self, attempt: Attempt, error: BaseException, report: Reporter) -> Outcome:
        """Makes the error visible and says when to try again."""
        if isinstance(error, SetAside):
            return Again(0)
        if isinstance(error, LeaseLost):
            return Done()  # whoever leads now sees the object as it is
        if isinstance(error, RequeueAfter) and error.cause is None:
            self._write(partial(attempt.wait, str(error)), report)
            return Again(error.seconds)
        cause = error.cause if isinstance(error, RequeueAfter) and error.cause else error
        self._write(partial(attempt.fail, describe(cause), codes(cause)), report)
        report.failed(attempt.operation, cause)
        if isinstance(error, RequeueAfter):
            return Again(error.seconds)
        if isinstance(error, ApiError) and error.retry_after is not None:
            return Again(min(max(error.retry_after, 1.0), DELETION_BACKOFF_CAP))
        return Failed(cap=DELETION_BACKOFF_CAP if attempt.operation.deletes else None)

    def _write(self, write: Callable[[], None], report: Reporter) -> None:
        """Writes a status beside the result; failing at that must not hide the rest."""
        try:
            write()
        except Exception as error:
            report.status_not_written(error)

    def _record_left_outside(self, obj: Object, report: Reporter) -> int:
        """Records what a force deletion leaves outside the seed; returns how much that is."""
        try:
            left = list(self._actuator.external_resources(obj))
        except Exception as error:
            fields = {"error": describe(error)}
            report.log.error("external_resources failed", extra={"fields": fields})
            left = [ExternalResource(type="unknown")]
        for resource in left:
            report.left_outside(resource)
        return len(left)

    def _count_vanished(self, request: Request, entry: Entry[Header] | None) -> None:
        """Counts a release whose answer got lost: cleaned up by us, and gone since."""
        uid, outcome = self._cleaned.get(request, ("", Deletion.DELETED))
        if uid and (entry is None or entry.header.uid != uid):
            del self._cleaned[request]
            self._reporter(request, uid).released(outcome)

    def _reporter(self, request: Request, uid: str) -> Reporter:
        return Reporter(self.kind, request, uid, self._m.events, self._m.metrics)
