"""Nodes are compared with machines: which results are accepted for a time."""

from __future__ import annotations

from typing import Any

import pytest

from actuator.cluster import Cluster
from actuator.errors import Unavailable
from actuator.interface import SHOOT_ACCESS
from generic.library.healthchecks import Check, HealthContext, nodes
from generic.library.healthchecks.runs import Runs
from tests.support.objects.stand_ins import StandIn

GONE = "2026-01-01T00:00:00Z"
UP, DOWN = 300.0, 900.0


def deployment(replicas: int, available: str = "True", **meta: Any) -> dict[str, Any]:
    status = {"conditions": [{"type": "Available", "status": available}]}
    named = {"name": "pool", "namespace": "shoot--a--b", **meta}
    return {"metadata": named, "spec": {"replicas": replicas}, "status": status}


def failed() -> dict[str, Any]:
    machine = {"name": "m-1", "lastOperation": {"description": "no quota"}}
    return deployment(1, "False") | {"status": {"failedMachines": [machine]}}


def machine(node: str, phase: str = "Running", **meta: Any) -> dict[str, Any]:
    current = {"phase": phase}
    labels = {"node": node}
    return {"metadata": {"labels": labels, **meta}, "status": {"currentStatus": current}}


def node(name: str, ready: str = "True", cordoned: bool = False, **conditions: str):
    found = {"Ready": ready, **conditions}
    listed = [{"type": type, "status": status} for type, status in found.items()]
    spec = {"unschedulable": True} if cordoned else {}
    return {"metadata": {"name": name}, "spec": spec, "status": {"conditions": listed}}


def unmanaged(name: str) -> dict[str, Any]:
    annotations = {"node.machine.sapcloud.io/not-managed-by-mcm": "1"}
    return node(name) | {"metadata": {"name": name, "annotations": annotations}}


class Lists(StandIn):
    """A client that lists the given objects."""

    def __init__(self, **found: list[Any]) -> None:
        self._found = found

    def list(self, resource, namespace=""):
        return self._found[resource.plural]


def context(deployments, machines, found) -> HealthContext:
    seed = Lists(machinedeployments=deployments, machines=machines)
    namespace = type("Meta", (), {"namespace": "shoot--a--b"})
    obj = type("Worker", (), {"metadata": namespace})
    return HealthContext(obj, Cluster(), seed, lambda: Lists(nodes=found))


A, B = machine("a"), machine("b")
CASES = {
    "as many as desired": ([deployment(2)], [A, B], [node("a"), node("b")], None, ""),
    "no machines at all": ([], [], [], None, ""),
    "a node of another owner": ([deployment(1)], [A], [node("a"), unmanaged("x")], None, ""),
    "a preserved failed machine": (
        [deployment(2)],
        [A, B],
        [node("a"), node("b", "Unknown", cordoned=True, NodePreserved="True")],
        None,
        "",
    ),
    "machines are not created yet": (
        [deployment(2, "False")],
        [A],
        [node("a")],
        UP,
        "not enough machine objects created yet (1/2)",
    ),
    "a machine is pending": (
        [deployment(2, "False")],
        [A, machine("b", "Pending")],
        [node("a")],
        UP,
        "1 machine is provisioning and should join the cluster soon",
    ),
    "machines without a phase": (
        [deployment(2, "False")],
        [machine("a", ""), machine("b", "")],
        [],
        UP,
        "2 machines are provisioning",
    ),
    "a node is not ready": (
        [deployment(2)],
        [A, B],
        [node("a"), node("b", "Unknown")],
        UP,
        "not enough ready worker nodes registered in the cluster (1/2)",
    ),
    "an old machine leaves in a rollout": (
        [deployment(2)],
        [A, B, machine("c", "Terminating", deletionTimestamp=GONE)],
        [node("a"), node("b", "False"), node("c", cordoned=True)],
        UP,
        "not enough ready worker nodes",
    ),
    "a machine cannot be created": (
        [deployment(2, "False")],
        [A, machine("b", "CrashLoopBackOff")],
        [node("a")],
        0,
        "1 machine is erroneous",
    ),
    "a failed machine": ([failed()], [A], [], 0, 'machine "m-1" failed: no quota'),
    "a deployment is not available": (
        [deployment(1, "False")],
        [A],
        [node("a")],
        0,
        'machine deployment "pool" in namespace "shoot--a--b" is unhealthy',
    ),
    "nodes are drained": (
        [deployment(1)],
        [A, machine("b", "Terminating", deletionTimestamp=GONE)],
        [node("a"), node("b", cordoned=True)],
        DOWN,
        "1 machine is waiting to be completely drained",
    ),
    "a pool is deleted": (
        [deployment(1), deployment(1, "False", deletionTimestamp=GONE)],
        [A, B],
        [node("a"), node("b")],
        DOWN,
        "too many worker nodes are registered, more than machines are desired (2/1)",
    ),
    "a cordoned node without a machine": (
        [deployment(1)],
        [A],
        [node("a"), node("b", cordoned=True)],
        0,
        'machine object for cordoned node "b" not found',
    ),
    "a cordoned node that stays": (
        [deployment(1)],
        [A, B],
        [node("a"), node("b", cordoned=True)],
        0,
        'node "b" is cordoned, but its machine is not under deletion',
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_nodes_are_healthy_progressing_or_not(case):
    """A threshold of None means healthy, 0 means unhealthy at once."""
    *seen, threshold, detail = case
    result = nodes()(context(*seen))
    assert detail in result.detail
    status = {None: "True", 0: "False"}.get(threshold, "Progressing")
    assert (result.status, result.progressing_threshold or threshold) == (status, threshold)


def test_both_thresholds_can_be_set():
    check = nodes(scale_up_threshold=1, scale_down_threshold=2)
    up = check(context([deployment(1)], [], []))
    down = check(context([deployment(0)], [], [node("a")]))
    assert (up.progressing_threshold, down.progressing_threshold) == (1, 2)


@pytest.mark.parametrize("strange", [None, [], "x", {"conditions": "x"}, {"conditions": [None]}])
def test_a_node_with_strange_fields_is_not_ready(strange):
    """The owner of a shoot can send anything."""
    found = [{"metadata": {"name": "a"}, "spec": strange, "status": strange}]
    result = nodes()(context([deployment(1)], [A], found))
    assert "(0/1)" in result.detail


def test_an_unreachable_shoot_is_an_error_of_the_check():
    def unreachable() -> Any:
        raise Unavailable(0, "no answer")

    seed = Lists(machinedeployments=[], machines=[])
    ctx = HealthContext(context([], [], []).obj, Cluster(), seed, unreachable)
    (error,) = Runs().run("uid", [lambda: Check("EveryNodeReady", nodes()).run(ctx)], 60)
    assert "no answer" in str(error)


def test_the_check_declares_its_permissions():
    permissions = Check("EveryNodeReady", nodes()).permissions
    assert SHOOT_ACCESS in permissions
    assert {str(permission.resource).partition(".")[0] for permission in permissions} == {
        "machinedeployments",
        "machines",
        "secrets",
    }
