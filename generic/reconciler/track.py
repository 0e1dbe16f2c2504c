"""Track: everything that this process remembers of one object between two attempts.

`Tracks` has one track per object (request and uid) of a controller, one lock, and one place that
drops a track: `settle`. A restart of the process forgets all of it. Deciding what to do with it
is the business of the modules that read it: `deletion` and `reconciler`.
"""

from __future__ import annotations

import math
import threading

import attrs

from actuator.interface import Clock
from generic.controller.metrics import Outcome
from generic.kube.headers import Request
from generic.reconciler.calls import AbandonedCalls, Call
from generic.reconciler.known_secrets import SharedSecret
from generic.reconciler.operation import Operation
from generic.reconciler.orphans import Orphan


@attrs.define
class Budget:
    """The time of one force deletion, in seconds on the monotonic clock."""

    since: float
    until: float
    """Infinite where force deletions have no budget."""
    over: bool = False
    unresponsive: bool = False
    """The actuator did not return from `external_resources`."""
    last_error: str = ""

    def remaining(self, now: float) -> float:
        """Return the seconds that are left at `now`, at least 0."""
        return max(0.0, self.until - now)


@attrs.frozen
class CleanedUp:
    """The actuator finished a deletion; our finalizer may still be on the object."""

    outcome: Outcome
    deleting_since: str | None
    """The deletionTimestamp of the object."""


@attrs.define
class Removal:
    """Another party removed our finalizer before cleanup was finished."""

    raw: bytes
    """The object as it was last known, as JSON."""
    operation: Operation
    """The operation that makes up for the missing cleanup."""
    orphans: list[Orphan] | None = None
    """The recorded Orphans; None before they are recorded."""
    failures: int = 0


@attrs.define(eq=False)
class Track:
    """What is remembered of one object; workers and the watchdog share it."""

    request: Request
    uid: str
    deleted: bool = False
    """Whether the DELETED event of the object was observed: no other event of it can follow."""
    called_at: int = 0
    """The resourceVersion of the object from which the last call began."""
    call: Call | None = None
    """The call that is running."""
    abandoned: tuple[Call, ...] = ()
    """Calls that were abandoned and have not returned."""
    budget: Budget | None = None
    """Set while the object is under forced deletion."""
    gave_up: bool = False
    releasing: bool = False
    """Whether this process may have removed the finalizer, or has handled its removal."""
    cleaned_up: CleanedUp | None = None
    removal: Removal | None = None
    secrets: dict[Request, SharedSecret] | None = None
    """The Secrets that were read for the object, as last read."""

    def end_deletion(self) -> None:
        """Forget what only an unfinished deletion needs: the finalizer is removed."""
        self.budget = self.cleaned_up = self.removal = self.secrets = None

    @property
    def is_pending(self) -> bool:
        """Whether work on the object is unfinished though the object may be deleted."""
        return bool(self.call or self.abandoned or self.cleaned_up or self.removal)


class Tracks:
    """The tracks of one controller; safe to use from any thread."""

    def __init__(self, abandoned: AbandonedCalls, clock: Clock, budget: float | None) -> None:
        """`budget` is the time of a force deletion in seconds; None for no limit."""
        self._abandoned = abandoned
        self._clock = clock
        self._seconds = math.inf if budget is None else budget
        self._lock = threading.Lock()
        self._tracks: dict[Request, tuple[Track, ...]] = {}  # seldom more than one of a name

    def __len__(self) -> int:
        return sum(map(len, list(self._tracks.values())))

    def of(self, request: Request, uid: str) -> Track:
        """Return the track of that object, a new one where there is none."""
        with self._lock:
            return self._find(request, uid) or self._add(Track(request, uid))

    def current(self, request: Request, uid: str | None) -> Track | None:
        """Return the object to work on; `uid` is that of the object that has the name now.

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

    def record_removal(self, track: Track, removal: Removal) -> None:
        """Keep an object that is deleted until its removal was handled; the first one counts."""
        with self._lock:
            track.removal = track.removal or removal
            self._add(track)

    def start_budget(self, track: Track) -> Budget:
        """Return the budget of a force deletion; it begins with the first call of this method."""
        with self._lock:
            if track.budget is None:
                now = self._clock.monotonic()
                track.budget = Budget(now, now + self._seconds)
            return track.budget

    def begin(self, track: Track, call: Call) -> None:
        """Register a call that is about to be made."""
        with self._lock:
            track.call = call
            self._add(track)  # the object may be deleted meanwhile, and the call can hang

    def begin_reserved(self, track: Track, call: Call) -> bool:
        """Register a call that can be abandoned for certain; False where too many already are."""
        if not self._abandoned.reserve(call):
            return False
        self.begin(track, call)
        return True

    def end(self, track: Track, call: Call) -> bool:
        """Register that a call returned; False where it had been abandoned."""
        self._abandoned.discard(call)
        with self._lock:
            if track.call is call:
                track.call = None
            if call in track.abandoned:
                track.abandoned = tuple(one for one in track.abandoned if one is not call)
            if track.deleted:
                self._drop_if_done(track)
        return call.end()

    def abandon(self, track: Track, call: Call) -> bool:
        """Abandon a call; False where it returned before, or too many are abandoned already."""
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
