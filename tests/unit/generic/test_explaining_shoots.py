"""The explanation of a Shoot: its state, the force deletion, the next step, and the page."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from actuator.cluster import FORCE_DELETION
from actuator.errors import (
    ActuatorError,
    DecodeError,
    ErrorCode,
    NotFound,
    NotServed,
    Unauthorized,
    Unavailable,
)
from actuator.interface import ExternalResource
from actuator.meta import LastOperation, Raw, format_time
from generic.kube.deleting import CONFIRM_DELETION
from generic.kube.plain import json_text
from generic.tools.cli.screen import Screen
from generic.tools.cli.shoot_page import shoot_page
from generic.tools.explain.facts import (
    Decision,
    Explanation,
    Forcing,
    Orphaned,
    Overview,
    Standing,
    Subject,
    Unread,
)
from generic.tools.explain.garden import LandscapeClients, explain_shoot
from generic.tools.explain.shoot import SeedPart, ShootExplanation, actions, next_step, state_of
from tests.support.objects.stand_ins import StandIn

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
SINCE = format_time(NOW - timedelta(minutes=5))
REVOKED = ("ERR_INFRA_UNAUTHENTICATED",)


def shoot(
    state="Error",
    *,
    codes=(),
    deleting=False,
    seed="one",
    annotations=None,
    type="Delete",
    **status,
):
    """A Shoot in the garden; `codes` is one last error, unless it is None."""
    meta: Raw = {"name": "mine", "namespace": "garden-dev", "uid": "u-1"}
    meta["annotations"] = annotations or {}
    if deleting:
        meta["deletionTimestamp"] = SINCE
    operation = {"type": type, "state": state, "progress": 40, "description": "no luck"}
    error = {"description": "AuthFailure", "taskID": "Destroying infrastructure"}
    found = {
        "lastOperation": {**operation, "lastUpdateTime": SINCE} if state else None,
        "lastErrors": [{**error, "codes": [*codes]}] if codes is not None else None,
        "technicalID": "shoot--dev--mine" if seed else None,
        **status,
    }
    return {
        "metadata": meta,
        "spec": {"seedName": seed} if seed else {},
        "status": {name: value for name, value in found.items() if value is not None},
    }


def state(*args, **more):
    return state_of(shoot(*args, **more), NOW)


ALLOWED = [code.value for code in ErrorCode if code.allows_force_deletion]


def test_the_codes_that_allow_a_force_deletion_are_gardeners():
    assert sorted(ALLOWED) == [
        "ERR_CLEANUP_CLUSTER_RESOURCES",
        "ERR_CONFIGURATION_PROBLEM",
        "ERR_INFRA_DEPENDENCIES",
        "ERR_INFRA_UNAUTHENTICATED",
        "ERR_INFRA_UNAUTHORIZED",
    ]


@pytest.mark.parametrize(
    ("given", "allowed", "words"),
    [
        *(({"deleting": True, "codes": [code]}, True, "") for code in ALLOWED),
        ({"deleting": True, "codes": ["ERR_INFRA_QUOTA_EXCEEDED", *REVOKED]}, True, ""),
        ({"deleting": True, "codes": ["ERR_INFRA_QUOTA_EXCEEDED"]}, False, "has one of the codes"),
        ({"deleting": True, "codes": []}, False, "has one of the codes"),
        ({"deleting": True, "codes": None}, False, "has one of the codes"),
        ({"codes": REVOKED}, False, "is not being deleted; delete it first"),
        ({"deleting": True, "codes": None, "annotations": {FORCE_DELETION: "1"}}, True, ""),
        ({"deleting": True, "codes": None, "annotations": {FORCE_DELETION: "yes"}}, False, "codes"),
    ],
)
def test_gardener_accepts_the_annotation_by_its_own_rule(given, allowed, words):
    found = state(**given).forcing
    assert found.allowed is allowed
    assert words in found.not_allowed_because
    assert bool(found.not_allowed_because) is not allowed


@pytest.mark.parametrize(
    ("value", "counts", "verdict"),
    [
        (None, False, "the annotation is not set"),
        ("true", True, "deletion is forced"),
        ("false", False, "it means false"),
        ("yes", False, "it is not a boolean"),
    ],
)
def test_the_annotation_as_written_has_a_verdict(value, counts, verdict):
    annotations = {} if value is None else {FORCE_DELETION: value}
    found = state(deleting=True, annotations=annotations).forcing
    assert (found.value, found.counts) == (value, counts)
    assert verdict in found.verdict


@pytest.mark.parametrize(
    ("value", "confirmed"), [(None, False), ("true", True), ("1", True), ("no", False)]
)
def test_a_deletion_is_confirmed_as_gardener_reads_the_annotation(value, confirmed):
    annotations = {} if value is None else {CONFIRM_DELETION: value}
    assert state(annotations=annotations).confirmed is confirmed


def test_the_seed_that_runs_the_shoot_precedes_the_assigned_one():
    assert state().seed == "one"
    assert state(seedName="old").seed == "old"
    assert state(seed="").seed == ""


def test_times_errors_and_conditions_are_those_of_the_garden():
    found = state(deleting=True, codes=REVOKED, conditions=[{"type": "A", "status": "False"}])
    assert (found.deleting.timestamp, found.deleting.seconds) == (SINCE, 300.0)
    (error,) = found.status.last_errors
    assert (error.task_id, error.codes) == ("Destroying infrastructure", [*REVOKED])
    assert found.status.technical_id == "shoot--dev--mine"
    assert [condition.type for condition in found.status.conditions] == ["A"]


def test_a_status_that_is_no_status_is_an_error():
    with pytest.raises(DecodeError):
        state(conditions="none")
    assert state_of({"metadata": {"name": "mine", "namespace": "garden-dev"}}, NOW).seed == ""


FORCED = {FORCE_DELETION: "true"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"seed": "", "state": "Pending"}, "gardener-scheduler retries to find a seed"),
        ({"seed": "", "deleting": True}, "once its finalizers are removed"),
        ({"state": ""}, "the gardenlet of seed one starts the first operation"),
        ({"state": "Processing"}, "gardenlet continues the operation"),
        ({"state": "Error"}, "gardenlet retries the operation"),
        ({"state": "Succeeded"}, "in the maintenance time window"),
        ({"state": "Failed"}, "nothing: gardenlet retries a Failed Shoot only after"),
        (
            {"state": "Failed", "deleting": True, "annotations": FORCED},
            "force-delete their objects",
        ),
        ({"state": "Failed", "annotations": FORCED}, "nothing: "),
    ],
)
def test_the_next_step_follows_from_the_last_operation(given, words):
    assert words in next_step(state(**given))


FIX = "fix the cause of the last errors"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"state": "Succeeded", "codes": None}, []),
        ({"state": "Processing", "codes": None, "deleting": True}, []),
        (
            {"state": "Pending", "codes": None, "seed": ""},
            ["the owner of the Shoot or the operator"],
        ),
        ({"seed": "", "codes": None, "deleting": True}, []),
        ({"codes": REVOKED}, [f"the owner of the Shoot: {FIX}"]),
        ({"codes": []}, [f"the operator of Gardener: {FIX}"]),
        ({"codes": ["ERR_INFRA_RATE_LIMITS_EXCEEDED"]}, [f"the operator of Gardener: {FIX}"]),
        ({"codes": REVOKED, "state": "Failed"}, [f"the owner of the Shoot: {FIX}, then set the"]),
        ({"codes": None, "state": "Failed"}, [f"the operator of Gardener: {FIX}, then set the"]),
        (
            {"codes": REVOKED, "state": "Failed", "deleting": True},
            [f"the owner of the Shoot: {FIX}, then", "the owner of the Shoot: if the cause cannot"],
        ),
        ({"codes": REVOKED, "deleting": True, "annotations": FORCED}, []),
    ],
)
def test_each_action_names_the_person_who_must_act(given, expected):
    found = [*actions(state(**given), SeedPart())]
    assert len(found) == len(expected)
    for action, beginning in zip(found, expected, strict=True):
        assert action.startswith(beginning)


def test_the_command_that_forces_a_deletion_can_be_copied():
    *_, action = actions(state(codes=REVOKED, deleting=True), SeedPart())
    command = f"kubectl annotate shoot -n garden-dev mine {FORCE_DELETION}=true"
    assert action.endswith(command)


class Refusing(StandIn):
    """The client of a cluster that refuses every read."""

    def __init__(self, error):
        self.error = error

    def get(self, *_, **__):
        raise self.error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            NotServed(404, "no such API", reason="NotServed"),
            "because it does not serve core.gardener.cloud/v1beta1; set",
        ),
        (NotFound(404, "no"), "Shoot garden-dev/mine not found in the garden; if it was deleted"),
        (Unauthorized(401, "no"), "renew the credentials in --garden-kubeconfig"),
        (Unavailable(503, "the aggregated API"), "the aggregated API; check that the server in"),
    ],
)
def test_a_garden_that_refuses_is_one_sentence_with_a_remedy(error, words):
    with pytest.raises(ActuatorError) as caught:
        explain_shoot(LandscapeClients(Refusing(error), None), "garden-dev", "mine", NOW, [])
    assert words in str(caught.value)


def test_without_a_client_for_the_seed_the_garden_is_enough():
    found = explain_shoot(LandscapeClients(Answering(), None), "garden-dev", "mine", NOW, [])
    assert found.shoot.seed == "one"
    assert found.seed.problem == "no client for the seed"
    assert found.seed.overview is None


class Answering(StandIn):
    """The client of a garden with one Shoot."""

    def get(self, *_, **__):
        return shoot(codes=REVOKED)


def standing(kind="Infrastructure", *blockers):
    last = LastOperation(type="Create", state="Succeeded", last_update_time=SINCE)
    subject = Subject(
        api_version="v", kind=kind, namespace="ns", name=kind[:3], uid="", type="aws", class_=""
    )
    return Standing(
        subject=subject,
        decision=Decision(operation="reconcile", why="w"),
        deleting=None,
        last_operation=None if kind == "DNSRecord" else last,
        last_error=None,
        finalizers=(),
        secret=None,
        conditions=(),
        forcing=Forcing(place="", value=None, counts=False, verdict="never"),
        blockers=blockers,
    )


def seed_part():
    blocked = standing("Worker", "the cloud says no")
    unread = Unread(verb="get", resource="secrets", where="ns/a", reason="forbidden (403)")
    rows = (blocked, standing(), standing("DNSRecord"))
    explanation = Explanation(
        standing=blocked,
        removal=None,
        webhooks=(),
        orphans=(),
        warnings=(),
        notes=(),
        unread=(),
    )
    orphan = Orphaned(
        name="u-1-abc",
        resource=ExternalResource(type="AWS::EC2::VPC", id="vpc-1"),
        reason="ForceDeleted",
        state="Exists",
        recorded_at=SINCE,
    )
    return SeedPart(
        overview=Overview(
            namespace="ns", deleting=None, remaining=(), objects=rows, unread=(unread,)
        ),
        explanations=(explanation,),
        orphans=(orphan,),
        notes=("a note",),
    )


def test_blocked_objects_and_open_orphans_are_actions_of_their_operators():
    first, second = actions(state("Succeeded", codes=None), seed_part())
    assert first.startswith("the operators of the extensions: ")
    assert second.startswith("the owner of the cloud account: ")


def explanation(seed, **more):
    found = state(
        codes=REVOKED,
        deleting=True,
        conditions=[
            {"type": "APIServerAvailable", "status": "False", "message": "[b]refused[/b]"},
            {"type": "EveryNodeReady", "status": "True", "message": "all are"},
        ],
        constraints=[
            {"type": "HibernationPossible", "status": "True", "message": "fine"},
            {
                "type": "MaintenancePreconditionsSatisfied",
                "status": "False",
                "message": "a webhook",
            },
        ],
        annotations={CONFIRM_DELETION: "true"},
        **more,
    )
    steps = tuple(actions(found, seed))
    return ShootExplanation(shoot=found, seed=seed, next=next_step(found), actions=steps)


def shown(found):
    console = Screen(width=200)
    with console.capture() as capture:
        console.print(shoot_page(found))
    return capture.get()


def test_the_page_shows_garden_and_seed():
    text = shown(explanation(seed_part()))
    for words in (
        "Shoot garden-dev/mine, uid u-1",
        "Delete Error, 40 %",
        "no luck",
        "for 5m, since 2026-05-04T11:55:00Z",
        "AuthFailure [ERR_INFRA_UNAUTHENTICATED], task Destroying infrastructure",
        "False: [b]refused[/b]",
        "False: a webhook",
        "allowed by Gardener",
        "DNSRecord",
        "no last operation",
        "Worker ns/Wor, type aws",
        "the cloud says no",
        "AWS::EC2::VPC vpc-1",
        "gardenlet retries the operation",
        "the operators of the extensions",
        "a note",
        "cannot get secrets ns/a: forbidden (403)",
    ):
        assert words in text
    assert "EveryNodeReady" not in text
    assert "fine" not in text
    rows = [line for line in text.splitlines() if line.startswith("│")]
    assert [row.split()[1] for row in rows] == ["Infrastructure", "DNSRecord", "u-1-abc"]


def test_without_the_seed_the_page_has_one_sentence_about_it():
    text = shown(explanation(SeedPart(problem="kubeconfig x does not exist")))
    assert text.count("kubeconfig x does not exist; --kubeconfig must be that of seed one") == 1
    assert "Extension objects" not in text
    new = explanation(SeedPart(problem="no gardenlet has started"), technicalID=None)
    assert "--kubeconfig must" not in shown(new)


def test_the_json_has_the_same_fields_with_and_without_a_seed():
    whole = json.loads(json_text(explanation(seed_part())))
    alone = json.loads(json_text(explanation(SeedPart())))
    assert whole.keys() == alone.keys() == {"shoot", "seed", "next", "actions"}
    assert whole["seed"].keys() == alone["seed"].keys()
    assert whole["shoot"]["status"]["lastErrors"][0]["codes"] == [*REVOKED]
    assert whole["seed"]["overview"]["objects"][0]["blockers"] == ["the cloud says no"]
