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

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import attrs

from actuator.errors import ApiError, ErrorCode, LeaseLost, SetAside
from actuator.interface import Actuator, Client, Clock, Result, kind_of, object_class
from actuator.meta import ClusterNeed, Kind, parse_time
from generic.controller.controller import Again, Done, Failed, Outcome, WorkerReplaced
from generic.controller.metrics import ControllerMetrics, TerminatingState
from generic.controller.metrics import Outcome as Deletion
from generic.kube.clusters import Clusters
from generic.kube.errorinfo import ErrorInfo, read_error
from generic.kube.events import EventRecorder
from generic.kube.finalizers import Stale
from generic.kube.store import Entry, Event, Header, Request
from generic.kube.timers import Timer, Timers
from generic.kube.writer import Vanished, Writer
from generic.reconciler.attempt import Attempt, StatusUnwritable
from generic.reconciler.blocked import said
from generic.reconciler.budget import Budgets
from generic.reconciler.bypass import Bypasses
from generic.reconciler.calls import Aside
from generic.reconciler.escalation import Escalation, gives_up
from generic.reconciler.forcing import Forcing
from generic.reconciler.invoker import CallFailed, Invoker
from generic.reconciler.operation import (
    Blocked,
    Nothing,
    Operation,
    bad_force_value,
    choose_operation,
    is_forced,
)
from generic.reconciler.reporter import Reporter
from generic.reconciler.status import Failure

__all__ = ["Machinery", "Reconciler"]

_WAITS = (Nothing.SHOOT_FAILED, Nothing.WAITS_FOR_STATE)

_STALE_SECONDS = 0.1
"""Until another look at an object that others change faster than we write."""
DELETION_BACKOFF_CAP = 60.0
"""Seconds at most between two tries at a deletion."""
FORCED_BACKOFF_CAP = 5.0
"""The same at a forced one, however often others failed before: its budget is short."""


@attrs.frozen
class Machinery:
    """What a reconciler works with; the manager puts it together."""

    client: Client
    writer: Writer
    clusters: Clusters
    events: EventRecorder
    metrics: ControllerMetrics
    clock: Clock
    aside: Aside
    later: Timers
    """Publishes Processing."""
    gate: Callable[[], None]
    """Raises LeaseLost where this process no longer leads."""
    processing_after: float | None = 1.0
    """Seconds an operation runs before Processing is published; None: always, at once."""
    force_delete_budget: float | None = 90.0
    """Seconds for a force deletion; None: as long as it takes."""
    escalations: Sequence[Escalation] = ()
    """How long deletions are tried; none: for ever."""
    all_outcomes: bool = False
    """Whether every outcome of a deletion becomes an event."""


class _Cleaned(NamedTuple):
    """An object that is cleaned up, while our finalizer is still on, as far as we know."""

    uid: str
    outcome: Deletion
    since: str | None
    """Its deletionTimestamp."""


class Reconciler:
    """Runs one actuator for the objects of its kind."""

    def __init__(self, actuator: Actuator[Any], machinery: Machinery) -> None:
        self.kind: Kind = kind_of(actuator)
        self._cls = object_class(actuator)
        self._m = m = machinery
        self.invoker = Invoker(actuator, self.kind, m.client, m.clock, m.gate, m.aside)
        self.invoker.timed = m.metrics.called
        budgets = Budgets(m.clock, m.force_delete_budget)
        clusters = m.clusters.cluster
        self.forcing = Forcing(self.invoker, budgets, self._cls, clusters)
        self._bypasses = Bypasses(self.invoker, self._cls, clusters, self._is_forced)
        self._cleaned: dict[Request, _Cleaned] = {}
        self._given_up: dict[Request, str] = {}
        self._began: dict[Request, int] = {}  # the version from which the last call began
        self.failures: Callable[[Request], int] = lambda _request: 0
        """How often in a row an object failed; the controller knows."""

    def reconcile(self, request: Request) -> Outcome:
        """Does what the object needs now; raises WorkerReplaced and nothing else on purpose."""
        entry = self._m.writer.store.get(request)
        self._count_released(request, entry)
        vanished = self._bypasses.uid_of(request)
        if vanished is not None:
            outcome = self._bypasses.handle(request, entry, self._reporter(request, vanished))
            if self._bypasses.uid_of(request) is None:
                self.invoker.known.forget(request, vanished)
            return outcome
        self._given_up.pop(request, None)
        if entry is None:
            self.forcing.budgets.forget(request)
            return Done()
        report = self._reporter(request, entry.header.uid, entry.header.type)
        chosen = self._choose(request, entry.header, report)
        if isinstance(chosen, Nothing):
            report.log.debug("nothing to do", extra={"fields": {"reason": chosen.value}})
            return Done()
        operation = chosen.operation if isinstance(chosen, Blocked) else chosen
        attempt = Attempt(self.kind, request, entry, operation, self._m.writer, self._m.clock)
        try:
            return self._try(attempt, chosen, report)
        except Vanished:  # said by the answer to any write, that of an error included
            known = attempt.known
            ours = self.kind.finalizer in known.header.finalizers
            if ours and self._bypasses.keep(request, known.header, known.raw):
                return Again(0)
            self._count_released(request, self._m.writer.store.get(request))
            return Done()

    def _try(self, attempt: Attempt, chosen: Operation | Blocked, report: Reporter) -> Outcome:
        """One try, every failure turned into an outcome. Raises Vanished and WorkerReplaced."""
        try:
            if isinstance(chosen, Blocked):
                raise chosen.error(attempt.request.namespace)
            return self._perform(attempt, report)
        except Stale:
            return Again(_STALE_SECONDS)
        except CallFailed as failure:
            return self._failed(attempt, failure.error, report)
        except (Vanished, WorkerReplaced):
            raise
        except Exception as error:  # what we could not read or write: said like any other error
            return self._failed(attempt, read_error(error), report)

    def notice(self, event: Event[Header]) -> bool:
        """Looks what an event means beyond a trigger; whether the object has to be looked at.

        Called for every event, where it comes in: must not wait.
        """
        if event.new is None:
            self._began.pop(event.request, None)
            if event.own:
                return False  # what we knew, and did what there was to do about it
            self.forcing.budgets.forget(event.request)
        elif event.new.deletion_timestamp is not None:
            self.notice_forced(event.request)
        entry = self._m.writer.store.get(event.request)
        last = event.last if entry is None else entry.raw
        bypassed = self._bypasses.notice(event, last)
        if event.new is None and event.old is not None and not bypassed:
            self.invoker.known.forget(event.request, event.old.uid)
        return bypassed

    def began_after(self, request: Request, cluster_version: int) -> bool:
        """Whether the object's last call began from a state newer than that of a Cluster."""
        needed = self.kind.cluster is not ClusterNeed.NEVER
        return needed and self._began.get(request, 0) > cluster_version

    def notice_forced(self, request: Request) -> None:
        """If deletion is forced by now, its budget runs, and a call in its way ends."""
        entry = self._m.writer.store.get(request)
        if entry is None or entry.header.deletion_timestamp is None:
            return
        if self._decide(request, entry.header) is Operation.FORCE_DELETE:
            self.forcing.notice(request, entry.header.uid)

    def terminating(self, request: Request, header: Header) -> TerminatingState:
        """How an object stands that is under deletion."""
        if self.kind.finalizer not in header.finalizers:
            return TerminatingState.FOREIGN_FINALIZER
        if self._given_up.get(request) == header.uid:
            return TerminatingState.GAVE_UP
        if header.is_failing:
            return TerminatingState.FAILING
        waits = self._decide(request, header) in _WAITS
        return TerminatingState.SKIPPED if waits else TerminatingState.DELETING

    def sweep(self) -> None:
        """What has to happen in time, whatever hangs: budgets end, overdue calls are set aside."""
        self.forcing.end_budgets()
        self.invoker.set_overdue_aside()

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
            if chosen in _WAITS and self.kind.finalizer in header.finalizers:
                self._m.metrics.deletion(Deletion.SKIPPED)
        return chosen

    def _decide(self, request: Request, header: Header) -> Operation | Nothing | Blocked:
        cluster = self._m.clusters.verdict(self.kind, request.namespace)
        forced = is_forced(self.kind, header, cluster)
        return choose_operation(self.kind, header, cluster, forced=forced)

    def _is_forced(self, request: Request, header: Header) -> bool:
        cluster = self._m.clusters.verdict(self.kind, request.namespace)
        return is_forced(self.kind, header, cluster)

    def _perform(self, attempt: Attempt, report: Reporter) -> Outcome:
        """Guard, call, report, release."""
        operation = attempt.operation
        if operation.guards:
            attempt.guard(self._cls)
            self._bypasses.holding(attempt.uid)
        if self._m.processing_after is None and operation is not Operation.LET_GO:
            attempt.publish()
        deletion, result = self._call(attempt, report)
        if operation.reports:
            attempt.succeed()
        if operation.releases:
            self._release(attempt, deletion, report)
        elif result.requeue_after is None or operation is not Operation.RESTORE:
            attempt.settle()
        report.done(operation)
        return Done() if result.requeue_after is None else Again(result.requeue_after)

    def _release(self, attempt: Attempt, deletion: Deletion | None, report: Reporter) -> None:
        """Afterwards our finalizer is off."""
        if deletion is not None:
            report.ends(deletion)
        forced = None  # asked now: the watch may tell of the end before the answer does
        if attempt.operation is Operation.FORCE_DELETE:
            forced = self.forcing.budgets.of(attempt.request, attempt.uid)
        self._bypasses.letting_go(attempt.uid)
        attempt.release()
        self._bypasses.let_go(attempt.request)
        self._cleaned.pop(attempt.request, None)
        if forced is not None:
            seconds = self._m.clock.monotonic() - forced.since
            self._m.metrics.forced(seconds, over_budget=forced.over)
        self.forcing.budgets.forget(attempt.request)
        self.invoker.known.forget(attempt.request, attempt.uid)
        if deletion is not None:
            seconds = self._seconds_since(attempt.start.deletion_timestamp)
            report.released(deletion, seconds, attempt.others_finalizers)

    def _call(self, attempt: Attempt, report: Reporter) -> tuple[Deletion | None, Result]:
        """Calls the actuator where there is something to do; says how a deletion ends."""
        if attempt.operation is Operation.LET_GO:
            return Deletion.SKIPPED, Result()
        if not attempt.operation.deletes:
            return None, self._invoke(attempt, report)
        cleaned = self._cleaned.get(attempt.request)
        if cleaned is not None and cleaned.uid == attempt.uid:
            return cleaned.outcome, Result()  # only the finalizer patch failed
        if attempt.operation is Operation.FORCE_DELETE:
            deletion = self.forcing.run(attempt, report)
        else:
            self._invoke(attempt, report)
            deletion = Deletion.DELETED
        since = attempt.start.deletion_timestamp
        self._cleaned[attempt.request] = _Cleaned(attempt.uid, deletion, since)
        return deletion, Result()

    def _invoke(self, attempt: Attempt, report: Reporter) -> Result:
        """The call itself. Raises CallFailed with whatever the actuator raised."""
        request = attempt.request
        self.invoker.refuse_while_one_hangs(request, attempt.uid)
        obj = attempt.open(self._cls)
        call = self.invoker.new_call(attempt.operation, report, attempt.save)
        self._began[request] = attempt.start.resource_version
        cluster = self._m.clusters.cluster(request.namespace)
        self.invoker.calls.start(request, call)
        self.notice_forced(request)  # what was forced between the decision and now
        timer = self._announce(attempt, report)
        try:
            return self.invoker.operate(call, request, obj, cluster, attempt.capture)
        finally:
            if timer is not None:
                timer.cancel()

    def _announce(self, attempt: Attempt, report: Reporter) -> Timer | None:
        """Publishes Processing if the operation is still running after a while."""
        wait = self._m.processing_after
        if wait is None:
            return None  # published already

        def publish() -> None:
            with suppress(Vanished):  # its worker will see
                self._write(attempt.publish, report)

        return self._m.later.call_later(wait, publish)

    def _failed(self, attempt: Attempt, error: ErrorInfo, report: Reporter) -> Outcome:
        """Makes the error visible and says when to try again."""
        if error.is_a(SetAside):
            return Again(0)
        if error.is_a(LeaseLost):
            return Done()  # whoever leads now sees the object as it is
        if error.waits:
            try:
                attempt.wait(error.text)
            except StatusUnwritable as unwritable:
                return self._failed(attempt, read_error(unwritable), report)
            except (ApiError, Stale) as error_of_status:
                report.status_not_written(error_of_status)
            report.waits(attempt.operation)
            return Again(error.requeue_after or 0.0)
        text = error.text
        if attempt.operation is Operation.FORCE_DELETE:
            self.forcing.failed(attempt, text)
        last_try = self._is_last_try(attempt, error.codes)
        blocked = None
        if attempt.operation.deletes:
            tries, since = self.failures(attempt.request) + 1, attempt.start.deletion_timestamp
            blocked = (error.blocked_reason, said(text, tries, since, gives_up=last_try))
        failure = Failure(
            text=text, codes=error.codes, reason=error.reason, blocked=blocked, gives_up=last_try
        )
        self._write(partial(attempt.fail, failure), report)
        report.failed(attempt.operation, error, gives_up=last_try)
        if last_try:
            self._given_up[attempt.request] = attempt.uid
            return Done()
        if error.requeue_after is not None:
            return Again(error.requeue_after)
        if error.retry_after is not None:
            return Again(min(max(error.retry_after, 1.0), _cap(attempt) or DELETION_BACKOFF_CAP))
        return Failed(cap=_cap(attempt))

    def _is_last_try(self, attempt: Attempt, found: Sequence[ErrorCode]) -> bool:
        """Whether a deletion that failed like this has been tried for long enough."""
        since = attempt.start.deletion_timestamp
        if attempt.operation is not Operation.DELETE or since is None:
            return False
        return gives_up(self._m.escalations, found, self._seconds_since(since))

    def _seconds_since(self, timestamp: str | None) -> float:
        if timestamp is None:
            return 0.0
        return (self._m.clock.now() - parse_time(timestamp)).total_seconds()

    def _write(self, write: Callable[[], None], report: Reporter) -> None:
        """Writes a status beside the result; failing at that must not hide the rest.

        Raises Vanished.
        """
        try:
            write()
        except Vanished:
            raise
        except Exception as error:
            report.status_not_written(error)

    def _count_released(self, request: Request, entry: Entry[Header] | None) -> None:
        """Counts a release whose answer got lost: cleaned up by us, and let go of since."""
        cleaned = self._cleaned.get(request)
        if cleaned is None:
            return
        holders: Sequence[str] = ()
        if entry is not None and entry.header.uid == cleaned.uid:
            holders = entry.header.finalizers
        if self.kind.finalizer in holders:
            return
        del self._cleaned[request]
        self._bypasses.let_go(request)
        self.forcing.budgets.forget(request)
        report = self._reporter(request, cleaned.uid)
        report.released(cleaned.outcome, self._seconds_since(cleaned.since), holders)

    def _reporter(self, request: Request, uid: str, type: str = "") -> Reporter:
        m = self._m
        return Reporter(self.kind, request, uid, m.events, m.metrics, type, m.all_outcomes)


def _cap(attempt: Attempt) -> float | None:
    """Seconds at most until a failed operation is tried again; None: those of the queue."""
    if attempt.operation is Operation.FORCE_DELETE:
        return FORCED_BACKOFF_CAP
    return DELETION_BACKOFF_CAP if attempt.operation.deletes else None
