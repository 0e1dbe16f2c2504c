"""Late cleanup: for objects whose finalizer was removed externally, and deleted without cleanup.

The removal is counted, reported, and recorded as Orphans, however many attempts that takes: no
other trace of the object remains, but a ForceDeletionRecord if the deletion was forced. Then the
cleanup runs with the last known state of the object, in a limited number of attempts; not if the
object disappeared without a deletion, as after a restore of etcd: its resources may be in use. A
new object of the same name waits some minutes for the record, and is never touched by the cleanup:
the external resources might be its own.

Assumption: this process knew the object. Removals while no manager ran are not detected.
Not here: the detection (`watchdog` and `reconciler`).
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from actuator.cluster import Cluster
from actuator.codec import read_json
from actuator.errors import ApiError, DecodeError, LeaseLost
from actuator.meta import Object, value_at
from actuator.tolerance import decode_tolerantly
from generic.controller.controller import Again, Done, Failed, Result
from generic.kube.headers import Header
from generic.kube.store import StoredObject
from generic.reconciler.deletion.evidence import leave_record
from generic.reconciler.invoker import ActuatorCall, CallFailed, Invoker
from generic.reconciler.lifecycle import LateCleanupFailed, Recorded, Released, Removed
from generic.reconciler.operation import Operation
from generic.reconciler.orphans import UNKNOWN, Orphan, OrphanReason, mark_gone, record_all
from generic.reconciler.orphans.forced import Ended
from generic.reconciler.orphans.probe import refused
from generic.reconciler.reporter import Reporter
from generic.reconciler.track import Track

_MAX_ATTEMPTS = 20
"""About six minutes with the queue's backoff."""
_RECORD_SECONDS = 5.0
"""Maximum seconds of the request for a ForceDeletionRecord."""
_MAX_BACKOFF_SECONDS = 60.0
"""Maximum seconds between two attempts."""
_MESSAGE = "finalizer removed externally before cleanup finished"
_LOST = "object disappeared without a deletion, as after a restore of etcd"


class LateCleanup(Struct, frozen=True):
    """The late cleanups of one controller."""

    invoker: Invoker
    cls: type[Object]
    clusters: Callable[[str], Cluster]

    def run(self, track: Track, entry: StoredObject[Header] | None, report: Reporter) -> Result:
        """Record, then clean up; `entry` is the current object of that name.

        Raises WorkerReplaced.
        """
        removed = track.removed
        assert removed is not None, "the operation requires a removal"
        try:
            obj = decode_tolerantly(self.cls, removed.raw)
        except DecodeError:
            obj = None
        try:
            if removed.orphans is None:
                orphans = self._record(track, removed, obj, report)
                self.invoker.tracks.send(track, Recorded(orphans))
                removed = track.removed
                if removed is None:
                    return Again(0)  # etcd was restored meanwhile: the object exists again
            self._clean_up(track, removed, obj, entry, report)
        except LeaseLost:
            return Done()
        except (CallFailed, ApiError) as error:
            if self._is_tried_again(track, error, report, name_is_taken=entry is not None):
                return Failed(cap=_MAX_BACKOFF_SECONDS)
        self.invoker.tracks.send(track, Released())  # the DELETED event is no second removal
        return Done() if entry is None else Again(0)

    def _record(
        self, track: Track, removed: Removed, obj: object, report: Reporter
    ) -> tuple[Orphan, ...]:
        """Count, report and record remaining resources. Raises ApiError, WorkerReplaced."""
        left = [UNKNOWN]
        if obj is not None and not track.abandoned:
            left = self.invoker.external_resources(report, track, obj) or left
        client = self.invoker.client
        now = self.invoker.clock.now()
        message = _LOST if removed.operation is None else _MESSAGE
        reason = OrphanReason.FINALIZER_REMOVED_EXTERNALLY
        orphans = record_all(client, report.orphaned_from, left, reason, message, now)
        if removed.budget is not None:
            since = value_at(read_json(removed.raw), "metadata", "deletionTimestamp")
            ended = Ended(reason=reason, deletion_requested_at=since, orphans=orphans)
            is_retried = removed.failures + 1 < _MAX_ATTEMPTS
            leave_record(self.invoker, removed.budget, report, ended, _RECORD_SECONDS, is_retried)
        report.removed_externally()
        report.orphans_recorded(left)
        return orphans

    def _clean_up(
        self,
        track: Track,
        removed: Removed,
        obj: Any,
        entry: StoredObject[Header] | None,
        report: Reporter,
    ) -> None:
        """Call the actuator, unless it must not touch what may be in use.

        Raises CallFailed, ApiError, WorkerReplaced.
        """
        if obj is None:
            report.log.warning("late cleanup skipped: cannot read the object")
        elif removed.operation is None:
            report.log.warning("late cleanup skipped: no deletion of the object was seen")
        elif entry is not None and entry.header.uid != track.uid:
            report.log.warning("late cleanup skipped: the name belongs to a new object")
        else:
            self.invoker.refuse_while_one_hangs(track)
            call = ActuatorCall(self.invoker, removed.operation, report)
            self.invoker.tracks.begin(track, call)
            self.invoker.invoke(call, track, obj, self.clusters(track.request.namespace))
            self._finish(removed, report)

    def _finish(self, removed: Removed, report: Reporter) -> None:
        """Report a cleanup; after Delete, mark the Orphans as Gone. Raises ApiError."""
        if removed.operation is Operation.DELETE:  # a force deletion may leave resources
            for orphan in removed.orphans or ():
                mark_gone(self.invoker.client, orphan, self.invoker.clock.now())
        report.once(
            "CleanedUpLate", "Late cleanup finished after the external removal of the finalizer"
        )

    def _is_tried_again(
        self,
        track: Track,
        error: CallFailed | ApiError,
        report: Reporter,
        *,
        name_is_taken: bool,
    ) -> bool:
        """Report a failed attempt. Recording is retried for ever, unless another object waits."""
        self.invoker.tracks.send(track, LateCleanupFailed())
        removed = track.removed
        if removed is None:
            return True  # etcd was restored meanwhile: the object exists again
        is_recorded = removed.orphans is not None
        what = "late cleanup failed" if is_recorded else "recording of remaining resources failed"
        text = error.error.text if isinstance(error, CallFailed) else refused(error)
        report.log.warning(what, extra={"fields": {"error": text}})
        return removed.failures < _MAX_ATTEMPTS or not (is_recorded or name_is_taken)
