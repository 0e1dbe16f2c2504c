"""Evidence of a drill or a migration, to judge and to make a page of."""

from typing import Any

from actuator.interface import ExternalResource
from generic.testing.drill.evidence import Bystander, Evidence, Life, Record, Strip
from generic.testing.drill.kills.calls import ObservedCall
from generic.testing.drill.kills.processes import Death
from generic.testing.drill.migration.rules import Arrival, MigrationEvidence, Move

VPC = ExternalResource(type="VPC", id="vpc-1", tags={"shoot/shoot--a": "1"}, region="eu-1")


def life(kind="Infrastructure", **more):
    seen: dict[str, Any] = {"created": 0.0, "ready": 1.0, "deleted": 2.0}
    seen |= {"stuck": 2.5, "forced": 5.0}
    seen |= {"released": 6.0, "gone": 6.5, "codes": ["ERR_INFRA_UNAUTHENTICATED"]}
    seen |= {"error": "no <script>alert(1)</script>", "outcomes": ["orphaned"], "uid": kind}
    seen |= {"said": more.get("outcomes", ["orphaned"])}
    return Life(kind=kind, name="n", **(seen | {"shoot": "shoot--a"} | more))


def evidence(**more):
    seen: dict[str, Any] = {
        "lives": [
            life(),
            life("ControlPlane", outcomes=["force_deleted"]),
            life("Bad", bad=True, ready=None, outcomes=[]),
        ],
        "resources_before": [VPC],
        "resources_after": [VPC],
        "records": [Record(shoot="shoot--a", owner="Infrastructure n", resource=VPC)],
        "strips": [Strip(shoot="shoot--a", text="Stripped x/y from things.x n")],
        "bystanders": [Bystander(name="configmaps a/b", problem=None)],
        "stripped": 1,
        "counted": {"orphaned": 2, "force_deleted": 1, "failed": 9},
        "failed_while_stuck": {"Infrastructure": 3, "ControlPlane": 1, "Bad": 1},
        "requests": {"PATCH": 9},
    }
    facts = {"drill": "abc", "title": "T", "scenario": "s", "scenario_text": "It rains."}
    return Evidence(**(facts | {"started": "2026-01-01T00:00:00Z"} | seen | more))


def move(**more):
    seen: dict[str, Any] = {
        "shoot": "shoot--a",
        "ready": 1.0,
        "handed_over": 2.0,
        "restored": 3.0,
        "gone": 4.0,
    }
    return Move(**(seen | more))


def call(seed, operation, at, **more):
    facts: dict[str, Any] = {
        "kind": "Infrastructure",
        "shoot": "shoot--a",
        "name": "n",
        "state": "abc",
    }
    return ObservedCall(seed=seed, operation=operation, at=at, **(facts | more))


def migration(**more):
    seen: dict[str, Any] = {
        "moves": [move()],
        "calls": [
            call("source", "reconcile", 0.5),
            call("source", "migrate", 1.5),
            call("source", "delete", 1.5, kind="Bastion"),
            call("destination", "restore", 2.5),
            call("destination", "delete", 3.5),
        ],
        "kills": [Death(seed="source", phase=phase, at=1.5) for phase in ("migrate", "restore")],
        "arrivals": [Arrival(shoot="shoot--a", what="<state>", sent="abc", came="abc")],
        "staying": ["Bastion"],
        "resources_before": [VPC],
        "resources_moved": [VPC],
    }
    seen |= {"drill": "abc", "title": "T", "scenario": "migration", "scenario_text": "It moves."}
    return MigrationEvidence(**(seen | more))
