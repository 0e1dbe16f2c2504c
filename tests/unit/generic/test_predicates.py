"""Which events are worth a look."""

import attrs
import pytest
from msgspec.structs import replace

from actuator.meta import ForceSource
from actuator.v1alpha1 import Infrastructure
from generic.controller.predicates import (
    OPERATION,
    TIMESTAMP,
    all_of,
    answer_predicate,
    any_of,
    conditions_changed,
    default_predicate,
    for_event_types,
    generation_changed,
    has_class,
    has_namespace,
    has_operation_annotation,
    has_type,
    is_deleting,
    negate,
    news_in_answer,
    operation_requested,
)
from generic.kube.headers import Event, EventType, Header, Request
from tests.support.objects.predicates import finalizers_changed, has_name

QUIET = Header(
    uid="u",
    resource_version=1,
    generation=1,
    deletion_timestamp=None,
    finalizers=("f",),
    annotations={},
    type="aws",
    class_="",
    last_operation=("Reconcile", "Succeeded"),
    has_error=False,
)
DELETING = replace(QUIET, deletion_timestamp="now")


def change(**more):
    return replace(QUIET, resource_version=2, **more)


def asked(operation, timestamp=None):
    stamp = {TIMESTAMP: timestamp} if timestamp else {}
    return change(annotations={OPERATION: operation, **stamp})


def event(old, new, own=False):
    kind = EventType.MODIFIED if old and new else EventType.ADDED if new else EventType.DELETED
    return Event(kind, Request("n", "o"), old, new, own)


@pytest.mark.parametrize(
    ("old", "new", "passes"),
    [
        pytest.param(None, QUIET, False, id="new and quiet: a restart leaves it alone"),
        pytest.param(None, change(last_operation=None), True, id="new, never seen"),
        pytest.param(None, change(last_operation=("Create", "Error")), True, id="new, unfinished"),
        pytest.param(None, DELETING, True, id="new, deleting"),
        pytest.param(None, asked("restore"), True, id="new, asked for"),
        pytest.param(None, asked("wait-for-state"), False, id="waiting for state is no trigger"),
        pytest.param(QUIET, asked("reconcile"), True, id="asked for"),
        pytest.param(QUIET, asked("migrate"), True, id="asked to migrate"),
        pytest.param(QUIET, asked("nonsense"), False, id="asked for nonsense"),
        pytest.param(QUIET, change(generation=2), False, id="the spec alone is no trigger"),
        pytest.param(QUIET, DELETING, True, id="deleted"),
        pytest.param(
            DELETING,
            replace(DELETING, annotations={"a": "b"}),
            False,
            id="annotated by another controller while deleting",
        ),
        pytest.param(
            DELETING,
            replace(DELETING, annotations={TIMESTAMP: "2"}),
            True,
            id="deletion requested again",
        ),
        pytest.param(
            DELETING,
            replace(DELETING, last_operation=("Delete", "Error"), resource_version=9),
            False,
            id="a status written by somebody else while deleting",
        ),
        pytest.param(
            DELETING,
            replace(DELETING, last_operation=("Delete", "Error"), generation=2),
            True,
            id="status and spec changed at once: not swallowed",
        ),
        pytest.param(QUIET, None, False, id="gone"),
    ],
)
def test_gardeners_default_triggers(old, new, passes):
    assert operation_requested(event(old, new)) is passes


@pytest.mark.parametrize(
    ("old", "new", "passes"),
    [
        pytest.param(QUIET, change(), False, id="nothing new"),
        pytest.param(QUIET, change(last_operation=("Delete", "Error")), False, id="our own status"),
        pytest.param(QUIET, DELETING, True, id="somebody deleted it"),
        pytest.param(
            DELETING,
            replace(DELETING, annotations={TIMESTAMP: "2"}),
            True,
            id="somebody requested the deletion again",
        ),
        pytest.param(
            DELETING,
            replace(DELETING, annotations={"a": "b"}, finalizers=(), labels={"a": "b"}),
            False,
            id="writes of other controllers while deleting",
        ),
        pytest.param(QUIET, change(generation=2), True, id="somebody changed the spec"),
        pytest.param(QUIET, asked("reconcile"), True, id="somebody asked"),
        pytest.param(asked("reconcile"), QUIET, False, id="we took the request off"),
        pytest.param(asked("reconcile"), asked("reconcile"), False, id="the request we work on"),
        pytest.param(asked("reconcile", "1"), asked("reconcile", "2"), True, id="a newer request"),
        pytest.param(None, QUIET, False, id="nothing to compare with"),
    ],
)
def test_an_answer_of_ours_triggers_only_for_changes_of_others(old, new, passes):
    assert news_in_answer(event(old, new, own=True)) is passes


def test_with_the_annotation_ignored_the_generation_decides():
    assert generation_changed(event(None, QUIET))
    assert generation_changed(event(QUIET, change(generation=2)))
    assert not generation_changed(event(QUIET, asked("migrate")))
    assert not generation_changed(event(QUIET, None))


def test_a_kind_has_the_default_it_needs():
    kind = Infrastructure.KIND
    request = event(QUIET, asked("reconcile"))
    spec = event(QUIET, change(generation=2))
    theirs = event(QUIET, change(finalizers=()))
    ours = event(change(finalizers=(kind.finalizer, "f")), QUIET)
    default = default_predicate(kind, ignore_operation_annotation=False)
    ignoring = default_predicate(kind, ignore_operation_annotation=True)
    other = attrs.evolve(kind, has_operation_annotation=False)
    outside = default_predicate(other, ignore_operation_annotation=False)
    for passes, wanted in ((default, "1000"), (ignoring, "0101"), (outside, "0101")):
        got = "".join(str(int(passes(seen))) for seen in (request, spec, theirs, ours))
        assert got == wanted


@pytest.mark.parametrize(
    ("class_", "served", "passes"),
    [
        ("", (), True),
        ("shoot", (), True),
        ("", ("",), True),
        ("shoot", ("shoot",), True),
        ("", ("garden",), False),
        ("", ("seed", "garden"), False),
        ("garden", ("garden",), True),
        ("garden", (), False),
    ],
)
def test_no_class_means_shoot_on_both_sides(class_, served, passes):
    assert has_class(*served)(event(None, change(class_=class_))) is passes


def test_predicates_combine():
    aws = has_type("aws")
    gcp = has_type("gcp")
    seen = event(None, QUIET)
    assert has_type("gcp", "aws")(seen)
    assert any_of(gcp, aws)(seen)
    assert not all_of(gcp, aws)(seen)
    assert negate(gcp)(seen)
    assert all_of()(seen)
    assert not any_of()(seen)


FORCED = replace(DELETING, annotations={"confirmation.gardener.cloud/force-deletion": "true"})


@pytest.mark.parametrize("ignored", [True, False])
@pytest.mark.parametrize("annotation", [True, False])
def test_a_kind_that_carries_the_force_annotation_is_triggered_by_it(ignored, annotation):
    kind = attrs.evolve(
        Infrastructure.KIND, force_from=ForceSource.OBJECT, has_operation_annotation=annotation
    )
    trigger = default_predicate(kind, ignore_operation_annotation=ignored)
    assert trigger(event(DELETING, FORCED))
    assert not trigger(event(FORCED, replace(FORCED, resource_version=9)))
    assert answer_predicate(kind)(event(DELETING, FORCED, own=True))
    assert not answer_predicate(Infrastructure.KIND)(event(DELETING, FORCED, own=True))


@pytest.mark.parametrize(
    ("old", "new", "passing"),
    [
        pytest.param(None, QUIET, set(), id="new"),
        pytest.param(QUIET, None, set(), id="gone"),
        pytest.param(QUIET, change(), set(), id="nothing changed"),
        pytest.param(QUIET, DELETING, {is_deleting}, id="deleted"),
        pytest.param(QUIET, change(finalizers=()), {finalizers_changed}, id="finalizers"),
        pytest.param(
            QUIET,
            change(last_operation=("Delete", "Error")),
            set(),
            id="last operation",
        ),
        pytest.param(QUIET, asked("restore"), {has_operation_annotation}, id="asked for"),
        pytest.param(QUIET, asked("wait-for-state"), set(), id="asked to wait"),
    ],
)
def test_each_of_the_simple_predicates_passes_its_own_change_and_no_other(old, new, passing):
    simple = (is_deleting, finalizers_changed, has_operation_annotation)
    assert {predicate for predicate in simple if predicate(event(old, new))} == passing


def test_objects_are_selected_by_name_namespace_and_event_type():
    seen = event(None, QUIET)
    assert has_name("a", "o")(seen)
    assert not has_name("a")(seen)
    assert has_namespace("n")(seen)
    assert not has_namespace()(seen)
    assert for_event_types(EventType.ADDED)(seen)
    assert not for_event_types(EventType.MODIFIED, EventType.DELETED)(seen)


@pytest.mark.parametrize(
    ("old", "new", "passes"),
    [
        ((), (("Healthy", "True"),), True),
        ((("Healthy", "True"),), (("Healthy", "False"),), True),
        ((("Healthy", "True"),), (), True),
        ((("Healthy", "True"),), (("Healthy", "True"), ("Other", "True")), False),
    ],
)
def test_only_relevant_conditions_count(old, new, passes):
    before = change(conditions=old)
    after = change(conditions=new)
    assert conditions_changed("Healthy")(event(before, after)) is passes
