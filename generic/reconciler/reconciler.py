"""The one reconciler: from a request to a result, for every kind.

`Reconciler.reconcile` has the whole flow: look the object up, choose the operation, guard, call the
actuator, report, release. Not here: decisions (`operation`, `failure`), writes (`attempt`), reports
(`reporter`), queueing (`controller`).

Invariants that this module must keep:
1. Our finalizer is on the object, acknowledged, before the first reconcile or restore.
2. It is removed only after the actuator succeeded, or a force deletion recorded what remains.
3. Finalizers of other controllers on our objects are never removed.
4. After deletionTimestamp no finalizer is added, and spec is never patched.
5. An error is visible: lastError with codes, an event, a metric.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec import Struct

from actuator.codec import read_json
from actuator.errors import ApiError
from actuator.interface import Actuator, Client, Clock, config_class, kind_of, object_class
from actuator.interface import Result as CallResult
from generic.controller.controller import Again, Done, Failed, Result, WorkerReplaced
from generic.kube.clock import trusted_now
from generic.kube.clusters import Clusters
from generic.kube.dropped import NotStored
from generic.kube.errorinfo import ErrorInfo, read_error
from generic.kube.finalizers import Stale
from generic.kube.headers import Header, Request
from generic.kube.remote import Remote
from generic.kube.store import StoredObject
from generic.kube.timers import Timers
from generic.kube.writer import ObjectGone, Writer
from generic.reconciler.annotation import asks_for_more
from generic.reconciler.attempt import Attempt, StatusUnwritable
from generic.reconciler.calls import AbandonedCalls
from generic.reconciler.deletion.force_deletion import ForceDeletion
from generic.reconciler.deletion.late_cleanup import LateCleanup
from generic.reconciler.deletion.watchdog import DeletionWatchdog
from generic.reconciler.failure import Limits, Waiting, classify, seconds_since
from generic.reconciler.invoker import ActuatorCall, CallFailed, Invoker
from generic.reconciler.lifecycle import CleanedUp, Finished, Guarded, Release, Released
from generic.reconciler.operation import (
    Blocked,
    Nothing,
    Operation,
    bad_force_value,
    choose_operation,
)
from generic.reconciler.origin import DeletionOrigin, origin_of, version_of
from generic.reconciler.reporter import Reporter, Sinks
from generic.reconciler.track import Track, Tracks
from generic.serving.metrics import Outcome as Deletion

_STALE_SECONDS = 0.1
"""Maximum seconds before the next attempt at an object that other clients change faster than we
write, unless it calls the actuator again: they must not set the rate of its calls."""


class Dependencies(Struct, frozen=True, kw_only=True):
    """The collaborators of a reconciler; `wiring` puts them together."""

    client: Client
    writer: Writer
    clusters: Clusters
    sinks: Sinks
    clock: Clock
    abandoned: AbandonedCalls
    timers: Timers
    """Publishes Processing."""
    gate: Callable[[], None]
    """Raise LeaseLost if this process no longer leads."""
    remote: Remote
    seed_identity: Callable[[], str] = str
    """Return the identity of the seed, or ""."""
    processing_after: float | None = 1.0
    """Seconds an operation runs before Processing is published; None: always, at once."""
    force_delete_budget: float | None = 90.0
    """Seconds for a force deletion; None for no limit."""
    give_up_after: Limits = {}
    """How long deletions are retried."""


class Reconciler:
    """Runs one actuator for the objects of its kind. `watchdog` must observe every event."""

    def __init__(self, actuator: Actuator[Any], dependencies: Dependencies) -> None:
        self._d = d = dependencies
        self._kind = kind_of(actuator)
        self._cls = object_class(actuator)
        self._store = d.writer.store
        self._tracks = Tracks(d.abandoned, d.clock, d.force_delete_budget)
        verdict = d.clusters.verdict
        cluster = d.clusters.cluster
        self.watchdog = DeletionWatchdog(self._kind, self._store, self._tracks, verdict, d.clock)
        self._invoker = Invoker(
            actuator=actuator,
            kind=self._kind,
            client=d.client,
            clock=d.clock,
            gate=d.gate,
            tracks=self._tracks,
            timed=d.sinks.metrics.called,
            remote=d.remote,
            timers=d.timers,
            processing_after=d.processing_after,
        )
        self._force_deletion = ForceDeletion(self._invoker, self._cls, cluster)
        self._late_cleanup = LateCleanup(self._invoker, self._cls, cluster)

    def reconcile(self, request: Request, failures: int = 0) -> Result:
        """Run the operation that the object needs, after so many `failures` in a row.

        Raises WorkerReplaced, and no other exception on purpose.
        """
        entry = self._store.get(request)
        self._count_lost_releases(request, entry)
        track = self._tracks.current(request, entry.header.uid if entry else None)
        if track is None:
            return Done()  # deleted, and its cleanup is finished
        self._tracks.give_up(track, None)
        known = track.removed or (entry.header if entry else None)
        type_ = known.type if known else ""
        find_origin = partial(self._origin, track, entry)
        report = Reporter(self._kind, track, self._d.sinks, type_, find_origin)
        chosen = self._choose(track, entry, report)
        try:
            if chosen is Operation.LATE_CLEANUP:
                return self._late_cleanup.run(track, entry, report)
            if isinstance(chosen, Nothing) or entry is None:
                return Done()
            operation = chosen.operation if isinstance(chosen, Blocked) else chosen
            attempt = Attempt(self._kind, track, entry, operation, self._d.writer, self._d.clock)
            attempt.has_config = config_class(self._invoker.actuator) is not None
            try:
                if isinstance(chosen, Blocked):
                    raise chosen.error(request.namespace)
                return self._perform(attempt, report)
            except WorkerReplaced:
                raise
            except Exception as error:  # also objects that cannot be read or written
                return self._handle(error, attempt, failures + 1, report)
            finally:
                self._tracks.note_lost_fields(track, loses_fields=attempt.loses_fields)
                if attempt.not_stored is not None:
                    report.status_not_written(attempt.not_stored)
        finally:
            self._tracks.settle(track)

    def _origin(self, track: Track, entry: StoredObject[Header] | None) -> DeletionOrigin:
        """Return the origin; without a Cluster, as it was when the Cluster was last read."""
        cluster = self._d.clusters.cluster(track.request.namespace)
        if track.origin is not None and not cluster.exists:
            return track.origin
        raw = track.removed.raw if track.removed else entry.raw if entry else b"{}"
        origin = origin_of(
            cluster,
            read_json(raw),
            seed_identity=self._d.seed_identity(),
            extension_version=version_of(self._invoker.actuator),
        )
        self._tracks.keep_origin(track, origin)
        return origin

    def _choose(
        self, track: Track, entry: StoredObject[Header] | None, report: Reporter
    ) -> Operation | Nothing | Blocked:
        """Return the operation; report skipped and malformed deletions."""
        removed = track.removed is not None
        header = entry.header if entry else None
        verdict = self._d.clusters.resolve(self._kind, track.request.namespace)
        chosen = choose_operation(self._kind, header, verdict, removed=removed)
        if isinstance(chosen, Nothing):
            report.log.debug("no operation required", extra={"fields": {"reason": chosen.value}})
        if header is None or header.deletion_timestamp is None or removed:
            return chosen
        value = bad_force_value(self._kind, header, verdict)
        if value is not None:
            report.bad_force_value(value)
        ours = self._kind.finalizer in header.finalizers
        if isinstance(chosen, Nothing) and chosen.waits and ours:
            report.deletion(Deletion.SKIPPED)
        return chosen

    def _perform(self, attempt: Attempt, report: Reporter) -> Result:
        """Guard, call, report, release."""
        operation = attempt.operation
        track = attempt.track
        if operation.reports:
            try:
                attempt.guard(self._cls)
            except Stale:
                return Failed(cap=_STALE_SECONDS)
        if operation.guards:
            self._tracks.send(track, Guarded())
        if self._d.processing_after is None and operation.calls:
            attempt.publish()
        result = CallResult()
        deletion = Deletion.SKIPPED if not operation.calls else None
        since = attempt.start.deletion_timestamp
        done = track.finished
        if operation.deletes and done is not None and done.deleting_since == since:
            deletion = done.outcome  # only the finalizer patch failed
        elif operation is Operation.FORCE_DELETE:
            deletion = self._force_deletion.run(attempt, report)
        elif operation.calls:
            result = self._call(attempt, report)
            deletion = Deletion.DELETED if operation.deletes else None
        if operation.deletes and deletion is not None:
            self._tracks.send(track, Finished(CleanedUp(deletion, since)))
        if operation.reports:
            attempt.succeed()
        if operation.releases:
            self._release(attempt, deletion, report)
        elif result.requeue_after is None or operation is not Operation.RESTORE:
            attempt.settle()
        report.succeeded(operation)
        if asks_for_more(self._kind, operation, attempt.start):
            return Again(0)
        return Done() if result.requeue_after is None else Again(result.requeue_after)

    def _call(self, attempt: Attempt, report: Reporter) -> CallResult:
        """Call the actuator. Raises CallFailed with the actuator's error."""
        track = attempt.track
        self._invoker.refuse_while_one_hangs(track)
        obj = attempt.open(self._cls)
        call = ActuatorCall(self._invoker, attempt.operation, report, attempt.save)
        call.lacks_account = attempt.lacks_account
        cluster = self._d.clusters.cluster(track.request.namespace)
        self._tracks.begin(track, call, attempt.start.resource_version)
        self.watchdog.observe_forced(track.request)  # forced between the decision and now
        publish = partial(self._publish, attempt, report)
        try:
            return self._invoker.invoke(call, track, obj, cluster, attempt.capture, publish)
        finally:
            attempt.accepted = call.accepted
            attempt.account = call.account

    def _publish(self, attempt: Attempt, report: Reporter, text: str) -> None:
        """Publish Processing, as the operation is still running."""
        with suppress(ObjectGone):  # its worker handles it
            self._write(partial(attempt.publish, text), report)

    def _release(self, attempt: Attempt, deletion: Deletion | None, report: Reporter) -> None:
        """Remove our finalizer, and count the end of a deletion."""
        track = attempt.track
        if deletion is not None:
            report.ends(deletion)
        budget = track.budget  # read now: the DELETED event may arrive before the answer
        self._tracks.send(track, Release())
        attempt.release()
        self._tracks.send(track, Released())
        if budget is not None and attempt.operation is Operation.FORCE_DELETE:
            seconds = self._d.clock.monotonic() - budget.since
            self._d.sinks.metrics.forced(seconds, over_budget=budget.over)
        if deletion is not None:
            seconds = seconds_since(attempt.start.deletion_timestamp, self._d.clock.now())
            report.released(deletion, seconds, attempt.others_finalizers)

    def _handle(
        self, error: Exception, attempt: Attempt, failures: int, report: Reporter
    ) -> Result:
        """Convert an error into a result, and report it."""
        if isinstance(error, Stale):
            return Failed(cap=None if attempt.operation.reports else _STALE_SECONDS)
        try:
            if isinstance(error, ObjectGone):
                raise error
            found = error.error if isinstance(error, CallFailed) else read_error(error)
            return self._fail(attempt, found, failures, report)
        except ObjectGone:  # the answer to any write, also to that of an error
            known = attempt.entry
            track = attempt.track
            here = self._store.get(track.request)
            if here is not None and here.header.uid == track.uid:
                return Done()  # the watch will report whether it was deleted, or etcd restored
            ours = self._kind.finalizer in known.header.finalizers
            if ours and self.watchdog.keep_removed(track, known.header, known.raw):
                return Again(0)
            self._count_lost_releases(track.request, self._store.get(track.request))
            return Done()

    def _fail(self, attempt: Attempt, error: ErrorInfo, failures: int, report: Reporter) -> Result:
        """Report a failed attempt. Raises ObjectGone."""
        operation = attempt.operation
        track = attempt.track
        d = self._d
        since = attempt.start.deletion_timestamp
        now = trusted_now(d.clock)
        failure, result = classify(error, operation, failures, since, now, d.give_up_after)
        if failure is None:
            return result
        if isinstance(failure, Waiting):
            try:
                attempt.wait(failure.text)
            except (StatusUnwritable, NotStored) as unwritable:
                return self._fail(attempt, read_error(unwritable), failures, report)
            except (ApiError, Stale) as refused:
                report.status_not_written(refused)
            report.requeued(operation)
            return result
        if operation is Operation.FORCE_DELETE:
            self._tracks.note_force_deletion(
                track, lambda budget: budget.failed(failure.text, *failure.codes)
            )
        self._write(partial(attempt.fail, failure), report)
        self._tracks.give_up(track, (now or d.clock.now()) if failure.gives_up else None)
        report.failed(operation, error, gives_up=failure.gives_up)
        return result

    def _write(self, write: Callable[[], None], report: Reporter) -> None:
        """Write a status; its failure must not hide the result. Raises ObjectGone."""
        try:
            write()
        except ObjectGone:
            raise
        except Exception as error:
            report.status_not_written(error)

    def _count_lost_releases(self, request: Request, entry: StoredObject[Header] | None) -> None:
        """Count releases whose answer was lost: we cleaned up, and the finalizer is removed."""
        for track in self._tracks.named(request):
            done = track.finished
            is_here = entry is not None and entry.header.uid == track.uid
            holders = entry.header.finalizers if entry is not None and is_here else ()
            if done is None or self._kind.finalizer in holders:
                continue
            self._tracks.send(track, Released())
            seconds = seconds_since(done.deleting_since, self._d.clock.now())
            find_origin = partial(self._origin, track, None)
            report = Reporter(self._kind, track, self._d.sinks, find_origin=find_origin)
            report.released(done.outcome, seconds, holders)
            self._tracks.settle(track)
