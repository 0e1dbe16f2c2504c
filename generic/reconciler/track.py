"""Track: what this process knows of one object between two attempts.

`Tracks` has one track per object (request and uid) of a controller, and one lock. Only this module
changes a track: workers and the watchdog send intents (`lifecycle`) or call the methods below.
A restart of the process loses all of it. Not here: decisions based on it (`deletion` and
`reconciler`).
"""

import logging
import math
import threading
from collections.abc import Callable
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from actuator.interface import Clock
from generic.kube.headers import Request
from generic.reconciler.budget import Budget
from generic.reconciler.calls import AbandonedCalls, Call
from generic.reconciler.known_secrets import SharedSecret, SharedSecrets
from generic.reconciler.lifecycle import (
    IDLE,
    Begin,
    Calling,
    CleanedUp,
    End,
    ImpossibleTransition,
    Intent,
    Released,
    Removed,
    State,
    WentBack,
    finished,
    removed,
    transition,
)
from generic.reconciler.origin import DeletionOrigin

logger = logging.getLogger(__name__)


class Track(Struct, eq=False):
    """The state of one object; workers and the watchdog share it. Assigned only in this module."""

    request: Request
    uid: str
    state: State = IDLE
    deleted: bool = False
    """Whether the DELETED event of the object was observed: no other event of it can follow."""
    called_at: int = 0
    """The resourceVersion of the object from which the last call began."""
    abandoned: tuple[Call, ...] = ()
    """Abandoned calls that have not returned."""
    budget: Budget | None = None
    """Set while the object is under forced deletion."""
    gave_up: datetime | None = None
    """The wall time at which the deletion was given up; None while it is retried."""
    loses_fields: bool = False
    """Whether the API server did not store a field that the actuator set in the status."""
    origin: DeletionOrigin | None = None
    """The origin as last read with a Cluster, which may be deleted before the object."""
    secrets: dict[Request, SharedSecret] | None = None
    """The Secrets that were read for the object, as last read."""

    @property
    def call(self) -> Call | None:
        """The running call."""
        return self.state.call if isinstance(self.state, Calling) else None

    @property
    def finished(self) -> CleanedUp | None:
        """The finished deletion whose release is not acknowledged yet."""
        return finished(self.state)

    @property
    def removed(self) -> Removed | None:
        """The external removal of our finalizer that is not handled yet."""
        return removed(self.state)

    @property
    def is_pending(self) -> bool:
        """Whether work on the object is unfinished, even if the object is deleted."""
        return bool(self.call or self.abandoned or self.finished or self.removed)


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
            if track.removed is not None:
                return track
        return None if uid is None else self.of(request, uid)

    def named(self, request: Request) -> tuple[Track, ...]:
        """Return the tracks of all objects of that name: a deleted one may be unfinished."""
        return self._tracks.get(request, ())

    def all(self) -> list[Track]:
        """Return all tracks."""
        return [track for tracks in list(self._tracks.values()) for track in tracks]

    def send(self, track: Track, intent: Intent) -> State:
        """Change the state of the object; return the new state."""
        with self._lock:
            self._move(track, intent)
            if isinstance(intent, Released):
                track.budget = track.secrets = None
            if track.is_pending:
                self._add(track)  # the object may be deleted meanwhile, and its track dropped
            return track.state

    def revive(self, request: Request, uid: str) -> None:
        """Forget the end of an object: etcd was restored to a state before it."""
        with self._lock:
            track = self._find(request, uid)
            if track is not None:
                self._move(track, WentBack())
                track.deleted = False
                track.budget = track.secrets = track.gave_up = None
                track.called_at = 0

    def begin(self, track: Track, call: Call, resource_version: int | None = None) -> None:
        """Register a call that is about to be made, from that version of the object."""
        with self._lock:
            if resource_version is not None:
                track.called_at = resource_version
            self._move(track, Begin(call))
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
            self._move(track, End(call))
            if call in track.abandoned:
                track.abandoned = tuple(other for other in track.abandoned if other is not call)
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
            self._move(track, End(call))
            track.abandoned = (*track.abandoned, call)
            self._abandoned.add(call)
            return True

    def start_budget(self, track: Track) -> tuple[Budget, bool]:
        """Return the budget of a force deletion, and whether it started now."""
        with self._lock:
            if track.budget is not None:
                return track.budget, False
            now = self._clock.monotonic()
            track.budget = Budget(now, now + self._seconds)
            return track.budget, True

    def end_budget(self, track: Track) -> bool:
        """Note that the budget is exceeded; return False if that was known, or there is none."""
        with self._lock:
            if track.budget is None or track.budget.over:
                return False
            track.budget = replace(track.budget, over=True)
            return True

    def note_force_deletion(self, track: Track, change: Callable[[Budget], Budget]) -> None:
        """Keep how a force deletion proceeds, for its next attempt and its record."""
        with self._lock:
            if track.budget is not None:
                track.budget = change(track.budget)

    def give_up(self, track: Track, at: datetime | None) -> None:
        """Note the wall time at which the deletion was given up; None: it is retried."""
        with self._lock:
            track.gave_up = at

    def keep_origin(self, track: Track, origin: DeletionOrigin) -> None:
        """Remember the origin of an object under deletion."""
        with self._lock:
            track.origin = origin

    def keep_secret(self, track: Track, secret: Request, content: SharedSecret) -> None:
        """Remember a Secret that was read for the object."""
        with self._lock:
            track.secrets = {**(track.secrets or {}), secret: content}

    def note_lost_fields(self, track: Track, *, loses_fields: bool) -> None:
        """Note whether the API server did not store a field that the actuator set."""
        with self._lock:
            track.loses_fields = loses_fields

    def delete(self, track: Track) -> None:
        """Note that the object is deleted; drop its track as soon as no work on it is pending."""
        with self._lock:
            track.deleted = True
            track.budget = None
            self._drop_if_done(track)

    def settle(self, track: Track) -> None:
        """Drop the track if its object is deleted and no work on it is pending."""
        with self._lock:
            self._drop_if_done(track)

    def _move(self, track: Track, intent: Intent) -> None:
        try:
            track.state = transition(track.state, intent)
        except ImpossibleTransition as error:
            fields = {"object": str(track.request), "uid": track.uid, "error": str(error)}
            logger.error("impossible transition", extra={"fields": fields})

    def _find(self, request: Request, uid: str) -> Track | None:
        return next((track for track in self.named(request) if track.uid == uid), None)

    def _add(self, track: Track) -> Track:
        tracks = self.named(track.request)
        if track not in tracks:
            self._tracks[track.request] = (*tracks, track)
        return track

    def _drop_if_done(self, track: Track) -> None:
        if not track.deleted or track.is_pending:
            return
        left = tuple(other for other in self.named(track.request) if other is not track)
        if left:
            self._tracks[track.request] = left
        else:
            self._tracks.pop(track.request, None)
