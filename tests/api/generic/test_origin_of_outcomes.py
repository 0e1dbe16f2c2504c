"""The origin of a forced deletion: in its Orphan, its events, its log lines and its listeners."""

import json
import logging

from actuator import ActuatorError, ExternalResource
from generic.reconciler.origin import ORIGIN
from generic.reconciler.orphans import ORPHANS, SHOOT_LABEL
from tests.support.cluster.harness import Script, eventually
from tests.support.objects.builders import cluster, infrastructure

CONFIRMED = "deletion.gardener.cloud/confirmed-by"


class Leaving(Script):
    """Its cloud fails, and one resource remains."""

    def external_resources(self, obj):
        return [ExternalResource(type="VPC", id="vpc-1")]


def fails(ctx, obj, cluster):
    raise ActuatorError("the cloud says no")


def forced(namespace):
    """A Cluster whose shoot is forced, as Gardener writes it."""
    made = cluster(namespace, force="true")
    shoot = made["spec"]["shoot"]
    shoot["metadata"] |= {"name": "web", "namespace": "garden-dev", "uid": "shoot-uid"}
    shoot["metadata"]["annotations"][CONFIRMED] = "alice\x1b[2J"
    shoot["spec"] = {"credentialsBindingName": "aws"}
    made["spec"]["seed"] = {"metadata": {"name": "aws-eu1"}}
    return made


def known(origin):
    return {name: origin[name] for name in ("seed", "project", "shoot", "shootUid", "confirmedBy")}


WANTED = {
    "seed": "aws-eu1",
    "project": "dev",
    "shoot": "web",
    "shootUid": "shoot-uid",
    "confirmedBy": "alice\x1b[2J",
}


def test_orphan_events_log_and_listeners_say_where_and_who(seed, start, caplog):
    with caplog.at_level(logging.INFO):
        start(Leaving(delete=fails))
        seed.create(infrastructure(seed.namespace, seed.namespace))
        eventually(seed.is_ready)
        seed.delete()
        eventually(lambda: seed.last_operation() == ("Delete", "Error"))
        seed.update_cluster(forced(seed.namespace))
        eventually(seed.is_gone)
        eventually(lambda: "finalizer released" in [r.message for r in caplog.records])
    selector = f"{SHOOT_LABEL}={seed.namespace}"
    (orphan,) = seed.client.list(ORPHANS, label_selector=selector)
    assert known(orphan["spec"]["object"]["origin"]) == WANTED
    (event,) = seed.events("OrphansRecorded")
    assert known(json.loads(event["metadata"]["annotations"][ORIGIN])) == WANTED
    lines = [r for r in caplog.records if r.message == "finalizer released"]
    assert lines[-1].fields.items() >= {"shoot": "web", "seed": "aws-eu1"}.items()
    seed.client.delete(ORPHANS, orphan["metadata"]["name"])


def test_the_origin_is_known_when_the_cluster_is_deleted_before_the_object(seed, start):
    released: list[bool] = []
    script = Leaving()

    def fails_once_forced(ctx, obj, cluster):
        if not released:
            raise ActuatorError("not yet")

    script.on["force_delete"] = fails_once_forced
    start(script)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    seed.update_cluster(forced(seed.namespace))
    seed.delete()
    eventually(lambda: "force_delete" in script.operations())
    seed.delete_cluster()
    released.append(True)
    eventually(seed.is_gone)
    (orphan,) = seed.client.list(ORPHANS, label_selector=f"{SHOOT_LABEL}={seed.namespace}")
    assert known(orphan["spec"]["object"]["origin"]) == WANTED
    seed.client.delete(ORPHANS, orphan["metadata"]["name"])
