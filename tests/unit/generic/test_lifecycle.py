"""The states of one object: every pair of state and intent, and who may change a track."""

import ast
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from generic.kube.clock import SystemClock
from generic.kube.headers import Request
from generic.reconciler import lifecycle
from generic.reconciler.calls import AbandonedCalls
from generic.reconciler.lifecycle import (
    IDLE,
    Begin,
    Calling,
    CleanedUp,
    End,
    FinalizerRemoved,
    Finished,
    Guarded,
    ImpossibleTransition,
    Intent,
    LateCleanupFailed,
    Recorded,
    Release,
    Released,
    Releasing,
    Removed,
    State,
    WentBack,
    transition,
)
from generic.reconciler.operation import Operation
from generic.reconciler.track import Track, Tracks
from generic.serving.metrics import Outcome

CALL: Any = object()
OTHER: Any = object()
ORPHANS: Any = ("an Orphan",)
DONE = CleanedUp(Outcome.DELETED, "2026-01-01T00:00:00Z")
LATER = CleanedUp(Outcome.FORCE_DELETED, "2026-02-02T00:00:00Z")
LOST = Removed(b"{}", Operation.DELETE)
FIRST = Removed(b"first", None, (), 2)
IMPOSSIBLE = ImpossibleTransition

STATES: dict[str, State] = {
    "idle": IDLE,
    "calling": Calling(CALL, IDLE),
    "calling, released": Calling(CALL, Releasing()),
    "calling, removed": Calling(CALL, FIRST),
    "cleaned up": DONE,
    "releasing": Releasing(),
    "releasing, done": Releasing(DONE),
    "removed": FIRST,
}
INTENTS: dict[str, Intent] = {
    "guarded": Guarded(),
    "begin": Begin(OTHER),
    "end": End(CALL),
    "finished": Finished(LATER),
    "release": Release(),
    "released": Released(),
    "finalizer removed": FinalizerRemoved(LOST),
    "recorded": Recorded(ORPHANS),
    "late cleanup failed": LateCleanupFailed(),
    "went back": WentBack(),
}
RECORDED = Removed(b"first", None, ORPHANS)
FAILED = Removed(b"first", None, (), 3)
IN_CALL: dict[str, State | type[ImpossibleTransition]] = {
    **dict.fromkeys(INTENTS, IMPOSSIBLE),
    "went back": Calling(CALL, IDLE),
}
NEXT: dict[str, dict[str, State | type[ImpossibleTransition]]] = {
    "idle": {
        "guarded": IDLE,
        "begin": Calling(OTHER, IDLE),
        "end": IDLE,
        "finished": LATER,
        "release": Releasing(),
        "released": IDLE,
        "finalizer removed": LOST,
        "recorded": IDLE,
        "late cleanup failed": IDLE,
        "went back": IDLE,
    },
    "calling": IN_CALL | {"end": IDLE, "finalizer removed": Calling(CALL, LOST)},
    "calling, released": IN_CALL
    | {"end": Releasing(), "finalizer removed": Calling(CALL, Releasing())},
    "calling, removed": IN_CALL | {"end": FIRST, "finalizer removed": Calling(CALL, FIRST)},
    "cleaned up": {
        "guarded": IDLE,
        "begin": Calling(OTHER, IDLE),
        "end": DONE,
        "finished": LATER,
        "release": Releasing(DONE),
        "released": Releasing(),
        "finalizer removed": DONE,
        "recorded": IMPOSSIBLE,
        "late cleanup failed": IMPOSSIBLE,
        "went back": IDLE,
    },
    "releasing": {
        "guarded": IDLE,
        "begin": Calling(OTHER, Releasing()),
        "end": Releasing(),
        "finished": Releasing(LATER),
        "release": Releasing(),
        "released": Releasing(),
        "finalizer removed": Releasing(),
        "recorded": IMPOSSIBLE,
        "late cleanup failed": IMPOSSIBLE,
        "went back": IDLE,
    },
    "releasing, done": {
        "guarded": IDLE,
        "begin": Calling(OTHER, Releasing()),
        "end": Releasing(DONE),
        "finished": Releasing(LATER),
        "release": Releasing(DONE),
        "released": Releasing(),
        "finalizer removed": Releasing(DONE),
        "recorded": IMPOSSIBLE,
        "late cleanup failed": IMPOSSIBLE,
        "went back": IDLE,
    },
    "removed": {
        "guarded": FIRST,
        "begin": Calling(OTHER, FIRST),
        "end": FIRST,
        "finished": LATER,
        "release": Releasing(),
        "released": Releasing(),
        "finalizer removed": FIRST,
        "recorded": RECORDED,
        "late cleanup failed": FAILED,
        "went back": IDLE,
    },
}


@pytest.mark.parametrize(("state", "intent"), list(product(STATES, INTENTS)))
def test_every_state_answers_every_intent(state, intent):
    expected = NEXT[state][intent]
    if expected is IMPOSSIBLE:
        kinds = type(INTENTS[intent]).__name__, type(STATES[state]).__name__
        with pytest.raises(ImpossibleTransition, match="{} is impossible in {}".format(*kinds)):
            transition(STATES[state], INTENTS[intent])
    else:
        assert transition(STATES[state], INTENTS[intent]) == expected


def test_the_table_has_every_state_and_every_intent():
    """A new one without a row would not be tested."""
    assert {type(state) for state in STATES.values()} == set(lifecycle.State.__args__)
    assert {type(intent) for intent in INTENTS.values()} == set(lifecycle.Intent.__args__)


@pytest.mark.parametrize(("name", "state"), STATES.items())
def test_an_external_removal_is_known_also_during_its_late_cleanup(name, state):
    expected = FIRST if name in ("removed", "calling, removed") else None
    assert lifecycle.removed(state) == expected


@pytest.mark.parametrize(("name", "state"), STATES.items())
def test_a_finished_deletion_is_known_until_its_release_is_acknowledged(name, state):
    expected = DONE if name in ("cleaned up", "releasing, done") else None
    assert lifecycle.finished(state) == expected


@pytest.mark.parametrize("state", ["calling", "calling, released", "calling, removed"])
def test_the_end_of_an_abandoned_call_leaves_the_running_one(state):
    assert transition(STATES[state], End(OTHER)) == STATES[state]


@pytest.mark.an_impossible_transition
def test_an_impossible_intent_is_logged_and_changes_nothing(caplog):
    tracks = Tracks(AbandonedCalls(), SystemClock(), None)
    track = tracks.of(Request("shoot", "infra"), "uid")
    tracks.send(track, Finished(DONE))
    assert tracks.send(track, Recorded(())) == DONE
    assert "impossible transition" in caplog.text


def assigned(tree: ast.AST) -> set[str]:
    """The fields of a track that this code assigns, also of `attempt.track`."""
    targets = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    return {
        target.attr
        for target in targets
        if isinstance(target.ctx, ast.Store)
        and target.attr in Track.__struct_fields__
        and ast.unparse(target.value).split(".")[-1] == "track"
    }


def test_only_its_module_assigns_fields_of_a_track():
    home = Path(lifecycle.__file__).with_name("track.py")
    writers = {path: assigned(ast.parse(path.read_text())) for path in _sources()}
    assert {path for path, fields in writers.items() if fields} == {home}
    assert assigned(ast.parse("attempt.track.budget = track.state = None")) == {"budget", "state"}


def _sources() -> list[Path]:
    return sorted(Path(lifecycle.__file__).parents[1].rglob("*.py"))
