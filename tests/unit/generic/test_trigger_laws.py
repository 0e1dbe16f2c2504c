"""Laws of triggers: which differences of two states start an attempt, for every kind and mode."""

import random
from itertools import cycle

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
    filtered,
    first_sight,
    for_event_types,
    has_namespace,
    has_operation_annotation,
    is_deleting,
    negate,
)
from generic.kube.headers import Event, EventType, Header, Owner, Request
from tests.support.objects.predicates import finalizers_changed, has_name

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
"""Status, and fields of other controllers, of an object whose work is unfinished."""
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
"""The facts that decide the outcome of an operation."""


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


def failing(event):
    raise LookupError("a mistake of the author")


def leaving(event):
    raise SystemExit


STATES = [
    negate(is_deleting),
    is_deleting,
    has_name("other"),
    has_namespace("other"),
    for_event_types(EventType.DELETED),
    for_event_types(EventType.MODIFIED),
    lambda event: True,
    lambda event: False,
    lambda event: None,
    failing,
    leaving,
]
"""Predicates that do not compare the old state with the new one."""
CHANGES = [finalizers_changed, conditions_changed("a", "b"), negate(finalizers_changed)]


def combined(plain):
    """Any combination of these predicates."""
    pairs = st.lists(st.sampled_from(plain), min_size=1, max_size=3)
    return pairs | pairs.map(lambda some: [any_of(*some)]) | pairs.map(lambda s: [negate(s[0])])


@pytest.mark.parametrize(("kind", "ignoring"), MODES)
def test_no_predicate_hides_the_end_of_an_object_with_our_finalizer(kind, ignoring):
    trigger = default_predicate(kind, ignore_operation_annotation=ignoring)

    @given(authors=combined([*STATES, *CHANGES]), decisive=DECISIVE, old=FOREIGN, new=FOREIGN)
    def law(authors, decisive, old, new):
        held = decisive | {"deletion_timestamp": "2026-01-01T00:00:00Z", "ours": True}
        passes = filtered(kind, authors, trigger)
        state = header_of(kind, held, new)
        before = held | {"deletion_timestamp": None}
        assert passes(first_sight(REQUEST, state))
        assert passes(event(header_of(kind, before, old), state))

    law()


@pytest.mark.parametrize(("kind", "ignoring"), MODES)
def test_no_predicate_of_an_author_lets_others_set_the_rate(kind, ignoring):
    trigger = default_predicate(kind, ignore_operation_annotation=ignoring)

    @given(authors=combined(STATES), decisive=DECISIVE, old=FOREIGN, new=FOREIGN)
    def law(authors, decisive, old, new):
        states = header_of(kind, decisive, old), header_of(kind, decisive, new)
        assert not filtered(kind, authors, trigger)(event(*states))

    law()


CALM = {"resource_version": 1, "last_operation": ("Create", "Error"), "has_error": True}
PLAIN = {"uid": "u", "generation": 1, "deletion_timestamp": None, "ours": True, "requested": {}}


def state(*finalizers, kind=OUTSIDE):
    return header_of(kind, PLAIN, CALM | {"annotations": {}, "finalizers": finalizers})


def flipping(answers):
    flips = cycle(answers)
    return lambda _event: next(flips)


def test_a_predicate_that_contradicts_itself_selects_no_change():
    trigger = default_predicate(OUTSIDE, ignore_operation_annotation=False)
    change = event(state(), state("a/a"))
    rng = random.Random(7)
    for answers in ([True, False], [True, True, False], [False, True, True]):
        passes = filtered(OUTSIDE, [flipping(answers)], trigger)
        assert not any(passes(change) for _ in range(200))
    passes = filtered(OUTSIDE, [lambda _event: rng.random() < 0.5], trigger)
    assert sum(passes(change) for _ in range(500)) < 10


@pytest.mark.parametrize("kind", [Infrastructure.KIND, OUTSIDE], ids=["gardener", "outside"])
def test_a_field_that_a_predicate_selects_triggers_an_object_with_work(kind):
    trigger = default_predicate(kind, ignore_operation_annotation=False)
    change = event(state(kind=kind), state("a/a", kind=kind))
    assert not trigger(change)
    selects = any_of(finalizers_changed, for_event_types(EventType.ADDED))
    assert filtered(kind, [selects], trigger)(change)
    assert not filtered(kind, [conditions_changed("a")], trigger)(change)


def test_a_field_that_a_predicate_selects_asks_nothing_of_an_object_without_work():
    kind = Infrastructure.KIND
    trigger = default_predicate(kind, ignore_operation_annotation=False)
    calm = CALM | {"last_operation": ("Reconcile", "Succeeded"), "annotations": {}}
    old, new = (header_of(kind, PLAIN, calm | {"finalizers": some}) for some in ((), ("a/a",)))
    assert not filtered(kind, [finalizers_changed], trigger)(event(old, new))
