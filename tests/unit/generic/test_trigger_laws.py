"""Laws of triggers: which differences of two states start an attempt, for every kind and mode."""

import attrs
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from actuator.cluster import FORCE_DELETION
from actuator.meta import ForceSource
from actuator.v1alpha1 import Bastion, Infrastructure
from generic.controller.predicates import (
    OPERATION,
    REQUESTS,
    TIMESTAMP,
    any_of,
    conditions_changed,
    default_predicate,
    finalizers_changed,
    has_operation_annotation,
    is_deleting,
)
from generic.kube.headers import Event, EventType, Header, Owner, Request

REQUEST = Request("n", "o")
OUTSIDE = attrs.evolve(
    Infrastructure.KIND, has_operation_annotation=False, force_from=ForceSource.OBJECT
)
MODES = [
    pytest.param(Infrastructure.KIND, False, id="requested"),
    pytest.param(Infrastructure.KIND, True, id="annotation-ignored"),
    pytest.param(Bastion.KIND, False, id="forced-by-itself"),
    pytest.param(OUTSIDE, False, id="outside-gardener"),
]
FIRST = (Phase.generate,)
"""A planted mistake is to be found, not to be made small."""
WORDS = st.sampled_from(["", "a", "b"])
FOREIGN = st.fixed_dictionaries(
    {
        "resource_version": st.integers(1, 1000),
        "finalizers": st.lists(st.sampled_from(["a/a", "b/b"]), unique=True),
        "annotations": st.dictionaries(st.sampled_from(["a", "gardener.cloud/b"]), WORDS),
        "labels": st.dictionaries(WORDS, WORDS),
        "last_operation": st.tuples(
            st.sampled_from(["Create", "Reconcile", "Delete", "Migrate", "Restore"]),
            st.sampled_from(["Processing", "Error", "Failed", "Aborted"]),
        ),
        "has_error": st.booleans(),
        "conditions": st.lists(st.tuples(WORDS, WORDS)).map(tuple),
        "owners": st.lists(st.builds(Owner, WORDS, WORDS, WORDS, WORDS, st.booleans())).map(tuple),
    }
)
"""Status, and what other controllers write, of an object whose work is unfinished."""
DECISIVE = st.fixed_dictionaries(
    {
        "uid": st.sampled_from(["u", "v"]),
        "generation": st.integers(1, 2),
        "deletion_timestamp": st.sampled_from([None, "2026-01-01T00:00:00Z"]),
        "ours": st.booleans(),
        "requested": st.fixed_dictionaries(
            {},
            optional={
                OPERATION: st.sampled_from([*sorted(REQUESTS), "wait-for-state", "nonsense"]),
                TIMESTAMP: WORDS,
                FORCE_DELETION: st.sampled_from(["true", "false"]),
            },
        ),
    }
)
"""What decides the outcome of an operation."""


def header_of(kind, decisive, foreign):
    ours = [kind.finalizer] if decisive["ours"] else []
    return Header(
        uid=decisive["uid"],
        generation=decisive["generation"],
        deletion_timestamp=decisive["deletion_timestamp"],
        type="t",
        class_="",
        **foreign
        | {
            "finalizers": (*foreign["finalizers"], *ours),
            "annotations": foreign["annotations"] | decisive["requested"],
        },
    )


def event(old, new, *, late=False):
    return Event(EventType.MODIFIED, REQUEST, old, new, late=late)


def matters(kind, ignoring, decisive):
    """The parts that count for this kind and mode, stated apart from the product."""
    by_request = kind.has_operation_annotation and not ignoring
    carries = kind.force_from in (ForceSource.OBJECT, ForceSource.OBJECT_LITERAL)
    requested = decisive["requested"]
    deleting = decisive["deletion_timestamp"]
    return (
        [decisive[part] for part in ("uid", "generation", "deletion_timestamp", "ours")],
        requested.get(TIMESTAMP) if deleting else None,
        [requested.get(key) for key in (OPERATION, TIMESTAMP)] if by_request else None,
        requested.get(FORCE_DELETION) if carries else None,
    )


def check_that_exactly_what_matters_triggers(trigger, kind, ignoring, phases=tuple(Phase)):
    @settings(phases=phases, database=None)
    @given(before=DECISIVE, after=DECISIVE, old=FOREIGN, new=FOREIGN, late=st.booleans())
    def law(before, after, old, new, late):
        states = header_of(kind, before, old), header_of(kind, after, new)
        changed = matters(kind, ignoring, before) != matters(kind, ignoring, after)
        assert trigger(event(*states, late=late)) is changed

    @settings(phases=phases, database=None)
    @given(decisive=DECISIVE, old=FOREIGN, new=FOREIGN, late=st.booleans())
    def foreign_writes(decisive, old, new, late):
        states = header_of(kind, decisive, old), header_of(kind, decisive, new)
        assert not trigger(event(*states, late=late))

    law()
    foreign_writes()


@pytest.mark.parametrize(("kind", "ignoring"), MODES)
def test_a_change_triggers_exactly_where_it_can_change_the_outcome(kind, ignoring):
    trigger = default_predicate(kind, ignore_operation_annotation=ignoring)
    check_that_exactly_what_matters_triggers(trigger, kind, ignoring)


@pytest.mark.parametrize(
    "planted",
    [
        pytest.param(any_of(finalizers_changed), id="finalizers"),
        pytest.param(has_operation_annotation, id="annotation"),
        pytest.param(lambda event: event.late and is_deleting(event), id="late"),
        pytest.param(conditions_changed("a"), id="condition"),
        pytest.param(lambda event: event.old.labels != event.new.labels, id="label"),
    ],
)
def test_a_trigger_that_others_can_use_is_found(planted):
    trigger = any_of(default_predicate(OUTSIDE, ignore_operation_annotation=False), planted)
    with pytest.raises(AssertionError):
        check_that_exactly_what_matters_triggers(trigger, OUTSIDE, False, FIRST)


@pytest.mark.parametrize("missing", ["uid", "generation", "deletion_timestamp"])
def test_a_trigger_that_misses_a_change_is_found(missing):
    trigger = default_predicate(OUTSIDE, ignore_operation_annotation=False)

    def blind(event):
        return trigger(event) and getattr(event.old, missing) == getattr(event.new, missing)

    with pytest.raises(AssertionError):
        check_that_exactly_what_matters_triggers(blind, OUTSIDE, False, FIRST)
