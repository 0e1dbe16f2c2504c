"""DeletionWatchdog: acts on deletions immediately, independently of the workers.

It observes events and ticks: it starts and ends the budgets of force deletions, cancels calls that
delay them, abandons unresponsive calls, and detects finalizers removed externally. Besides workers
it is the only code that changes a Track. It never blocks: it sends no request, and it returns the
work for the controller.
"""

import logging
from collections.abc import Callable
from datetime import datetime

from msgspec import Struct

from actuator.cluster import Verdict
from actuator.interface import Clock
from actuator.meta import ClusterNeed, Kind
from generic.kube.clock import trusted_now
from generic.kube.headers import Event, Header, Request
from generic.kube.store import Store
from generic.reconciler.lifecycle import FinalizerRemoved, Releasing, Removed
from generic.reconciler.operation import Nothing, Operation, choose_operation, is_forced
from generic.reconciler.track import Track, Tracks
from generic.serving.metrics import TerminatingState

logger = logging.getLogger(__name__)


class DeletionWatchdog(Struct, frozen=True):
    """The watchdog of one controller."""

    kind: Kind
    store: Store[Header]
    tracks: Tracks
    verdict: Callable[[Kind, str], Verdict]
    """Return the verdict of a namespace's Cluster, without a request."""
    clock: Clock

    def observe(self, event: Event[Header]) -> bool:
        """Process a new event; return whether the object must be enqueued urgently.

        True if its deletion is forced from now on, or if our finalizer was removed externally.
        """
        old = event.old
        new = event.new
        forced = False
        if new is not None and event.went_back:
            self.tracks.revive(event.request, new.uid)
        if new is not None and new.deletion_timestamp is not None:
            forced = self.observe_forced(event.request)
        if old is None or event.own or event.late or not self._is_removed(old, new):
            return forced
        entry = self.store.get(event.request)
        last = event.last if entry is None else entry.raw
        track = self.tracks.of(event.request, old.uid)
        was_lost = event.relisted and new is None
        return self.keep_removed(track, old, last, was_lost=was_lost) or forced

    def forget(self, request: Request, uid: str) -> None:
        """Drop the track of a deleted object, as soon as no work on it is pending."""
        for track in self.tracks.named(request):
            if track.uid == uid:
                self.tracks.delete(track)

    def _is_removed(self, old: Header, new: Header | None) -> bool:
        """Whether a deleting, or deleted, object lost our finalizer."""
        ours = self.kind.finalizer
        lost = new is None or (ours not in new.finalizers and new.deletion_timestamp is not None)
        return ours in old.finalizers and lost

    def keep_removed(
        self, track: Track, header: Header, raw: bytes, *, was_lost: bool = False
    ) -> bool:
        """Keep the last known object for its late cleanup, unless we released it.

        An object that `was_lost` is missing in a list, and no watch showed its deletion: without a
        deletionTimestamp, a restore of etcd may have removed it, so it is recorded only.
        """
        if isinstance(track.state, Releasing) or not raw:
            return False
        forced = is_forced(self.kind, header, self.verdict(self.kind, track.request.namespace))
        operation: Operation | None = Operation.FORCE_DELETE if forced else Operation.DELETE
        if was_lost and header.deletion_timestamp is None:
            operation = None
        budget = None  # kept here: the end of the object ends that of its track
        if operation is Operation.FORCE_DELETE:
            budget, _ = self.tracks.start_budget(track)
        removed = Removed(raw, operation, type=header.type, budget=budget)
        self.tracks.send(track, FinalizerRemoved(removed))
        return True

    def observe_forced(self, request: Request) -> bool:
        """If the deletion is forced, start its budget and cancel a call that delays it.

        Return whether the budget started, and the object must be enqueued urgently.
        """
        entry = self.store.get(request)
        if entry is None or entry.header.deletion_timestamp is None:
            return False
        if self._decide(request, entry.header) is not Operation.FORCE_DELETE:
            return False
        track = self.tracks.of(request, entry.header.uid)
        _, is_new = self.tracks.start_budget(track)
        call = track.call
        if call is not None and call.operation is not Operation.FORCE_DELETE and not call.cancelled:
            call.cancel("force deletion requested")
        return is_new

    def tick(self) -> tuple[list[Request], list[Request], list[Request]]:
        """End budgets, abandon overdue calls, and drop the expired Secrets that are remembered.

        Return the objects whose budget is exceeded, those whose worker must be replaced, and those
        to retry: they were given up on a wall clock that was wrong.
        """
        if (trusted := trusted_now(self.clock)) is not None:  # a dropped Secret is not read again
            self.tracks.secrets.drop_expired(trusted)
        now = self.clock.monotonic()
        tracks = self.tracks.all()
        over = [track.request for track in tracks if self._ends(track, now)]
        abandoned = [track.request for track in tracks if self._abandons(track)]
        wall = self.clock.now()
        return over, abandoned, [track.request for track in tracks if self._resumes(track, wall)]

    def _abandons(self, track: Track) -> bool:
        call = track.call
        if call is None or call.limit > self.clock.monotonic():
            return False
        if not call.cancelled:
            call.cancel("the deadline of this operation passed", grace=0)
        if not self.tracks.abandon(track, call):
            return False
        fields = {"kind": self.kind.name, "object": str(track.request), **call.progress()}
        logger.warning("call abandoned", extra={"fields": fields})
        return True

    def _ends(self, track: Track, now: float) -> bool:
        """Whether the budget has just ended; cancels a running call."""
        if track.budget is None or track.budget.until > now or not self.tracks.end_budget(track):
            return False
        if (call := track.call) is not None:
            call.cancel("the budget of the force deletion is exceeded", grace=0)
        return True

    def _resumes(self, track: Track, now: datetime) -> bool:
        """Whether the wall clock is before the moment of giving up: it was set back since."""
        if track.gave_up is None or track.gave_up <= now:
            return False
        self.tracks.give_up(track, None)
        return True

    def began_after(self, request: Request, cluster_version: int) -> bool:
        """Whether the object's last call began from a state newer than that of the Cluster."""
        if self.kind.cluster is ClusterNeed.NEVER:
            return False
        return any(track.called_at > cluster_version for track in self.tracks.named(request))

    def terminating(self, request: Request, header: Header) -> TerminatingState:
        """Return the state of an object under deletion.

        An object of a shoot that Gardener gave up is skipped, whatever failed before.
        """
        if self.kind.finalizer not in header.finalizers:
            return TerminatingState.FOREIGN_FINALIZER
        decided = self._decide(request, header)
        if isinstance(decided, Nothing) and decided.waits:
            return TerminatingState.SKIPPED
        if any(item.gave_up for item in self.tracks.named(request) if item.uid == header.uid):
            return TerminatingState.GAVE_UP
        return TerminatingState.FAILING if header.is_failing else TerminatingState.DELETING

    def _decide(self, request: Request, header: Header) -> object:
        return choose_operation(self.kind, header, self.verdict(self.kind, request.namespace))
