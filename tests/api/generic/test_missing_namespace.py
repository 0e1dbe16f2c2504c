"""A namespace that was removed by `/finalize`, whose objects are still in etcd."""

import pytest

from actuator.v1alpha1 import Infrastructure
from generic.kube.clock import SystemClock
from generic.kube.clusters import NAMESPACES
from generic.tools.explain.gather import explain, overview
from tests.support.cluster.harness import (
    EVENTS,
    FINALIZER,
    Script,
    eventually,
    remove_namespace,
    samples,
)
from tests.support.objects.builders import cluster, infrastructure

OUTCOMES = "actuator_deletions_total"


@pytest.fixture
def lost(seed, start, gate):
    """Returns a function: it begins an operation, removes the namespace, and lets it end."""

    def lose(operation, begin, **options):
        script = Script(**{operation: lambda *_: gate.wait(60) and None})
        manager = start(script, leader_election_namespace="default", **options)
        seed.create(infrastructure(seed.namespace, seed.namespace))
        eventually(seed.is_ready)
        begin(seed)
        eventually(lambda: operation in script.operations())
        remove_namespace(seed.client, seed.namespace)
        gate.set()
        return manager, script

    return lose


def forces(seed):
    seed.update_cluster(cluster(seed.namespace, force="true"))
    seed.delete()


@pytest.mark.parametrize(
    ("operation", "begin", "outcome"),
    [
        ("delete", lambda seed: seed.delete(), "deleted"),
        ("force_delete", forces, "force_deleted"),
        ("migrate", lambda seed: seed.ask("migrate"), "skipped"),
    ],
)
def test_an_object_without_its_namespace_is_retried_and_shown_until_it_can_be_released(
    seed, lost, operation, begin, outcome
):
    manager, script = lost(operation, begin, force_delete_budget=2.0)
    [event] = eventually(lambda: in_default(seed, operation))
    assert f"Infrastructure {seed.namespace}/infra: " in event["message"]
    assert "create the namespace again" in event["message"]
    assert FINALIZER in seed.get()["metadata"]["finalizers"]
    assert not any(samples(manager, OUTCOMES)[item] for item in ("deleted", "force_deleted"))
    assert samples(manager, "actuator_errors_total")
    for standing in explained(seed):
        assert f"namespace {seed.namespace} not found" in standing.blockers[0]

    seed.client.create(NAMESPACES, {"metadata": {"name": seed.namespace}})
    if operation == "migrate":
        eventually(lambda: FINALIZER not in seed.get()["metadata"].get("finalizers", ()))
        seed.delete()
    else:
        assert script.operations().count(operation) == 1
    eventually(seed.is_gone)
    eventually(lambda: samples(manager, OUTCOMES)[outcome] == (operation != "migrate"))
    assert samples(manager, "actuator_finalizers_removed_externally_total") == {"Infrastructure": 0}


def explained(seed):
    kind = Infrastructure.KIND
    now = SystemClock().now()
    yield explain(seed.client, kind, seed.namespace, "infra", now).standing
    yield from overview(seed.client, [kind], seed.namespace, now).objects


def in_default(seed, operation):
    reason = f"{operation.title().replace('_', '')}Error"
    found = seed.client.list(EVENTS, "default")
    return [
        event
        for event in found
        if event["involvedObject"].get("name") == seed.namespace and event["reason"] == reason
    ]
