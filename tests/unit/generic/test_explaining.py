"""Conclusions of `actuator explain` from facts: annotations, finalizers, operations, pages."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest
from msgspec.structs import replace

from actuator.cluster import FORCE_DELETION, Cluster, ClusterState, Verdict
from actuator.codec import decode
from actuator.interface import ExternalResource
from actuator.meta import Condition, ForceSource, Kind, LastError, LastOperation, format_time
from actuator.v1alpha1 import BackupEntry, Bastion, Extension, Infrastructure
from generic.controller.predicates import OPERATION
from generic.kube.headers import Request, header
from generic.tools.cli.explain_page import page, summary
from generic.tools.cli.screen import Screen
from generic.tools.explain.facts import (
    CalledWebhook,
    Decision,
    Deleting,
    Explanation,
    ForcedRemoval,
    Forcing,
    Orphaned,
    Overview,
    Reference,
    SeedObject,
    Standing,
    Subject,
    Unread,
    WarningEvent,
    grant,
)
from generic.tools.explain.owners import as_found, held
from generic.tools.explain.standing import blockers, decide, forcing, ignored_request, parse, stand
from tests.support.objects.builders import cluster, infrastructure
from tests.support.objects.stand_ins import StandIn

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
OWN = Kind(
    name="Tenant",
    plural="tenants",
    finalizer="t",
    force_from=ForceSource.OBJECT,
    has_operation_annotation=False,
)
KEY = Request("ns", "infra")


def of(*finalizers, annotations=None, deleting=True, **more):
    """The header of an Infrastructure."""
    obj = infrastructure("ns", "aws", finalizers=[*finalizers], annotations=annotations or {})
    if deleting:
        obj["metadata"]["deletionTimestamp"] = format_time(NOW)
    obj["spec"].update(more)
    return header(obj)


def asked(kind, value, *, deleting=True):
    """The explanation of a force-deletion annotation in the place where the kind reads it."""
    in_cluster = decode(Cluster, cluster("ns", force=value))
    in_cluster.metadata = attrs.evolve(in_cluster.metadata, uid="u")
    on_object = {} if value is None else {FORCE_DELETION: value}
    if kind.force_from is ForceSource.SHOOT:
        head = of(deleting=deleting)
        verdict = in_cluster.verdict()
    else:
        head = of(annotations=on_object, deleting=deleting)
        verdict = Verdict(ClusterState.OK)
    return forcing(kind, head, verdict, in_cluster, None)


@pytest.mark.parametrize(
    ("value", "shoot", "bastion", "own"),
    [
        ("true", True, True, True),
        ("1", True, False, True),
        ("TRUE", True, False, True),
        ("T", True, False, True),
        ("false", False, False, False),
        ("yes", False, False, False),
        ("", False, False, False),
        (" true", False, False, False),
        (None, False, False, False),
    ],
)
def test_the_annotation_counts_where_the_reconciler_reads_it(value, shoot, bastion, own):
    found = [asked(kind, value) for kind in (Infrastructure.KIND, Bastion.KIND, OWN)]
    assert [item.counts for item in found] == [shoot, bastion, own]
    assert {item.value for item in found} == {value}


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (Infrastructure.KIND, "1", "deletion is forced"),
        (Infrastructure.KIND, "yes", "'yes' has no effect: it is not a boolean; set \"true\""),
        (Infrastructure.KIND, "", "'' has no effect: it is not a boolean; set \"true\""),
        (Infrastructure.KIND, "F", "'F' has no effect: it means false"),
        (Infrastructure.KIND, None, "the annotation is not set"),
        (Bastion.KIND, "1", "'1' has no effect: set \"true\"; this kind accepts no other value"),
        (OWN, "yes", "'yes' has no effect: it is not a boolean; set \"true\""),
        (BackupEntry.KIND, "true", "the deletion of the kind BackupEntry is never forced"),
    ],
)
def test_the_verdict_explains_its_reason(kind, value, words):
    assert asked(kind, value).verdict == words


def test_an_annotation_counts_only_once_the_object_is_being_deleted():
    found = asked(Infrastructure.KIND, "1", deleting=False)
    assert found.verdict == "deletion is forced once the object is deleted"


def test_an_annotation_on_the_object_is_reported_to_have_no_effect():
    head = of(annotations={FORCE_DELETION: "true"})
    found = forcing(Infrastructure.KIND, head, Verdict(ClusterState.OK), Cluster(), None)
    assert found.counts is False
    assert "the annotation on the object itself has no effect" in found.verdict


def test_an_object_outside_shoots_is_never_forced():
    found = forcing(
        Extension.KIND,
        header(infrastructure("ns", "x") | {"spec": {"type": "x", "class": "seed"}}),
        Verdict(ClusterState.OK, forced=True),
        Cluster(),
        None,
    )
    assert (found.counts, found.place) == (False, "")


def test_without_the_cluster_it_is_unknown_whether_deletion_is_forced():
    found = forcing(Infrastructure.KIND, of(), None, Cluster(), None)
    assert found.counts is None
    decision = decide(Infrastructure.KIND, KEY, of(), None)
    assert (decision.operation, decision.blocked) == ("", True)


def shoot_with(*codes, deleting=True):
    manifest = cluster("ns")
    shoot = manifest["spec"]["shoot"]
    shoot["status"]["lastErrors"] = [{"description": "no", "codes": [*codes]}]
    if deleting:
        shoot["metadata"]["deletionTimestamp"] = format_time(NOW)
    return decode(Cluster, manifest)


@pytest.mark.parametrize(
    ("around", "allowed", "words"),
    [
        (shoot_with("ERR_INFRA_UNAUTHENTICATED"), True, ""),
        (shoot_with("ERR_INFRA_QUOTA_EXCEEDED", "ERR_INFRA_DEPENDENCIES"), True, ""),
        (shoot_with("ERR_INFRA_QUOTA_EXCEEDED"), False, "one of the codes"),
        (shoot_with(), False, "one of the codes"),
        (shoot_with("ERR_INFRA_UNAUTHENTICATED", deleting=False), False, "not being deleted"),
    ],
)
def test_whether_gardener_allows_a_force_deletion_hangs_on_the_shoots_codes(around, allowed, words):
    error = LastError(codes=["ERR_INFRA_UNAUTHORIZED", "ERR_INFRA_QUOTA_EXCEEDED"])
    found = forcing(Infrastructure.KIND, of(), Verdict(ClusterState.OK), around, error)
    assert found.allowed is allowed
    assert words in found.not_allowed_because
    assert found.own_codes == ("ERR_INFRA_UNAUTHORIZED",)


def test_every_finalizer_has_an_owner_or_says_that_it_is_unknown():
    names = [
        Infrastructure.KIND.finalizer,
        "foregroundDeletion",
        "machine.sapcloud.io/machine-controller-manager",
        "resources.gardener.cloud/gardener-resource-manager-seed",
        "extensions.gardener.cloud/worker",
        "extensions.gardener.cloud/somebody",
        "example.org/cleanup",
        "cleanup",
    ]
    owners = [item.owner for item in held(names, Infrastructure.KIND)]
    assert [item.ours for item in held(names, Infrastructure.KIND)] == [True] + [False] * 7
    assert owners[1].startswith("the garbage collector")
    assert owners[2:6] == [
        "machine-controller-manager",
        "gardener-resource-manager",
        "the extension for Worker",
        "an extension of Gardener",
    ]
    assert owners[6:] == ["unknown: a controller of example.org", "unknown: the name has no domain"]


def test_an_extension_object_is_held_by_whichever_finalizer_its_extension_has():
    found = as_found(Extension.KIND, ["example.org/x", "extensions.gardener.cloud/dns"])
    assert found.finalizer == "extensions.gardener.cloud/dns"
    assert as_found(Extension.KIND, []) == Extension.KIND
    other = as_found(Infrastructure.KIND, ["extensions.gardener.cloud/dns"])
    assert other == Infrastructure.KIND


OURS = Infrastructure.KIND.finalizer


@pytest.mark.parametrize(
    ("head", "verdict", "operation", "words"),
    [
        (of(OURS), Verdict(ClusterState.OK), "delete", "deletion is not forced"),
        (of(OURS), Verdict(ClusterState.OK, forced=True), "force_delete", "is forced"),
        (of(OURS), Verdict(), "delete", "Cluster ns not found"),
        (of(), Verdict(ClusterState.OK), "", "our finalizer is removed"),
        (of(OURS, deleting=False), Verdict(ClusterState.OK), "reconcile", "spec"),
        (of(OURS), Verdict(ClusterState.OK, failed=True), "", "the shoot has failed"),
    ],
)
def test_the_operation_is_the_reconcilers_and_comes_with_a_reason(head, verdict, operation, words):
    found = decide(Infrastructure.KIND, KEY, head, verdict)
    assert found.operation == operation
    assert words in found.why


def test_a_settled_object_waits_to_be_asked():
    settled = replace(of(OURS, deleting=False), last_operation=("Create", "Succeeded"))
    found = decide(Infrastructure.KIND, KEY, settled, Verdict(ClusterState.OK))
    assert (found.operation, found.blocked) == ("reconcile", False)
    assert found.why.startswith("only when requested")


def standing(*finalizers, seconds=100.0, **more):
    since = format_time(NOW - timedelta(seconds=seconds))
    plain: dict[str, Any] = {
        "subject": Subject(
            api_version="extensions.gardener.cloud/v1alpha1",
            kind="Infrastructure",
            namespace="ns",
            name="infra",
            uid="u-1",
            type="aws",
            class_="",
        ),
        "decision": Decision(operation="delete", why="because"),
        "deleting": Deleting(timestamp=since, seconds=seconds),
        "last_operation": None,
        "last_error": None,
        "finalizers": held(finalizers, Infrastructure.KIND),
        "secret": None,
        "conditions": (),
        "forcing": Forcing(
            place="shoot", value=None, counts=False, verdict="the annotation is not set"
        ),
    }
    return Standing(**(plain | more))


TRIED = LastOperation(type="Delete", state="Error", last_update_time=format_time(NOW))


@pytest.mark.parametrize(
    ("more", "finalizers", "words"),
    [
        ({}, [OURS], "check that an extension runs for type 'aws'"),
        ({"seconds": 5.0}, [OURS], None),
        ({"last_operation": TRIED}, [OURS], None),
        (
            {"last_operation": TRIED, "last_error": LastError(description="no", codes=["ERR_X"])},
            [OURS],
            "no [ERR_X]",
        ),
        ({"decision": Decision(operation="", why="no Cluster", blocked=True)}, [], "no Cluster"),
        (
            {"secret": Reference(namespace="ns", name="creds", exists=False)},
            [],
            "referenced Secret ns/creds not found",
        ),
        ({"secret": Reference(namespace="ns", name="creds", exists=None)}, [], None),
        ({}, ["example.org/x"], "finalizer example.org/x (unknown: a controller of example.org)"),
        (
            {"forcing": Forcing(place="shoot", value="yes", counts=False, verdict="no boolean")},
            [],
            "force deletion: no boolean",
        ),
        (
            {"conditions": (Condition(type="DeletionBlocked", status="True", message="a wall"),)},
            [],
            "DeletionBlocked: a wall",
        ),
        (
            {"conditions": (Condition(type="DeletionBlocked", status="False", message="x"),)},
            [],
            None,
        ),
        (
            {"last_operation": LastOperation(type="Delete", state="Processing", description="hm")},
            [OURS],
            "Delete is in progress: hm",
        ),
    ],
)
def test_each_blocker_is_one_phrase(more, finalizers, words):
    found = list(blockers(Infrastructure.KIND, standing(*finalizers, **more)))
    assert found == ([] if words is None else [found[0]])
    assert words is None or words in found[0]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("reconcil", "did you mean 'reconcile'?"),
        ("Migrate", "did you mean 'migrate'?"),
        ("wait_for_state", "did you mean 'wait-for-state'?"),
        ("", "set one of migrate, reconcile, restore, wait-for-state"),
        ("now", "set one of migrate, reconcile, restore, wait-for-state"),
    ],
)
def test_an_unknown_operation_annotation_is_a_blocker_with_the_closest_value(value, words):
    (found,) = ignored_request(Infrastructure.KIND, of(annotations={OPERATION: value}))
    assert found == f"annotation {OPERATION} has no effect: unknown value {value!r}; {words}"


def test_an_operation_annotation_is_only_judged_where_extensions_read_it():
    for value in ("reconcile", "migrate", "restore", "wait-for-state"):
        assert not [*ignored_request(Infrastructure.KIND, of(annotations={OPERATION: value}))]
    assert not [*ignored_request(OWN, of(annotations={OPERATION: "reconcil"}))]


class Alone(StandIn):
    """Surroundings without a Cluster and a Secret."""

    cluster = Cluster()
    blockers = ()

    def verdict(self, kind):
        return Verdict(ClusterState.OK)

    def reference(self, secret):
        return None


def stood(kind, obj, *, created=NOW - timedelta(minutes=5)):
    """The state of an object that was created at a time."""
    obj["metadata"] |= {"uid": "u", "generation": 2, "creationTimestamp": format_time(created)}
    return stand(parse(kind, obj), Alone(), NOW)


def test_an_object_that_no_extension_works_on_is_blocked_by_its_type():
    words = "no extension has worked on it; check that an extension runs for type 'acmee'"
    fresh = infrastructure("ns", "acmee")
    assert stood(Infrastructure.KIND, fresh).blockers == (words,)
    assert stood(Infrastructure.KIND, fresh, created=NOW).blockers == ()
    touched = infrastructure("ns", "acmee", finalizers=[OURS])
    assert stood(Infrastructure.KIND, touched).blockers == ()
    waiting = infrastructure("ns", "acmee", annotations={OPERATION: "wait-for-state"})
    (reason,) = stood(Infrastructure.KIND, waiting).blockers
    assert "waiting for gardenlet" in reason


@pytest.mark.parametrize(
    ("ready", "observed", "words"),
    [
        ("True", 2, "only after a change: condition Ready is True for the current spec"),
        ("True", 1, "the spec is not reconciled yet"),
        ("False", 2, "the spec is not reconciled yet"),
    ],
)
def test_a_ready_object_of_an_own_kind_waits_for_a_change(ready, observed, words):
    status = {"conditions": [{"type": "Ready", "status": ready}], "observedGeneration": observed}
    tenant = {"metadata": {"name": "t", "namespace": "ns"}, "status": status}
    assert stood(OWN, tenant).decision.why == words


def test_forbidden_reads_come_with_the_role_to_create():
    def unread(resource, reason="forbidden (403)"):
        return Unread(verb="list", resource=resource, where="", reason=reason)

    found = [unread("events"), unread("secrets"), unread("events"), unread("pods", "too slow")]
    (line,) = grant(found)
    assert line.endswith(
        "kubectl create clusterrole actuator-explain --verb=get,list --resource=events,secrets"
    )
    assert not [*grant([unread("pods", "too slow")])]


def explanation():
    outside = ExternalResource(type="AWS::EC2::VPC", id="vpc-1", region="eu-1")
    return Explanation(
        standing=standing(
            OURS,
            "example.org/x",
            last_operation=TRIED,
            last_error=LastError(description="[bold]AuthFailure[/bold]", codes=["ERR_X"]),
            secret=Reference(namespace="ns", name="creds", exists=False),
            conditions=(Condition(type="DeletionBlocked", status="True", message="try 3"),),
            blockers=("the cloud says no",),
        ),
        removal=ForcedRemoval(
            actuator="Network",
            own_way=True,
            seed_objects=(
                SeedObject(
                    resource="machines.machine.sapcloud.io",
                    namespace="ns",
                    name="m-1",
                    deleting=True,
                    stripped=("machine.sapcloud.io/x",),
                    holding=("example.org/y",),
                ),
            ),
            remaining_resources=(outside,),
        ),
        webhooks=(
            CalledWebhook(
                configuration="guard",
                name="guard.example.org",
                mutating=False,
                failure_policy="Fail",
                patches=("finalizers", "status"),
                conditional=True,
                error="connection refused",
            ),
            CalledWebhook(
                configuration="mine",
                name="mine.example.org",
                mutating=True,
                failure_policy="Fail",
                patches=("finalizers",),
                conditional=False,
                exempts_deletion=True,
                ours=True,
            ),
        ),
        orphans=(
            Orphaned(
                name="u-1-abc",
                resource=outside,
                reason="ForceDeleted",
                state="Unverified",
                recorded_at=format_time(NOW),
            ),
        ),
        warnings=(
            WarningEvent(
                reason="DeleteFailed",
                message="the cloud says no",
                count=7,
                last_seen=format_time(NOW),
                source="aws",
            ),
        ),
        notes=("a note",),
        unread=(
            Unread(verb="get", resource="secrets", where="ns/creds", reason="forbidden (403)"),
        ),
    )


def shown(renderable, width=200):
    console = Screen(width=width)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def test_the_page_shows_every_part_and_nothing_is_taken_for_markup():
    text = shown(page(explanation()))
    for words in (
        "Infrastructure ns/infra",
        "[bold]AuthFailure[/bold]",
        "ERR_X",
        "ns/creds not found",
        "condition DeletionBlocked",
        "see Blockers",
        "try 3",
        "example.org/x",
        "machine.sapcloud.io/x",
        "example.org/y",
        "AWS::EC2::VPC vpc-1 in eu-1",
        "guard.example.org",
        "finalizers and status, on conditions",
        "connection refused",
        "mine (mutating, of an extension)",
        "nothing: it exempts objects under deletion",
        "u-1-abc",
        "DeleteFailed",
        "a note",
        "cannot get secrets ns/creds: forbidden (403)",
    ):
        assert words in text


def test_a_webhook_that_exempts_deletions_may_refuse_patches_before():
    living = attrs.evolve(explanation().standing, deleting=None)
    text = shown(page(attrs.evolve(explanation(), standing=living)))
    assert "finalizers, until the deletion" in text
    assert "nothing: it" not in text


@pytest.mark.parametrize(
    ("seconds", "age"), [(5, "5s"), (119, "119s"), (120, "2m"), (7200, "2h"), (200_000, "2d")]
)
def test_the_list_shows_ages_as_kubectl_does(seconds, age):
    row = standing(OURS, seconds=float(seconds), blockers=("a wall",))
    overview = Overview(namespace="ns", deleting=None, remaining=(), objects=(row,), unread=())
    _, line, reason = filter(str.strip, shown(summary(overview)).splitlines())
    assert line.endswith(f"terminating for {age}")
    assert reason.strip() == "- a wall"


@pytest.mark.parametrize(
    ("type_", "words"),
    [("Ready", "next operation delete, Ready False"), ("Healthy", "delete, no last operation")],
)
def test_the_list_shows_the_result_of_an_own_kind(type_, words):
    row = standing(OURS, conditions=(Condition(type=type_, status="False"),))
    overview = Overview(namespace="ns", deleting=None, remaining=(), objects=(row,), unread=())
    assert words in shown(summary(overview))


def test_a_list_indents_the_rest_of_a_long_line():
    blocked = standing(OURS, blockers=("a wall " * 30,))
    for rendered in (
        page(attrs.evolve(explanation(), standing=blocked)),
        summary(
            Overview(namespace="ns", deleting=None, remaining=(), objects=(blocked,), unread=())
        ),
    ):
        lines = [line for line in shown(rendered, width=80).splitlines() if "a wall" in line]
        assert len(lines) == 3
        assert [line[:4] for line in lines] == ["  - ", "    ", "    "]


CAUSE = "VPC vpc-1 has dependencies"
AFTER = LastError(description=f"Error deleting Infrastructure: {CAUSE}", codes=["ERR_X"])
BLOCKED = Condition(type="DeletionBlocked", status="True", message=f"{CAUSE}; 3 attempts")


def test_a_cause_is_a_blocker_once():
    (found,) = blockers(
        Infrastructure.KIND,
        standing(OURS, last_operation=TRIED, last_error=AFTER, conditions=(BLOCKED,)),
    )
    assert found == f"DeletionBlocked: {CAUSE}; 3 attempts [ERR_X]"
    other = attrs.evolve(BLOCKED, message="the webhook guard denied it")
    assert [
        *blockers(
            Infrastructure.KIND,
            standing(OURS, last_operation=TRIED, last_error=AFTER, conditions=(other,)),
        )
    ] == [
        "DeletionBlocked: the webhook guard denied it",
        f"{AFTER.description} [ERR_X]",
    ]


def test_the_page_names_a_cause_once():
    blocked = standing(
        OURS,
        last_operation=TRIED,
        last_error=AFTER,
        conditions=(BLOCKED,),
        blockers=(f"DeletionBlocked: {BLOCKED.message} [ERR_X]",),
    )
    event = attrs.evolve(explanation().warnings[0], message=CAUSE)
    text = shown(page(attrs.evolve(explanation(), standing=blocked, warnings=(event,))))
    assert text.count(CAUSE) == 1
    assert text.count("see Blockers") == 2


def test_the_json_has_every_field_even_when_it_is_empty():
    whole = json.loads(json.dumps(attrs.asdict(explanation())))
    empty = attrs.evolve(explanation(), removal=None, webhooks=(), orphans=(), notes=())
    assert json.loads(json.dumps(attrs.asdict(empty))).keys() == whole.keys()
    assert set(whole) == {
        "standing",
        "removal",
        "webhooks",
        "orphans",
        "warnings",
        "notes",
        "unread",
    }
    assert {"decision", "deleting", "finalizers", "forcing", "blockers", "conditions"} <= set(
        whole["standing"]
    )
