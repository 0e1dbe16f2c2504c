"""The one reconciler: from a request to an outcome, for every kind.

`Reconciler.reconcile` reads as the story: look the object up, choose the operation, guard, call
the actuator, report, release. Deciding is `operation`'s business, writing is `attempt`'s,
queueing is `controller`'s.

Rules that nothing in here may break:
1. Our finalizer is on the object, acknowledged, before the first reconcile or restore.
2. It comes off only after the actuator succeeded, or a force deletion said what it leaves.
3. Nobody else's finalizer on our objects is ever touched.
4. After deletionTimestamp no finalizer is added, and spec is never patched.
5. An error is visible: lastError with codes, an event, a metric.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

import attrs

from actuator.cluster import FORCE_DELETION, Verdict
from actuator.errors import (
    ActuatorError,
    ApiError,
    Cancelled,
    DecodeError,
    ErrorCode,
    LeaseLost,
    RequeueAfter,
    SetAside,
    codes_of,
)
from actuator.interface import Actuator, Client, Clock, ExternalResource, Result, SeedObjects
from actuator.meta import Kind, Object
from generic import logs
from generic.attempt import Attempt
from generic.calls import Call, Calls, Services
from generic.clusters import Clusters
from generic.controller import Again, Done, Failed, Outcome, WorkerReplaced
from generic.events import About, EventRecorder
from generic.finalizers import Stale
from generic.force_delete import Stripped, delete_seed_objects
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

    def __init__(self, actuator: Actuator[Any], cls: type[Object], machinery: Machinery) -> None:
        self.kind: Kind = cls.KIND
        self._actuator = actuator
        self._cls = cls
        self._m = machinery
        self._cleaned: dict[Request, tuple[str, Deletion]] = {}
        self.replace_worker: Callable[[Request], None] = lambda _request: None

    def reconcile(self, request: Request) -> Outcome:
        """Does what the object needs now; raises WorkerReplaced and nothing else on purpose."""
        entry = self._m.writer.store.get(request)
        self._count_vanished(request, entry)
        if entry is None:
            return Done()
        uid = entry.header.uid
        log = logs.bind(logger, kind=self.kind.name, object=str(request), uid=uid)
        verdict = self._m.clusters.verdict(self.kind, request.namespace)
        forced = is_forced(self.kind, entry.header, verdict)
        chosen = choose_operation(self.kind, entry.header, verdict, forced=forced)
        self._say_bad_force_value(request, entry.header, verdict)
        if isinstance(chosen, Nothing):
            log.debug("nothing to do", extra={"fields": {"reason": chosen.value}})
            self._count_skipped(entry.header, chosen)
            return Done()
        operation = _operation_of(chosen, entry.header)
        attempt = Attempt(self.kind, request, entry, operation, self._m.writer, self._m.clock)
        try:
            if isinstance(chosen, Blocked):
                raise CallFailed(ActuatorError(chosen.value.format(name=request.namespace)))
            return self._perform(attempt, log)
        except Stale:
            return Again(0)
        except Vanished:
            return Done()
        except CallFailed as failure:
            return self._failed(attempt, failure.error, log)
        except (ApiError, DecodeError, LeaseLost) as error:
            return self._failed(attempt, error, log)

    def preempt(self, request: Request) -> None:
        """Ends a call for an object whose deletion is forced by now."""
        call = self._m.calls.running(request)
        entry = self._m.writer.store.get(request)
        if call is None or entry is None or entry.header.deletion_timestamp is None:
            return
        if call.cancelled or call.operation is Operation.FORCE_DELETE:
            return
        verdict = self._m.clusters.verdict(self.kind, request.namespace)
        if is_forced(self.kind, entry.header, verdict):
            call.cancel("deletion is forced now")
            self._m.soon.call_later(SET_ASIDE_AFTER, lambda: self._set_aside(request, call))

    def _set_aside(self, request: Request, call: Call) -> None:
        if self._m.calls.set_aside(request, call):
            logger.warning("a call that hangs was set aside", extra=_fields(self.kind, request))
            self.replace_worker(request)

    def _perform(self, attempt: Attempt, log: logs.Log) -> Outcome:
        """Guard, call, report, release."""
        operation = attempt.operation
        if operation.guards:
            attempt.guard()
        if self._m.processing_after is None and operation is not Operation.LET_GO:
            attempt.publish()
        deletion, result = self._call(attempt, log)
        if operation.reports:
            attempt.succeed()
        if operation.releases:
            attempt.release()
            self._released(attempt, deletion, log)
        elif result.requeue_after is None or operation is not Operation.RESTORE:
            attempt.settle()
        log.info("done", extra={"fields": {"operation": operation.value}})
        return Done() if result.requeue_after is None else Again(result.requeue_after)

    def _call(self, attempt: Attempt, log: logs.Log) -> tuple[Deletion | None, Result]:
        """Calls the actuator, unless this object was cleaned up before; says how it ends."""
        cleaned = self._cleaned.get(attempt.request)
        if attempt.operation is Operation.LET_GO:
            return Deletion.SKIPPED, Result()
        if attempt.operation.deletes and cleaned is not None and cleaned[0] == attempt.uid:
            return cleaned[1], Result()  # only the finalizer patch failed
        obj = attempt.open(self._cls)
        forced = attempt.operation is Operation.FORCE_DELETE
        result = Result()
        if forced and self._m.calls.full:
            log.error("too many calls hang; the actuator is not called for this force deletion")
        else:
            result = self._invoke(attempt, obj, log)
        if not attempt.operation.deletes:
            return None, result
        left = self._record_left_outside(attempt, obj, log) if forced else 0
        deletion = Deletion.FORCE_DELETED if forced else Deletion.DELETED
        deletion = Deletion.ORPHANED if left else deletion
        self._cleaned[attempt.request] = (attempt.uid, deletion)
        return deletion, result

    def _invoke(self, attempt: Attempt, obj: Any, log: logs.Log) -> Result:
        """The call itself. Raises CallFailed with whatever the actuator raised."""
        call = Call(
            attempt.operation,
            self._m.client,
            logs.bind(logging.getLogger(type(self._actuator).__module__), **log.fields),
            self._m.clock,
            self._m.clock.monotonic() + self.kind.timeout,
            self._m.gate,
        )
        call.serve(self._services(attempt, call, log))
        cluster = self._m.clusters.cluster(attempt.request.namespace)
        operate = getattr(self._actuator, attempt.operation.value)
        self._m.calls.start(attempt.request, call)
        timer = self._announce(attempt, log)
        self.preempt(attempt.request)  # what was forced between the decision and now
        failure: BaseException | None = None
        result = None
        try:
            result = operate(call, obj, cluster)
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

    def _announce(self, attempt: Attempt, log: logs.Log) -> Timer | None:
        """Publishes Processing if the operation is still running after a while."""
        wait = self._m.processing_after
        if wait is None:
            return None  # published already
        return self._m.later.call_later(wait, lambda: self._write(attempt.publish, log))

    def _services(self, attempt: Attempt, call: Call, log: logs.Log) -> Services:
        about = self._about(attempt.request, attempt.uid)

        def delete(groups: Iterable[SeedObjects]) -> None:
            def stripped(one: Stripped) -> None:
                self._m.metrics.stripped(one.resource)
                log.warning("finalizer stripped", extra={"fields": attrs.asdict(one)})
                text = f"Stripped {one.finalizer} from {one.resource} {one.name}"
                self._m.events.record(about, "FinalizerStripped", text, warning=True)

            delete_seed_objects(call.client, attempt.request.namespace, groups, stripped)

        def event(reason: str, message: str, warning: bool) -> None:
            self._m.events.record(about, reason, message, warning=warning)

        return Services(event, lambda _obj: attempt.save(), delete)

    def _failed(self, attempt: Attempt, error: BaseException, log: logs.Log) -> Outcome:
        """Makes the error visible and says when to try again."""
        if isinstance(error, SetAside):
            return Again(0)
        if isinstance(error, LeaseLost):
            return Done()  # whoever leads now sees the object as it is
        if isinstance(error, RequeueAfter) and error.cause is None:
            self._write(lambda: attempt.publish(str(error)), log)
            return Again(error.seconds)
        cause = error.cause if isinstance(error, RequeueAfter) and error.cause else error
        text, codes = describe(cause), _codes(error)
        fields = {"operation": attempt.operation.value, "error": text, "codes": codes}
        log.error("failed", extra={"fields": fields}, exc_info=_unexpected(cause))
        self._write(lambda: attempt.fail(text, codes), log)
        about = self._about(attempt.request, attempt.uid)
        reason = f"{attempt.operation.value.title().replace('_', '')}Error"
        self._m.events.record(about, reason, text, warning=True)
        if attempt.operation.deletes:
            self._m.metrics.deletion(Deletion.FAILED)
        if isinstance(error, RequeueAfter):
            return Again(error.seconds)
        if isinstance(error, ApiError) and error.retry_after is not None:
            return Again(error.retry_after)
        return Failed(cap=DELETION_BACKOFF_CAP if attempt.operation.deletes else None)

    def _write(self, write: Callable[[], None], log: logs.Log) -> None:
        """Writes a status about an error; failing at that must not hide the error itself."""
        try:
            write()
        except (ApiError, Stale, Vanished, LeaseLost) as error:
            log.warning("the status could not be written", extra={"fields": {"error": str(error)}})

    def _record_left_outside(self, attempt: Attempt, obj: Object, log: logs.Log) -> int:
        """Records what a force deletion leaves outside the seed; returns how much that is."""
        about = self._about(attempt.request, attempt.uid)
        try:
            left = list(self._actuator.external_resources(obj))
        except Exception as error:
            log.error("external_resources failed", extra={"fields": {"error": describe(error)}})
            left = [ExternalResource(type="unknown")]
        for resource in left:
            log.warning("left outside the seed", extra={"fields": {"resource": str(resource)}})
            self._m.events.record_left_outside(about, resource)
        return len(left)

    def _released(self, attempt: Attempt, deletion: Deletion | None, log: logs.Log) -> None:
        self._cleaned.pop(attempt.request, None)
        if deletion is not None:
            self._m.metrics.deletion(deletion)
            log.info("finalizer released", extra={"fields": {"outcome": deletion.value}})

    def _count_vanished(self, request: Request, entry: Entry[Header] | None) -> None:
        """Counts a release whose answer got lost: cleaned up by us, and gone since."""
        cleaned = self._cleaned.get(request)
        if cleaned is not None and (entry is None or entry.header.uid != cleaned[0]):
            del self._cleaned[request]
            self._m.metrics.deletion(cleaned[1])
            fields = {"object": str(request), "uid": cleaned[0], "outcome": cleaned[1].value}
            logger.info("finalizer released", extra={"fields": fields})

    def _count_skipped(self, header: Header, reason: Nothing) -> None:
        waits = reason in (Nothing.SHOOT_FAILED, Nothing.WAITS_FOR_STATE)
        if waits and header.deletion_timestamp and self.kind.finalizer in header.finalizers:
            self._m.metrics.deletion(Deletion.SKIPPED)

    def _say_bad_force_value(self, request: Request, header: Header, verdict: Verdict) -> None:
        value = bad_force_value(self.kind, header, verdict)
        if value is not None and header.deletion_timestamp is not None:
            self._m.events.record(
                self._about(request, header.uid),
                "ForceDeletionNotUnderstood",
                f"{FORCE_DELETION}: {value!r} is no boolean, so this is no force deletion; "
                'set it to "true"',
                warning=True,
            )

    def _about(self, request: Request, uid: str) -> About:
        return About(
            api_version=self.kind.api_version,
            kind=self.kind.name,
            namespace=request.namespace,
            name=request.name,
            uid=uid,
        )


def describe(error: BaseException) -> str:
    """One line about an error, for people; the class is named where the text alone says little."""
    text = " ".join(str(error).split())
    if isinstance(error, (ActuatorError, ApiError, Cancelled)) and text:
        return text
    if isinstance(error, DecodeError):
        return f"the object cannot be read: {text}"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _codes(error: BaseException) -> tuple[ErrorCode, ...]:
    if isinstance(error, DecodeError):
        return (ErrorCode.ERR_CONFIGURATION_PROBLEM,)
    return codes_of(error)


def _unexpected(error: BaseException) -> BaseException | None:
    """The error where a traceback helps its author: anything that nobody raised on purpose."""
    expected = (ActuatorError, ApiError, Cancelled, DecodeError)
    debugging = logger.isEnabledFor(logging.DEBUG)
    return error if debugging and not isinstance(error, expected) else None


def _operation_of(chosen: Operation | Blocked, header: Header) -> Operation:
    """The operation that a blocked object is blocked in."""
    if isinstance(chosen, Operation):
        return chosen
    return Operation.DELETE if header.deletion_timestamp else Operation.RECONCILE


def _fields(kind: Kind, request: Request) -> dict[str, object]:
    return {"fields": {"kind": kind.name, "object": str(request)}}
