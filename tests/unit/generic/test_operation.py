"""choose_operation over every combination of its inputs, against the rules as prose."""

from itertools import product

import attrs
import pytest
from msgspec.structs import replace

from actuator.cluster import ClusterState, Verdict
from actuator.errors import ErrorCode
from actuator.meta import ClusterNeed, ForceSource, Kind
from actuator.v1alpha1 import Infrastructure
from generic.kube.headers import Header
from generic.reconciler.operation import (
    Blocked,
    Nothing,
    Operation,
    bad_force_value,
    choose_operation,
    is_forced,
)

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
    decided = set()
    for kind, annotation, last, deleting, ours, forced, failed, state in cases():
        seen = header(annotation, last, deleting, ours)
        got = choose_operation(kind, seen, Verdict(state, forced=forced, failed=failed))
        if isinstance(got, Operation) and got.deletes:
            decided.add(got)
            assert deleting
            assert ours
    assert decided == {Operation.DELETE, Operation.FORCE_DELETE}


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
def test_last_operation_type_is_the_one_that_gardenlet_expects(last, operation, shown):
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


@pytest.mark.parametrize(
    ("class_", "need", "forced"),
    [
        ("", ClusterNeed.REQUIRED, True),
        ("shoot", ClusterNeed.REQUIRED, True),
        ("shoot", ClusterNeed.IN_SHOOT_NAMESPACE, True),
        ("shoot", ClusterNeed.NEVER, False),
        ("garden", ClusterNeed.REQUIRED, False),
    ],
)
def test_only_objects_of_a_shoot_are_forced_by_their_shoot(class_, need, forced):
    seen = replace(header(deleting=True), class_=class_)
    kind = attrs.evolve(KIND, cluster=need)
    assert is_forced(kind, seen, Verdict(ClusterState.OK, forced=True)) is forced
    assert not is_forced(kind, seen, Verdict(ClusterState.OK))


@pytest.mark.parametrize(
    ("source", "own", "bad"),
    [
        (ForceSource.SHOOT, "own", "of the shoot"),
        (ForceSource.OBJECT, "yes", "yes"),
        (ForceSource.OBJECT, "true", None),
        (ForceSource.OBJECT, "F", None),
        (ForceSource.OBJECT, "", None),
        (ForceSource.OBJECT, None, None),
        (ForceSource.OBJECT_LITERAL, "yes", None),
        (ForceSource.NONE, "yes", None),
    ],
)
def test_a_force_deletion_annotation_that_is_no_boolean_is_found(source, own, bad):
    annotations = {} if own is None else {"confirmation.gardener.cloud/force-deletion": own}
    seen = replace(header(), annotations=annotations)
    kind = attrs.evolve(KIND, force_from=source)
    verdict = Verdict(ClusterState.OK, bad_force_value="of the shoot")
    assert bad_force_value(kind, seen, verdict) == bad


@pytest.mark.parametrize(
    ("state", "reason", "text", "codes"),
    [
        (ClusterState.MISSING, "ClusterMissing", "Cluster shoot not found", []),
        (
            ClusterState.UNREADABLE,
            "ClusterUnreadable",
            "Cluster shoot cannot be read: spec.shoot is not a Shoot object",
            [ErrorCode.ERR_CONFIGURATION_PROBLEM],
        ),
        (ClusterState.WITHOUT_SHOOT, "ClusterWithoutShoot", "Cluster shoot has no spec.shoot", []),
    ],
)
def test_a_blocked_operation_is_an_error_that_names_its_cluster(state, reason, text, codes):
    error = Blocked(Operation.RECONCILE, state).error("shoot")
    assert (error.reason, [*error.codes]) == (reason, codes)
    assert str(error).startswith(text)


PROPERTIES = {
    # guards, reports, releases, deletes, calls
    Operation.RECONCILE: (True, True, False, False, True),
    Operation.RESTORE: (True, True, False, False, True),
    Operation.MIGRATE: (False, True, True, False, True),
    Operation.DELETE: (False, False, True, True, True),
    Operation.FORCE_DELETE: (False, False, True, True, True),
    Operation.RELEASE: (False, False, True, False, False),
    Operation.LATE_CLEANUP: (False, False, False, False, False),
}


@pytest.mark.parametrize("operation", Operation)
def test_the_properties_of_every_operation(operation):
    names = ("guards", "reports", "releases", "deletes", "calls")
    assert tuple(getattr(operation, name) for name in names) == PROPERTIES[operation]


def test_an_object_under_deletion_waits_for_its_shoot_in_two_cases():
    waiting = {reason for reason in Nothing if reason.waits}
    assert waiting == {Nothing.WAITS_FOR_STATE, Nothing.SHOOT_FAILED}


def test_a_released_object_is_reported_as_migrated():
    assert Operation.RELEASE.last_operation_type(header()) == "Migrate"


@pytest.mark.parametrize("watched", BOOLS)
@pytest.mark.parametrize(
    ("last", "annotation", "ended"),
    [
        pytest.param(("Migrate", "Processing"), None, False, id="a migration that runs"),
        pytest.param(("Migrate", "Succeeded"), None, True, id="a migration that ended"),
        pytest.param(("Migrate", "Processing"), "restore", True, id="a restore after it"),
        pytest.param(("Restore", "Processing"), None, True, id="another operation"),
    ],
)
def test_a_deletion_does_not_overtake_a_migration_whose_annotation_is_removed(
    watched, last, annotation, ended
):
    kind = attrs.evolve(KIND, outcomes_are_watched=watched)
    seen = header(annotation, last, deleting=True)
    got = choose_operation(kind, seen, Verdict(ClusterState.OK))
    assert (got is Operation.MIGRATE) is (watched and not ended)


def test_a_kind_without_the_operation_annotation_does_not_read_it():
    kind = attrs.evolve(KIND, has_operation_annotation=False)
    for annotation in ("migrate", "restore", "wait-for-state"):
        got = choose_operation(kind, header(annotation), Verdict(ClusterState.OK))
        assert got is Operation.RECONCILE
