"""choose_operation over every combination of what it looks at, against the rules as prose."""

from itertools import product

import attrs
import pytest
from msgspec.structs import replace

from actuator.cluster import ClusterState, Verdict
from actuator.meta import ForceSource, Kind
from actuator.v1alpha1 import Infrastructure
from generic.kube.headers import Header
from generic.reconciler.operation import Blocked, Nothing, Operation, choose_operation, is_forced

KIND = Infrastructure.KIND
BASTION_LIKE = attrs.evolve(KIND, migratable=False, skips_failed_shoot=False)

ANNOTATIONS = (None, "reconcile", "migrate", "restore", "wait-for-state", "nonsense")
TYPES = (None, "Create", "Reconcile", "Delete", "Migrate", "Restore")
STATES = ("Processing", "Succeeded", "Error", "Failed", "Pending", "Aborted")
LAST = [None, *product(TYPES[1:], STATES)]
BOOLS = (False, True)


def header(annotation=None, last=None, deleting=False, ours=True, **more):
    return Header(
        uid="u",
        resource_version=1,
        generation=1,
        deletion_timestamp="2026-01-01T00:00:00Z" if deleting else None,
        finalizers=(KIND.finalizer, "foreign") if ours else ("foreign",),
        annotations={"gardener.cloud/operation": annotation} if annotation else {},
        type="aws",
        class_="",
        last_operation=last,
        has_error=False,
    )


def cases():
    """Every combination; new each time, because a list of all slows the collection down."""
    return product(
        (KIND, BASTION_LIKE), ANNOTATIONS, LAST, BOOLS, BOOLS, BOOLS, BOOLS, ClusterState
    )


def expected(kind: Kind, annotation, last, deleting, ours, forced, failed, state):
    """The rules of the decision, one by one, written down independently of the code."""
    migrated = last == ("Migrate", "Succeeded")
    unfinished = last[0] if last and last[1] != "Succeeded" else None
    if forced and deleting and ours and annotation in ("migrate", "wait-for-state"):
        annotation = None
    if annotation == "wait-for-state":
        return Nothing.WAITS_FOR_STATE
    if failed and kind.skips_failed_shoot and not (forced and deleting):
        return Nothing.SHOOT_FAILED
    if kind.migratable and annotation == "migrate":
        operation = Operation.MIGRATE
    elif kind.migratable and migrated and annotation != "restore":
        return Operation.RELEASE if deleting and ours else Nothing.MIGRATED
    elif deleting and not ours:
        return Nothing.RELEASED
    elif deleting:
        operation = Operation.FORCE_DELETE if forced else Operation.DELETE
    elif kind.migratable and (annotation == "restore" or unfinished == "Restore"):
        operation = Operation.RESTORE
    elif kind.migratable and unfinished == "Migrate":
        operation = Operation.MIGRATE
    else:
        operation = Operation.RECONCILE
    if operation is Operation.FORCE_DELETE:
        return operation
    blockers = (ClusterState.MISSING, ClusterState.UNREADABLE, ClusterState.WITHOUT_SHOOT)
    return Blocked(operation, state) if state in blockers else operation


def test_every_combination_is_decided_as_the_rules_say():
    assert sum(1 for _ in cases()) == 2 * 6 * 31 * 16 * 5
    for kind, annotation, last, deleting, ours, forced, failed, state in cases():
        verdict = Verdict(state, forced=forced, failed=failed)
        seen = header(annotation, last, deleting, ours)
        got = choose_operation(kind, seen, verdict)
        want = expected(kind, annotation, last, deleting, ours, forced, failed, state)
        reason = f"{annotation=} {last=} {deleting=} {ours=} {forced=} {failed=} {state=}"
        assert got == want, reason


def test_no_operation_touches_the_outside_of_a_migrated_object():
    for annotation, deleting, ours, forced in product((None, "reconcile"), BOOLS, BOOLS, BOOLS):
        seen = header(annotation, ("Migrate", "Succeeded"), deleting, ours)
        got = choose_operation(KIND, seen, Verdict(ClusterState.OK, forced=forced))
        assert got in (Nothing.MIGRATED, Operation.RELEASE)


def test_a_removed_finalizer_comes_before_all_else_and_a_deleted_object_needs_nothing():
    assert choose_operation(KIND, None, Verdict()) is Nothing.DELETED
    for seen in (None, header(), header("migrate", deleting=True)):
        assert choose_operation(KIND, seen, Verdict(), removed=True) is Operation.LATE_CLEANUP


def test_only_an_object_that_is_deleting_is_ever_deleted():
    for kind, annotation, last, deleting, ours, forced, failed, state in cases():
        seen = header(annotation, last, deleting, ours)
        got = choose_operation(kind, seen, Verdict(state, forced=forced, failed=failed))
        if isinstance(got, Operation) and got.deletes:
            assert deleting
            assert ours


@pytest.mark.parametrize(
    ("last", "operation", "shown"),
    [
        pytest.param(None, Operation.RECONCILE, "Create", id="first sight is a creation"),
        pytest.param(
            ("Create", "Error"), Operation.RECONCILE, "Create", id="a failed creation goes on"
        ),
        pytest.param(
            ("Create", "Succeeded"), Operation.RECONCILE, "Reconcile", id="then it reconciles"
        ),
        pytest.param(("Reconcile", "Error"), Operation.DELETE, "Delete", id="deleting is deleting"),
        pytest.param(None, Operation.FORCE_DELETE, "Delete", id="so is force deleting"),
        pytest.param(None, Operation.RESTORE, "Restore", id="a restore is no creation"),
        pytest.param(("Reconcile", "Succeeded"), Operation.MIGRATE, "Migrate", id="a migration"),
    ],
)
def test_last_operation_type_is_what_gardenlet_expects(last, operation, shown):
    assert operation.last_operation_type(header(last=last)) == shown


@pytest.mark.parametrize(
    ("source", "own", "cluster", "forced"),
    [
        pytest.param(ForceSource.SHOOT, "true", False, False, id="a shoot's object cannot say it"),
        pytest.param(ForceSource.SHOOT, None, True, True, id="its shoot can"),
        pytest.param(ForceSource.OBJECT, "1", False, True, id="an object for itself, ParseBool"),
        pytest.param(ForceSource.OBJECT, "yes", False, False, id="yes is no boolean"),
        pytest.param(ForceSource.OBJECT_LITERAL, "1", True, False, id="a Bastion says only true"),
        pytest.param(ForceSource.OBJECT_LITERAL, "true", False, True, id="a Bastion says true"),
        pytest.param(ForceSource.NONE, "true", True, False, id="some are never forced"),
    ],
)
def test_force_deletion_is_read_where_the_kind_says(source, own, cluster, forced):
    annotations = {"confirmation.gardener.cloud/force-deletion": own} if own else {}
    seen = replace(header(deleting=True), annotations=annotations)
    kind = attrs.evolve(KIND, force_from=source)
    assert is_forced(kind, seen, Verdict(ClusterState.OK, forced=cluster)) is forced


@pytest.mark.parametrize("class_", ["garden", "seed"])
def test_objects_of_garden_and_seed_are_never_forced(class_):
    seen = replace(header(deleting=True), class_=class_)
    assert not is_forced(KIND, seen, Verdict(ClusterState.OK, forced=True))
