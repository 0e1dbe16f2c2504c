"""Track: the state that this process keeps of one object between two attempts.

`Tracks` has one track per object (request and uid) of a controller, one lock, and one place that
drops a track: `settle`. A restart of the process loses all of it. Not here: decisions based on it
(`deletion` and `reconciler`).
"""

import math
import threading
from datetime import datetime

from msgspec import Struct

from actuator.interface import Clock
from generic.controller.metrics import Outcome
from generic.kube.headers import Request
from generic.reconciler.calls import AbandonedCalls, Call
from generic.reconciler.known_secrets import SharedSecret, SharedSecrets
from generic.reconciler.operation import Operation
from generic.reconciler.orphans import Orphan


class Budget(Struct):
    """The time of one force deletion, in seconds on the monotonic clock."""

    since: float
    until: float
    """Infinite if force deletions have no budget."""
    over: bool = False
    unresponsive: bool = False
    """The actuator did not return from `external_resources`."""
    last_error: str = ""

    def remaining(self, now: float) -> float:
        """Return the seconds left at `now`, at least 0."""
        return max(0.0, self.until - now)


class CleanedUp(Struct, frozen=True):
    """The actuator finished a deletion; our finalizer may still be on the object."""

    outcome: Outcome
    deleting_since: str | None
    """The deletionTimestamp of the object."""


class Removal(Struct):
    """Our finalizer was removed externally before cleanup finished."""

    raw: bytes
    """The last known state of the object, as JSON."""
    operation: Operation | None
    """The operation for the missing cleanup; None if no deletion of the object was seen."""
    orphans: list[Orphan] | None = None
    """The recorded Orphans; None before they are recorded."""
    failures: int = 0


class Track(Struct, eq=False):
    """The state of one object; workers and the watchdog share it."""

    request: Request
    uid: str
    deleted: bool = False
    """Whether the DELETED event of the object was observed: no other event of it can follow."""
    called_at: int = 0
    """The resourceVersion of the object from which the last call began."""
    call: Call | None = None
    """The running call."""
    abandoned: tuple[Call, ...] = ()
    """Abandoned calls that have not returned."""
    budget: Budget | None = None
    """Set while the object is under forced deletion."""
    gave_up: datetime | None = None
    """The wall time at which the deletion was given up; None while it is retried."""
    loses_fields: bool = False
    """Whether the API server did not store a field that the actuator set in the status."""
    releasing: bool = False
    """Whether this process may have removed the finalizer, or has handled its removal."""
    cleaned_up: CleanedUp | None = None
    removal: Removal | None = None
    secrets: dict[Request, SharedSecret] | None = None
    """The Secrets that were read for the object, as last read."""

    def end_deletion(self) -> None:
        """Clear the state of an unfinished deletion: the finalizer is removed."""
        self.budget = self.cleaned_up = self.removal = self.secrets = None

    @property
    def is_pending(self) -> bool:
        """Whether work on the object is unfinished, even if the object is deleted."""
        return bool(self.call or self.abandoned or self.cleaned_up or self.removal)


class Tracks:
    """The tracks of one controller; safe to use from any thread."""

    def __init__(self, abandoned: AbandonedCalls, clock: Clock, budget: float | None) -> None:
        """`budget` is the time of a force deletion in seconds; None for no limit."""
        self._abandoned = abandoned
        self._clock = clock
        self._seconds = math.inf if budget is None else budget
        self.secrets = SharedSecrets()
        self._lock = threading.Lock()
        self._tracks: dict[Request, tuple[Track, ...]] = {}  # rarely more than one per name

    def of(self, request: Request, uid: str) -> Track:
        """Return the track of that object; create one if there is none."""
        with self._lock:
            return self._find(request, uid) or self._add(Track(request, uid))

    def current(self, request: Request, uid: str | None) -> Track | None:
        """Return the track to work on; `uid` is that of the current object of that name.

        A deleted object whose late cleanup is unfinished comes first.
        """
        for track in self.named(request):
            if track.removal is not None:
                return track
        return None if uid is None else self.of(request, uid)

    def named(self, request: Request) -> tuple[Track, ...]:
        """Return the tracks of all objects of that name: a deleted one may be unfinished."""
        return self._tracks.get(request, ())

    def all(self) -> list[Track]:
        """Return all tracks."""
        return [track for tracks in list(self._tracks.values()) for track in tracks]

    def settle(self, track: Track) -> None:
        """Drop the track if its object is deleted and no work on it is pending."""
        with self._lock:
            self._drop_if_done(track)

    def revive(self, request: Request, uid: str) -> None:
        """Forget the end of an object: etcd was restored to a state before it."""
        with self._lock:
            track = self._find(request, uid)
            if track is not None:
                track.end_deletion()
                track.deleted = track.releasing = False
                track.gave_up = None
                track.called_at = 0

    def record_removal(self, track: Track, removal: Removal) -> None:
        """Keep a deleted object until its removal is handled; the first removal counts."""
        with self._lock:
            track.removal = track.removal or removal
            self._add(track)

    def start_budget(self, track: Track) -> Budget:
        """Return the budget of a force deletion; the first call of this method starts it."""
        with self._lock:
            if track.budget is None:
                now = self._clock.monotonic()
                track.budget = Budget(now, now + self._seconds)
            return track.budget

    def begin(self, track: Track, call: Call) -> None:
        """Register a call that is about to be made."""
        with self._lock:
            track.call = call
            self._add(track)  # the object may be deleted meanwhile, and the call may hang

    def begin_reserved(self, track: Track, call: Call) -> bool:
        """Register a call that needs a reserved place; return False if none is free."""
        if not self._abandoned.reserve(call):
            return False
        self.begin(track, call)
        return True

    def end(self, track: Track, call: Call) -> bool:
        """Register that a call returned; return False if it had been abandoned."""
        self._abandoned.discard(call)
        with self._lock:
            if track.call is call:
                track.call = None
            if call in track.abandoned:
                track.abandoned = tuple(one for one in track.abandoned if one is not call)
            self._drop_if_done(track)
        return call.end()

    def abandon(self, track: Track, call: Call) -> bool:
        """Abandon a call; return False if it returned before, or if no place is free."""
        with self._lock:
            if track.call is not call or not self._abandoned.reserve(call):
                return False
            if not call.end():
                self._abandoned.discard(call)
                return False
            track.call = None
            track.abandoned = (*track.abandoned, call)
            self._abandoned.add(call)
            return True

    def _find(self, request: Request, uid: str) -> Track | None:
        return next((one for one in self._tracks.get(request, ()) if one.uid == uid), None)

    def _add(self, track: Track) -> Track:
        tracks = self._tracks.get(track.request, ())
        if track not in tracks:
            self._tracks[track.request] = (*tracks, track)
        return track

    def _drop_if_done(self, track: Track) -> None:
        if not track.deleted or track.is_pending:
            return
        left = tuple(one for one in self._tracks.get(track.request, ()) if one is not track)
        if left:
            self._tracks[track.request] = left
        else:
            self._tracks.pop(track.request, None)
