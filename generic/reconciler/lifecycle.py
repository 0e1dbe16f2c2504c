"""Lifecycle: the states of one object in this process, and all transitions between them. Pure.

    Idle --Begin--> Calling --End--> Idle --Finished--> CleanedUp --Release--> Releasing
    Idle --Removed--> Removed --Begin--> Calling --End--> Removed --Released--> Releasing

Not here: the track that keeps the state (`track`), and the decisions based on it (`reconciler`).
"""

from msgspec import Struct
from msgspec.structs import replace

from generic.reconciler.budget import Budget
from generic.reconciler.calls import Call
from generic.reconciler.operation import Operation
from generic.reconciler.orphans import Orphan
from generic.serving.metrics import Outcome


class Idle(Struct, frozen=True):
    """No call is running, and nothing has to be finished."""


class CleanedUp(Struct, frozen=True):
    """The actuator finished a deletion; our finalizer may still be on the object."""

    outcome: Outcome
    deleting_since: str | None
    """The deletionTimestamp of the object."""


class Releasing(Struct, frozen=True):
    """This process may have removed our finalizer, or has handled its removal."""

    done: CleanedUp | None = None
    """The finished deletion whose release was not acknowledged yet."""


class Removed(Struct, frozen=True):
    """Our finalizer was removed externally before cleanup finished."""

    raw: bytes
    """The last known state of the object, as JSON."""
    operation: Operation | None
    """The operation for the missing cleanup; None if no deletion of the object was seen."""
    orphans: tuple[Orphan, ...] | None = None
    """The recorded Orphans; None before they are recorded."""
    failures: int = 0
    type: str = ""
    """The extension type of the object."""
    budget: Budget | None = None
    """The course of a force deletion until then; None if the deletion was not forced."""


class Calling(Struct, frozen=True):
    """A worker is in a call of the actuator."""

    call: Call
    after: Idle | Releasing | Removed
    """The state when the call ends."""


State = Idle | Calling | CleanedUp | Releasing | Removed


class Guarded(Struct, frozen=True):
    """Our finalizer is on the object, and an operation that needs it begins."""


class Begin(Struct, frozen=True):
    """A worker is about to call the actuator."""

    call: Call


class End(Struct, frozen=True):
    """A call returned, or was abandoned."""

    call: Call


class Finished(Struct, frozen=True):
    """The cleanup of a deletion finished."""

    done: CleanedUp


class Release(Struct, frozen=True):
    """The patch that removes our finalizer is about to be sent."""


class Released(Struct, frozen=True):
    """Our finalizer is removed: acknowledged, seen in an event, or handled by a late cleanup."""


class FinalizerRemoved(Struct, frozen=True):
    """An event shows that our finalizer is removed from an object under deletion."""

    removed: Removed


class Recorded(Struct, frozen=True):
    """The resources that may remain of an externally removed object are recorded."""

    orphans: tuple[Orphan, ...]


class LateCleanupFailed(Struct, frozen=True):
    """An attempt to record, or to clean up late, failed."""


class WentBack(Struct, frozen=True):
    """etcd was restored to a state before the end of the object."""


Intent = (
    Guarded
    | Begin
    | End
    | Finished
    | Release
    | Released
    | FinalizerRemoved
    | Recorded
    | LateCleanupFailed
    | WentBack
)

IDLE = Idle()


class ImpossibleTransition(Exception):
    """An intent that no code path may send in this state: an error in this framework."""

    def __init__(self, state: State, intent: Intent) -> None:
        super().__init__(f"{type(intent).__name__} is impossible in {type(state).__name__}")


def finished(state: State) -> CleanedUp | None:
    """Return the finished deletion whose release is not acknowledged yet."""
    if isinstance(state, CleanedUp):
        return state
    return state.done if isinstance(state, Releasing) else None


def removed(state: State) -> Removed | None:
    """Return the external removal that is not handled yet, also during its late cleanup."""
    state = state.after if isinstance(state, Calling) else state
    return state if isinstance(state, Removed) else None


def transition(state: State, intent: Intent) -> State:
    """Return the next state. Raises ImpossibleTransition."""
    if isinstance(intent, WentBack):
        return Calling(state.call, IDLE) if isinstance(state, Calling) else IDLE
    if isinstance(state, Calling):
        return _of_calling(state, intent)
    match intent:
        case Begin(call):
            return Calling(call, _after_call(state))
        case End():
            return state  # it was abandoned before
        case FinalizerRemoved():
            return intent.removed if isinstance(state, Idle) else state
        case Recorded() | LateCleanupFailed():
            return _of_late_cleanup(state, intent)
        case Guarded():
            return state if isinstance(state, Removed) else IDLE
        case Finished(done):  # after a release that failed, the finalizer may be removed already
            return Releasing(done) if isinstance(state, Releasing) else done
        case Release():
            return Releasing(finished(state))
        case Released():  # idle: etcd was restored meanwhile
            return IDLE if isinstance(state, Idle) else Releasing()


def _of_calling(state: Calling, intent: Intent) -> State:
    """Only events of the watch and the end of a call occur while a worker is in a call."""
    match intent:
        case End(call):
            return state.after if call is state.call else state
        case FinalizerRemoved():
            after = intent.removed if isinstance(state.after, Idle) else state.after
            return Calling(state.call, after)
    raise ImpossibleTransition(state, intent)


def _after_call(state: Idle | CleanedUp | Releasing | Removed) -> Idle | Releasing | Removed:
    """A new call means that a cleanup that finished before was that of another deletion."""
    if isinstance(state, CleanedUp):
        return IDLE
    return Releasing() if isinstance(state, Releasing) else state


def _of_late_cleanup(
    state: Idle | CleanedUp | Releasing | Removed, intent: Recorded | LateCleanupFailed
) -> State:
    if isinstance(state, Idle):
        return state  # etcd was restored meanwhile: the object exists again
    if not isinstance(state, Removed):
        raise ImpossibleTransition(state, intent)
    if isinstance(intent, Recorded):
        return replace(state, orphans=intent.orphans, failures=0)
    return replace(state, failures=state.failures + 1)
