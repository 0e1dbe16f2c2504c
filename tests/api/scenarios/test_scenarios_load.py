"""Many deletions, elections on a slow cluster, and clocks that are wrong."""

import threading
import time
from datetime import timedelta

import pytest

from actuator import ActuatorError, ErrorCode, ExternalResource, Resource
from actuator.meta import parse_time
from actuator.v1alpha1 import Infrastructure
from generic.kube.client import connect
from generic.kube.clock import SystemClock
from generic.kube.clusters import CLUSTERS
from generic.manager.leaderelection import LeaderElector, Timing
from generic.reconciler.orphans import ORPHANS, SHOOT_LABEL
from generic.serving.metrics import Metrics
from generic.tools.explain import explain
from hack.faults import Effect, Fault, FaultProxy
from tests.support.cluster.harness import Script, Seed, eventually
from tests.support.objects.builders import cluster, infrastructure

MANY = 60
NAMESPACES = Resource("v1", "namespaces", namespaced=False)
STEADY = Timing(lease_duration=5, renew_deadline=4, retry_period=0.4)
"""Long enough that a machine that is only busy loses no lease."""


# --- 41


@pytest.fixture
def other_shoot(admin, namespace):
    """A second shoot, whose objects are of the same type."""
    name = f"{namespace}-other"
    admin.create(NAMESPACES, {"metadata": {"name": name}})
    seed = Seed(admin, name)
    seed.create(cluster(name))
    yield seed
    admin.delete(CLUSTERS, name)


def test_scenario_41_a_forced_deletion_goes_ahead_of_many_that_are_throttled(
    seed, other_shoot, start
):
    """A limit on the requests to a cloud is its client's business: boto3 has one."""
    throttled = threading.Event()
    throttled.set()

    def delete(ctx, obj, cluster):
        if throttled.is_set():
            time.sleep(0.2)
            raise ActuatorError("429", codes=[ErrorCode.ERR_INFRA_RATE_LIMITS_EXCEEDED])

    script = Script(delete=delete)
    start(script, max_concurrent_reconciles=2)
    names = [f"infra-{number}" for number in range(MANY)]
    for name in names:
        seed.create(infrastructure(seed.namespace, seed.namespace, name))
    other_shoot.create(infrastructure(other_shoot.namespace, seed.namespace, "forced"))
    for name in names:
        eventually(lambda name=name: seed.is_ready(name))
    eventually(lambda: other_shoot.is_ready("forced"))
    for name in names:
        seed.client.delete(seed.resource, name, seed.namespace)
    other_shoot.update_cluster(cluster(other_shoot.namespace, force="true"))
    other_shoot.delete("forced")
    eventually(lambda: other_shoot.is_gone("forced"))
    assert len(seed.client.list(seed.resource, seed.namespace)) == MANY
    throttled.clear()
    eventually(lambda: not seed.client.list(seed.resource, seed.namespace), 240)


# --- 17


class Candidate:
    """An elector in a thread."""

    def __init__(self, client, namespace):
        self.lost = threading.Event()
        self.stop = threading.Event()
        self.elector = LeaderElector(
            client,
            namespace,
            "slow",
            on_started=lambda: None,
            on_lost=self.lost.set,
            clock=SystemClock(),
            metrics=Metrics(),
            timing=STEADY,
        )
        self.thread = threading.Thread(target=self.elector.run, args=(self.stop,), daemon=True)
        self.thread.start()

    def end(self):
        self.stop.set()
        self.elector.release()
        self.thread.join(30)


def test_scenario_17_a_candidate_leads_again_after_an_election_on_a_slow_etcd(
    kubeconfig, namespace, tmp_path
):
    """A candidate that lost the lease ends its process; a waiting or new one takes over."""
    with FaultProxy(kubeconfig, tmp_path) as proxy:
        client = connect(proxy.kubeconfig).within(2)
        first = Candidate(client, namespace)
        eventually(first.elector.is_leading)
        standby = Candidate(client, namespace)
        stalled = proxy.inject(Fault(effect=Effect.STALL, resource="leases.*"))
        assert first.lost.wait(60)
        assert not standby.elector.is_leading()
        stalled.remove()
        eventually(standby.elector.is_leading)
        assert not first.elector.is_leading()
        first.end()
        standby.end()


# --- 19


class Skewed(SystemClock):
    """Its time of day is wrong, and jumps."""

    def __init__(self, minutes):
        self.minutes = minutes

    def now(self):
        return super().now() + timedelta(minutes=self.minutes)


class OneVpc(Script):
    """Leaves one thing outside."""

    def external_resources(self, obj):
        yield ExternalResource(type="VPC", id="vpc-1")


@pytest.mark.parametrize("minutes", [-5, 5])
def test_scenario_19_a_wrong_clock_stretches_no_budget_and_makes_no_age_negative(
    seed, start, gate, minutes
):
    clock = Skewed(minutes)
    script = OneVpc(force_delete=lambda ctx, obj, cluster: gate.wait(100) and None)
    start(script, clock=clock, force_delete_budget=5.0)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    seed.update_cluster(cluster(seed.namespace, force="true"))
    began = time.monotonic()
    seed.delete()
    eventually(lambda: "force_delete" in script.operations())
    clock.minutes = -minutes
    explained = explain(
        seed.client, Infrastructure.KIND, seed.namespace, "infra", clock.now(), None
    )
    assert explained.standing.deleting is not None
    assert 0 <= explained.standing.deleting.seconds < 600
    eventually(seed.is_gone)
    assert 4.5 < time.monotonic() - began < 200, "not the five minutes that the clock is wrong"
    (orphan,) = seed.client.list(ORPHANS, label_selector=f"{SHOOT_LABEL}={seed.namespace}")
    skew = parse_time(orphan["spec"]["recordedAt"]) - SystemClock().now()
    assert abs(skew.total_seconds() + minutes * 60) < 120, "the record says what the clock said"


def test_scenario_19_a_wrong_clock_holds_no_operation_up(seed, start, script):
    """gardenlet compares our times with its own: it waits longer by the error of the clock.

    So it is with Gardener's extension library.
    """
    start(script, clock=Skewed(-5))
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    seed.ask("reconcile")
    eventually(lambda: seed.last_operation() == ("Reconcile", "Succeeded"))
    assert script.operations() == ["reconcile"] * 2
    seed.delete()
    eventually(seed.is_gone)
