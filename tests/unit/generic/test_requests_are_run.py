"""Laws of the operation annotation, for generated requests, failures, crashes and changes."""

from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actuator import v1alpha1
from actuator.v1alpha1 import BackupBucket, BackupEntry, Bastion, Infrastructure
from generic.controller.predicates import OPERATION
from generic.reconciler import annotation
from generic.reconciler.annotation import Removal
from tests.support.drills.request_model import Crash, World

WATCHED = [cls.KIND for cls in (BackupBucket, BackupEntry, Bastion)]
KINDS = [Infrastructure.KIND, *WATCHED]
STORIES = settings(max_examples=100, deadline=None)

ask = st.tuples(st.just("ask"), st.sampled_from(["reconcile", "restore", "migrate"]), st.booleans())
change = st.tuples(st.just("change"), st.sampled_from(["generation", "label", "state"]))
interruption = st.one_of(st.just(()), st.just(()), ask, change, st.just(("crash",)))
attempt = st.tuples(
    st.just("attempt"),
    st.sampled_from(["success", "error", "wait", "blocked"]),
    st.lists(interruption, max_size=5),
)
stories = st.lists(st.one_of(ask, change, attempt), max_size=12)


def act(world, step):
    match step:
        case ("ask", operation, timestamped):
            world.ask(operation, timestamped=timestamped)
        case ("change", what):
            world.change(what)
        case ("crash",):
            raise Crash


def live(kind, story):
    """Play the story, then attempts without failures; return the object."""
    world = World(kind)
    for step in story:
        if step[0] != "attempt":
            act(world, step)
        elif world.pending:
            world.attempt(step[1], [partial(act, world, item) for item in step[2]])
    world.settle()
    return world


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@STORIES
@given(story=stories)
def test_the_last_request_is_run_without_a_further_trigger(kind, story):
    assert live(kind, story).lost_request() == ""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@STORIES
@given(story=stories)
def test_gardenlets_poll_takes_no_older_success_for_that_of_its_request(kind, story):
    assert live(kind, story).wrongly_ready == []


@pytest.mark.parametrize("kind", WATCHED, ids=lambda kind: kind.name)
@STORIES
@given(story=stories)
def test_gardenlets_watch_sees_every_outcome(kind, story):
    assert live(kind, story).unseen == []


def _at_once(header):
    return Removal.BEFORE if OPERATION in header.annotations else Removal.NEVER


CREATED: tuple[str, str, list[Any]] = ("attempt", "success", [])
RESTORE_FAILS_THEN_RECONCILE = [
    CREATED,
    ("ask", "restore", True),
    ("attempt", "error", []),
    ("ask", "reconcile", True),
]
SECOND_REQUEST = [CREATED, ("ask", "reconcile", True), CREATED]


def test_the_law_finds_a_request_that_no_operation_answers(monkeypatch):
    assert live(Infrastructure.KIND, RESTORE_FAILS_THEN_RECONCILE).lost_request() == ""
    monkeypatch.setattr(annotation, "asks_for_more", lambda *_: False)
    assert live(Infrastructure.KIND, RESTORE_FAILS_THEN_RECONCILE).lost_request() == "reconcile"


def test_the_law_finds_an_annotation_that_is_removed_while_the_status_says_succeeded(monkeypatch):
    crashes = [CREATED, ("ask", "reconcile", True), ("attempt", "success", [(), ("crash",)])]
    assert live(Infrastructure.KIND, crashes).lost_request() == ""
    monkeypatch.setattr(annotation, "removal", lambda *of: _at_once(of[-1]))
    assert live(Infrastructure.KIND, crashes).lost_request() == "reconcile"
    without_timestamp = [CREATED, ("ask", "reconcile", False), CREATED]
    assert live(Infrastructure.KIND, without_timestamp).wrongly_ready


def test_the_law_finds_an_outcome_that_is_written_under_the_annotation(monkeypatch):
    assert live(BackupBucket.KIND, SECOND_REQUEST).unseen == []
    monkeypatch.setattr(annotation, "_before_the_outcome", lambda *_: Removal.AFTER)
    assert live(BackupBucket.KIND, SECOND_REQUEST).unseen


def test_the_kinds_that_gardenlet_watches_are_marked():
    """Gardener: the BackupBucket, BackupEntry and Bastion controllers of gardenlet."""
    kinds = [cls.KIND for cls in v1alpha1.KINDS]
    assert [kind for kind in kinds if kind.outcomes_are_watched] == WATCHED
