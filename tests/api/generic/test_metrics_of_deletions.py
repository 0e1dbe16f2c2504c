"""Metrics of deletions, through the real reconciler: counters, durations, the cache."""

from datetime import timedelta

from actuator import ActuatorError, ErrorCode, ExternalResource, RequeueAfter
from generic.kube.clock import SystemClock
from tests.support.cluster.harness import FINALIZER, Script, eventually, samples
from tests.support.objects.builders import cluster, infrastructure

FOREIGN = "example.org/foreign"


class Ahead(SystemClock):
    """An hour later than it is, so that every object has been under deletion for long."""

    def now(self):
        return super().now() + timedelta(hours=1)


class Leaving(Script):
    def external_resources(self, obj):
        return [ExternalResource(type="vpc", id="vpc-1")]


def fail(*_args):
    raise ActuatorError("revoked", codes=[ErrorCode.ERR_INFRA_UNAUTHORIZED])


def test_each_deletion_is_counted_timed_and_seen_in_the_cache_while_it_lasts(seed, start):
    names = ("goes", "fails", "waits", "foreign", "forced")
    script = Leaving(reconcile=lambda ctx, obj, cluster: None)

    def delete(ctx, obj, cluster):
        if obj.metadata.name in ("fails", "forced"):
            fail()
        if obj.metadata.name == "waits":
            raise RequeueAfter(0.2, "Waiting for the network")

    script.on["delete"] = delete
    manager = start(script, clock=Ahead())
    for name in names:
        foreign = [FOREIGN] if name == "foreign" else []
        seed.create(infrastructure(seed.namespace, seed.namespace, name, finalizers=foreign))
    eventually(lambda: all(seed.is_ready(name) for name in names))
    for name in names:
        seed.delete(name)

    def states():
        return samples(manager, "actuator_terminating_objects")

    expected = {"deleting": 1, "failing": 2, "foreign_finalizer": 1, "gave_up": 0, "skipped": 0}
    eventually(lambda: states() == expected)
    assert 3500 < max_age(manager) < 4000
    tries = samples(manager, "actuator_operations_total")
    assert tries.keys() == {"success", "pending", "error", "terminal"}

    def deletions():
        return manager.metrics.total("actuator_operations_total", "result", operation="delete")

    eventually(lambda: deletions()["pending"])  # "deleting" it was before its first try, too
    seed.update_cluster(cluster(seed.namespace, force="true"))
    eventually(lambda: not any(states()[state] for state in ("deleting", "failing")))
    seed.patch({"metadata": {"finalizers": None}}, "foreign")
    eventually(lambda: not any(states().values()))
    assert not samples(manager, "actuator_terminating_oldest_deletion_timestamp_seconds")

    def ended():
        return manager.metrics.total("actuator_deletions_total", "outcome")

    final = {"deleted": 2, "force_deleted": 0, "orphaned": 3}
    eventually(lambda: final.items() <= ended().items())  # once the answers are there
    outcomes = ended()

    def timed():
        return samples(manager, "actuator_deletion_duration_seconds_count")

    eventually(lambda: timed() == {outcome: float(count) for outcome, count in final.items()})
    forced = samples(manager, "actuator_force_deletion_duration_seconds_count")
    assert list(forced.values()) == [3.0]
    failed = deletions()
    assert failed["error"] + failed["terminal"] == outcomes["failed"] + outcomes["gave_up"]
    codes = manager.metrics.total("actuator_errors_total", "code", operation="delete")
    assert codes["ERR_INFRA_UNAUTHORIZED"] == failed["error"]


def max_age(manager):
    (since,) = samples(manager, "actuator_terminating_oldest_deletion_timestamp_seconds").values()
    return Ahead().now().timestamp() - since


def test_given_up_and_skipped_objects_have_states_of_their_own(seed, start):
    give_up = {None: 0}
    manager = start(Script(delete=fail), give_up_after=give_up)
    for name in ("given-up", "skipped"):
        seed.create(infrastructure(seed.namespace, seed.namespace, name))
    eventually(lambda: all(seed.is_ready(name) for name in ("given-up", "skipped")))
    seed.delete("given-up")

    def states():
        return samples(manager, "actuator_terminating_objects")

    eventually(lambda: states()["gave_up"] == 1)
    seed.annotate("skipped", **{"gardener.cloud/operation": "wait-for-state"})
    seed.delete("skipped")
    eventually(lambda: states()["skipped"] == 1)
    assert seed.get("skipped")["metadata"]["finalizers"] == [FINALIZER]
    assert manager.metrics.total("actuator_deletions_total", "outcome")["gave_up"] == 1
    seed.annotate("skipped", **{"gardener.cloud/operation": None})
    seed.update_cluster(cluster(seed.namespace, force="true"))
    eventually(lambda: seed.is_gone("given-up") and seed.is_gone("skipped"))
    eventually(lambda: not any(states().values()))


def test_a_deletion_that_failed_is_skipped_once_gardener_gives_up_its_shoot(seed, start):
    manager = start(Script(delete=fail), clock=Ahead())
    seed.create(infrastructure(seed.namespace, seed.namespace, "fails"))
    eventually(lambda: seed.is_ready("fails"))
    seed.delete("fails")

    def states():
        return samples(manager, "actuator_terminating_objects")

    def stuck():
        return samples(manager, "actuator_stuck_shoots")

    eventually(lambda: states()["failing"] == 1)
    eventually(lambda: stuck().get("ERR_INFRA_UNAUTHORIZED") == 1)
    seed.update_cluster(cluster(seed.namespace, failed=True))
    eventually(lambda: states()["skipped"] == 1)
    assert stuck() == {"none": 0}
    seed.update_cluster(cluster(seed.namespace, force="true"))
    eventually(lambda: seed.is_gone("fails"))
