"""GenericWorker through a Manager: from pools to machines and back, crashes included."""

import base64
import gzip
import json
import threading
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from actuator.codec import decode
from actuator.errors import (
    CallAbandoned,
    ConfigurationError,
    DeadlineExceeded,
    ErrorCode,
    LeaseLost,
    NotFound,
    TooManyRequests,
)
from actuator.interface import Resource
from actuator.meta import parse_time
from actuator.v1alpha1 import Cluster, Worker
from generic.kube.clock import WatchedClock
from generic.kube.crds import crd
from generic.library.machines import (
    MACHINE_CLASSES,
    MACHINE_DEPLOYMENTS,
    MACHINE_KINDS,
    MACHINE_SETS,
    MACHINES,
    MC_FINALIZER,
    MCM_FINALIZER,
)
from generic.library.worker import GenericWorker, in_zone, pool_hash
from generic.library.worker.availability import is_stuck
from generic.library.worker.objects import look
from generic.library.worker.poolhash import in_place_hash
from generic.testing.garden import not_ready_because
from generic.testing.machinecontroller import SELECTED, MachineController
from generic.testing.polling import polling
from generic.testing.seed import install_crds
from tests.support.cluster.harness import eventually
from tests.support.objects.builders import cluster as cluster_manifest
from tests.support.objects.present import present
from tests.support.objects.stand_ins import UNUSED, StandIn

SECRETS = Resource("v1", "secrets")
DEPLOYMENTS = Resource("apps/v1", "deployments")
PODS = Resource("v1", "pods")
MACHINE_CLASS = "gardener.cloud/purpose=machineclass"
ALL = (MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES, MACHINE_CLASSES)


class Crash(Exception):
    pass


class Machines(GenericWorker):
    """One group for each zone; raises Crash once at each point that `crashes` names."""

    def __init__(self):
        self.crashes = set()
        self.hooks = []
        self.credentials = None

    def _pass(self, point):
        self.hooks.append(point)
        if point in self.crashes:
            self.crashes.discard(point)
            raise Crash(point)

    def machine_deployments(self, ctx, worker, cluster):
        self._pass("machines")
        return [
            in_zone(
                worker,
                pool,
                cluster,
                index,
                hash=pool_hash(worker, pool, cluster),
                provider="test",
                provider_spec={"type": pool.machine_type, "zone": zone},
                secret_data={"userData": b"#!/bin/sh"},
                credentials=self.credentials,
            )
            for pool in worker.spec.pools
            for index, zone in enumerate(pool.zones)
        ]

    def error_codes(self, text):
        return [ErrorCode.ERR_INFRA_UNAUTHENTICATED] if "bad key" in text else []

    def pre_reconcile(self, ctx, worker, cluster):
        self._pass("pre_reconcile")

    def post_reconcile(self, ctx, worker, cluster):
        self._pass("post_reconcile")

    def pre_delete(self, ctx, worker, cluster):
        self._pass("pre_delete")

    def post_delete(self, ctx, worker, cluster):
        self._pass("post_delete")


def pool(name="pool", minimum=2, maximum=2, **more):
    return {
        "name": name,
        "machineType": "small",
        "machineImage": {"name": "linux", "version": "1.0"},
        "minimum": minimum,
        "maximum": maximum,
        "maxSurge": 1,
        "maxUnavailable": 0,
        "nodeAgentSecretName": "node-agent-1",
        "userDataSecretRef": {"name": "user-data", "key": "cloud_config"},
        "zones": ["a"],
    } | more


def manifest(namespace, *pools, **meta):
    spec = {"type": namespace, "region": "eu-1", "pools": list(pools)}
    spec["secretRef"] = {"name": "cloudprovider", "namespace": namespace}
    return {
        "apiVersion": Worker.KIND.api_version,
        "kind": "Worker",
        "metadata": {"name": "worker", "namespace": namespace, **meta},
        "spec": spec,
    }


@pytest.fixture(scope="session")
def machine_kinds(admin):
    install_crds(admin, [crd(cls) for cls in MACHINE_KINDS])


@pytest.fixture
def workers(machine_kinds, seed):
    return seed.of(Worker, "worker")


class ScaledController(MachineController):
    """Does nothing while it is not enabled; setting that waits for the current round."""

    def __init__(self, client, namespace):
        super().__init__(client, namespace)
        self._round = threading.Lock()
        self._works = True

    @property
    def enabled(self):
        return self._works

    @enabled.setter
    def enabled(self, enabled):
        with self._round:
            self._works = enabled

    def poll(self):
        with self._round:
            if self._works:
                super().poll()


@pytest.fixture
def controller(workers, admin, namespace):
    controller = ScaledController(admin, namespace)
    with polling(controller.poll, "machine-controller", every=0.5):
        yield controller


def names(client, resource, namespace):
    return sorted(obj["metadata"]["name"] for obj in client.list(resource, namespace))


def class_secrets(client, namespace):
    found = client.list(SECRETS, namespace, label_selector=MACHINE_CLASS)
    return sorted(secret["metadata"]["name"] for secret in found)


def created(workers, start, *pools, actuator=None):
    actuator = actuator or Machines()
    start(actuator)
    workers.create(manifest(workers.namespace, *pools))
    is_done(workers)
    return actuator


def is_done(workers):
    """Waits until it is; the failure contains its status."""

    def succeeded():
        found = workers.get()
        assert not_ready_because(found) is None, found.get("status")
        return True

    eventually(succeeded)


def ask(workers, *pools):
    workers.patch({"spec": {"pools": list(pools)}})
    workers.ask("reconcile")
    is_done(workers)


def say(client, namespace, status):
    """Write the status of the first pool's machines, as the machine-controller-manager does."""
    where = (MACHINE_DEPLOYMENTS, f"{namespace}-pool-z1", namespace)
    client.patch(*where, {"status": status}, subresource="status")


def said_by(workers):
    return (workers.status().get("lastOperation") or {}).get("description", "")


def reached(workers):
    return (workers.status().get("inPlaceUpdates") or {}).get("workerPoolToHashMap") or {}


def hash_in_place(pool):
    worker = decode(Worker, manifest("ns", pool))
    return in_place_hash(worker, worker.spec.pools[0], Cluster())


def force_deletion_labels(client, namespace):
    machines = client.list(MACHINES, namespace)
    return {machine["metadata"]["labels"].get("force-deletion") for machine in machines}


def is_empty(client, namespace):
    return not any(client.list(item, namespace) for item in ALL) and not class_secrets(
        client, namespace
    )


def test_pools_become_machines_and_the_worker_succeeds(workers, admin, start, controller):
    namespace = workers.namespace
    actuator = created(workers, start, pool(minimum=3, maximum=3, zones=["a", "b"]))
    deployments = [f"{namespace}-pool-z1", f"{namespace}-pool-z2"]
    assert names(admin, MACHINE_DEPLOYMENTS, namespace) == deployments
    assert len(admin.list(MACHINES, namespace)) == 3
    assert class_secrets(admin, namespace) == names(admin, MACHINE_CLASSES, namespace)
    purpose = "gardener.cloud/purpose=machineclass"
    assert len(admin.list(MACHINE_CLASSES, namespace, label_selector=purpose)) == 2
    status = workers.status()
    assert [d["name"] for d in status["machineDeployments"]] == deployments
    assert [d["minimum"] for d in status["machineDeployments"]] == [2, 1]
    assert status["machineDeploymentsLastUpdateTime"]
    assert status.get("state") is None
    assert actuator.hooks[-1] == "post_reconcile"


def test_the_status_names_deployments_before_there_are_machines(
    workers, start, controller, namespace
):
    controller.enabled = False
    start(Machines())
    workers.create(manifest(namespace, pool()))
    eventually(lambda: workers.status().get("machineDeployments"))
    waits = "machine-controller-manager has not observed the change yet"
    eventually(lambda: waits in said_by(workers))
    assert workers.last_operation() == ("Create", "Processing")
    controller.enabled = True
    eventually(workers.is_ready)


def test_a_pool_that_shrinks_and_one_that_goes_lose_their_machines(
    workers, admin, start, controller, namespace
):
    created(workers, start, pool(), pool("other", 1, 1))
    ask(workers, pool(minimum=1, maximum=1))
    assert names(admin, MACHINE_DEPLOYMENTS, namespace) == [f"{namespace}-pool-z1"]
    eventually(lambda: len(admin.list(MACHINES, namespace)) == 1)
    eventually(lambda: len(class_secrets(admin, namespace)) == 1)
    eventually(lambda: len(admin.list(MACHINE_CLASSES, namespace)) == 1)


def test_a_new_hash_replaces_the_machines(workers, admin, start, controller, namespace):
    created(workers, start, pool())
    before = names(admin, MACHINES, namespace)
    ask(workers, pool(nodeAgentSecretName="node-agent-2"))
    eventually(lambda: len(admin.list(MACHINE_SETS, namespace)) == 1)
    after = names(admin, MACHINES, namespace)
    assert len(after) == 2
    assert not set(before) & set(after)


def test_the_replicas_of_the_autoscaler_stay_within_the_pools_bounds(
    workers, admin, start, controller, namespace
):
    created(workers, start, pool(minimum=1, maximum=5))
    name = f"{namespace}-pool-z1"

    def replicas():
        return admin.get(MACHINE_DEPLOYMENTS, name, namespace)["spec"]["replicas"]

    assert replicas() == 1
    admin.patch(MACHINE_DEPLOYMENTS, name, namespace, {"spec": {"replicas": 4}})
    ask(workers, pool(minimum=1, maximum=5))
    assert replicas() == 4
    ask(workers, pool(minimum=1, maximum=3))
    assert replicas() == 3


def hibernated(namespace):
    asleep = cluster_manifest(namespace)
    asleep["spec"]["shoot"]["spec"]["hibernation"] = {"enabled": True}
    return asleep


def test_a_hibernated_shoot_has_no_machines_and_wakes_up_at_the_minimum(
    workers, admin, start, controller, namespace
):
    created(workers, start, pool(minimum=2, maximum=5))
    awake = cluster_manifest(namespace)
    controller.enabled = False
    workers.update_cluster(hibernated(namespace))
    workers.ask("reconcile")
    eventually(lambda: force_deletion_labels(admin, namespace) == {"True"})
    controller.enabled = True
    is_done(workers)
    assert admin.list(MACHINES, namespace) == []
    workers.update_cluster(awake)
    ask(workers, pool(minimum=2, maximum=5))
    assert len(admin.list(MACHINES, namespace)) == 2


def test_a_pool_that_goes_while_the_shoot_hibernates_is_deleted_before_its_controller_sleeps(
    workers, admin, start, controller, namespace
):
    where = ("machine-controller-manager", namespace)
    labels = {"app": "mcm"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    meta = {"name": where[0], "namespace": namespace}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}
    admin.create(DEPLOYMENTS, deployment)
    created(workers, start, pool(), pool("other", 1, 1))
    workers.update_cluster(hibernated(namespace))
    held = {"metadata": {"finalizers": [MCM_FINALIZER, "tests.example.com/held"]}}
    admin.patch(MACHINE_DEPLOYMENTS, f"{namespace}-other-z1", namespace, held)
    workers.patch({"spec": {"pools": [pool()]}})
    workers.ask("reconcile")
    waits = f"Waiting for the deletion of MachineDeployment {namespace}-other-z1"
    eventually(lambda: waits in said_by(workers))
    assert admin.get(DEPLOYMENTS, *where)["spec"]["replicas"] == 1
    release = {"metadata": {"finalizers": None}}
    admin.patch(MACHINE_DEPLOYMENTS, f"{namespace}-other-z1", namespace, release)
    is_done(workers)
    assert admin.get(DEPLOYMENTS, *where)["spec"]["replicas"] == 0
    assert names(admin, MACHINE_DEPLOYMENTS, namespace) == [f"{namespace}-pool-z1"]


def test_annotations_of_others_are_kept_and_options_of_the_autoscaler_follow_the_pool(
    workers, admin, start, controller, namespace
):
    options = {"scaleDownUnneededTime": "30m0s", "maxNodeProvisionTime": "15m0s"}
    created(workers, start, pool(clusterAutoscaler=options))
    where = (MACHINE_DEPLOYMENTS, f"{namespace}-pool-z1", namespace)
    prefix = "autoscaler.gardener.cloud/"
    given = {f"{prefix}max-node-provision-time": "15m0s"}
    assert admin.get(*where)["metadata"]["annotations"] == given | {
        f"{prefix}scale-down-unneeded-time": "30m0s"
    }
    template = {"template": {"metadata": {"annotations": {"restarted": "now"}}}}
    admin.patch(*where, {"metadata": {"annotations": {"other": "yes"}}, "spec": template})
    ask(workers, pool(clusterAutoscaler={"maxNodeProvisionTime": "15m0s"}, maximum=3))
    found = admin.get(*where)
    assert found["metadata"]["annotations"] == given | {"other": "yes"}
    assert found["spec"]["template"]["metadata"]["annotations"] == {"restarted": "now"}
    assert found["spec"]["template"]["metadata"]["labels"]["name"] == f"{namespace}-pool-z1"


def test_machine_objects_carry_the_technical_id_where_the_namespace_differs(
    workers, admin, start, controller, namespace
):
    cluster = cluster_manifest(namespace)
    cluster["spec"]["shoot"]["status"]["technicalID"] = "shoot--self--hosted"
    start(Machines())
    workers.update_cluster(cluster)
    workers.create(manifest(namespace, pool()))
    is_done(workers)
    assert names(admin, MACHINE_DEPLOYMENTS, namespace) == ["shoot--self--hosted-pool-z1"]
    [one] = names(admin, MACHINE_CLASSES, namespace)
    assert one == f"shoot--self--hosted-pool-z1-{hash_in(workers, namespace)}"


def test_without_an_autoscaler_there_are_as_many_as_the_pool_says(
    workers, admin, start, controller, namespace
):
    created(workers, start, pool(minimum=2, maximum=2))
    where = (MACHINE_DEPLOYMENTS, f"{namespace}-pool-z1", namespace)
    admin.patch(*where, {"spec": {"replicas": 4}})
    ask(workers, pool(minimum=2, maximum=2))
    assert admin.get(*where)["spec"]["replicas"] == 2


def test_a_failed_machine_is_the_workers_error(workers, admin, start, controller, namespace):
    created(workers, start, pool())
    controller.enabled = False
    operation = {"description": "no capacity", "state": "Failed"}
    failed = {"name": "machine-x", "lastOperation": operation}
    say(admin, namespace, {"failedMachines": [failed]})
    workers.ask("reconcile")
    error = eventually(lambda: workers.status().get("lastError"))
    assert "machine-x: no capacity" in error["description"]


def fail(admin, namespace, description):
    operation = {"description": description, "state": "Failed"}
    failed = {"name": "machine-x", "lastOperation": operation}
    say(admin, namespace, {"failedMachines": [failed]})


def codes(workers):
    return (workers.status().get("lastError") or {}).get("codes")


def test_the_codes_of_failed_machines_are_in_the_error_of_a_reconciliation(
    workers, admin, start, controller, namespace
):
    created(workers, start, pool())
    controller.enabled = False
    fail(admin, namespace, "the cloud says: bad key")
    workers.ask("reconcile")
    eventually(lambda: codes(workers) == ["ERR_INFRA_UNAUTHENTICATED"])
    fail(admin, namespace, "no capacity")
    workers.ask("reconcile")
    eventually(lambda: "no capacity" in workers.status()["lastError"]["description"])
    assert not codes(workers)


def test_the_codes_of_failed_machines_are_in_the_error_of_a_deletion(
    workers, admin, start, controller, namespace
):
    """Gardener then lets the user force-delete the shoot."""
    created(workers, start, pool())
    controller.enabled = False
    fail(admin, namespace, "the cloud says: bad key")
    workers.delete()
    eventually(lambda: codes(workers) == ["ERR_INFRA_UNAUTHENTICATED"])
    assert ErrorCode.ERR_INFRA_UNAUTHENTICATED.allows_force_deletion
    workers.update_cluster(cluster_manifest(namespace, force="true"))
    eventually(workers.is_gone)


def test_an_error_of_the_author_gets_the_codes_of_its_text(
    workers, admin, start, controller, namespace
):
    class Refused(Machines):
        def machine_deployments(self, ctx, worker, cluster):
            raise ValueError("bad key")

    start(Refused())
    workers.create(manifest(namespace, pool()))
    eventually(lambda: codes(workers) == ["ERR_INFRA_UNAUTHENTICATED"])
    assert "bad key" in workers.status()["lastError"]["description"]


def test_an_error_of_the_seeds_api_is_left_as_it_is():
    class Throttled(Machines):
        def pre_reconcile(self, ctx, worker, cluster):
            raise TooManyRequests(429, "bad key", retry_after=7.0)

    with pytest.raises(TooManyRequests) as caught:
        Throttled().reconcile(UNUSED, UNUSED, UNUSED)
    assert caught.value.retry_after == 7.0


@pytest.mark.parametrize("reason", [CallAbandoned, LeaseLost, DeadlineExceeded])
def test_a_call_that_has_to_stop_raises_its_reason_unchanged(reason):
    class Stopped(Machines):
        def pre_reconcile(self, ctx, worker, cluster):
            raise reason("bad key")

    with pytest.raises(reason, match="bad key"):
        Stopped().reconcile(UNUSED, UNUSED, UNUSED)


def test_a_preserved_failed_machine_is_no_error(workers, admin, start, controller, namespace):
    created(workers, start, pool())
    controller.enabled = False
    name = admin.list(MACHINES, namespace)[0]["metadata"]["name"]
    kept = {"phase": "Failed", "preserveExpiryTime": "2126-01-01T00:00:00Z"}
    admin.patch(
        MACHINES, name, namespace, {"status": {"currentStatus": kept}}, subresource="status"
    )
    failed = [{"name": name, "lastOperation": {"description": "kept"}}]
    status = {"failedMachines": failed, "availableReplicas": 1, "unavailableReplicas": 1}
    status["conditions"] = [{"type": "Available", "status": "False"}]
    say(admin, namespace, status)
    workers.ask("reconcile")
    is_done(workers)


def test_a_rolling_update_is_waited_for(workers, admin, start, controller, namespace):
    created(workers, start, pool())
    controller.enabled = False
    say(admin, namespace, {"replicas": 3, "updatedReplicas": 2})
    workers.ask("reconcile")
    eventually(lambda: "pool-z1: 1 old machines to replace" in said_by(workers))
    workers.patch({"spec": {"pools": [pool(nodeAgentSecretName="node-agent-2")]}})
    workers.ask("reconcile")
    eventually(lambda: "has not observed the change yet" in said_by(workers))
    controller.enabled = True
    is_done(workers)


def test_a_pool_that_updates_itself_in_place_reports_its_hash(
    workers, admin, start, controller, namespace
):
    plain = pool("plain")
    here = {"kubernetesVersion": "1.31.0"}
    in_place = pool("here", updateStrategy="AutoInPlaceUpdate", **here)
    created(workers, start, plain, in_place)
    assert reached(workers) == {"here": hash_in_place(in_place)}
    strategy = admin.get(MACHINE_DEPLOYMENTS, f"{namespace}-here-z1", namespace)["spec"]["strategy"]
    assert (strategy["type"], strategy["inPlaceUpdate"]["orchestrationType"]) == (
        "InPlaceUpdate",
        "Auto",
    )
    newer = in_place | {"kubernetesVersion": "1.32.0"}
    ask(workers, plain, newer)
    assert reached(workers) == {"here": hash_in_place(newer)} != {"here": hash_in_place(in_place)}
    ask(workers, plain)
    assert reached(workers) == {}


def test_a_pool_that_updates_itself_keeps_its_hash_and_its_machines_until_all_are_updated(
    workers, admin, start, controller, namespace
):
    before = pool(updateStrategy="AutoInPlaceUpdate", kubernetesVersion="1.31.0")
    created(workers, start, before)
    machines = names(admin, MACHINES, namespace)
    controller.enabled = False
    newer = before | {"kubernetesVersion": "1.32.0"}
    workers.patch({"spec": {"pools": [newer]}})
    workers.ask("reconcile")
    eventually(lambda: "has not observed the change yet" in said_by(workers))
    assert reached(workers) == {"pool": hash_in_place(before)}
    controller.enabled = True
    is_done(workers)
    assert reached(workers) == {"pool": hash_in_place(newer)}
    assert names(admin, MACHINES, namespace) == machines
    worker = decode(Worker, manifest(namespace, newer))
    hash = pool_hash(worker, worker.spec.pools[0], Cluster())
    [one] = eventually(lambda: single(admin.list(MACHINE_SETS, namespace)))
    assert one["spec"]["template"]["spec"]["class"]["name"] == f"{namespace}-pool-z1-{hash}"


def single(found):
    return found if len(found) == 1 else None


def updating(admin, namespace):
    """The machines that are being updated in place, and why."""
    return {
        machine["metadata"]["name"]: condition["reason"]
        for machine in admin.list(MACHINES, namespace)
        for condition in (machine.get("status") or {}).get("conditions") or ()
    }


def test_machines_that_the_user_selects_are_waited_for_and_the_last_one_brings_the_hash(
    workers, admin, start, controller, namespace
):
    """The watch on Machines alone shows each step: no user requests a reconciliation."""
    before = pool(updateStrategy="ManualInPlaceUpdate", kubernetesVersion="1.31.0")
    created(workers, start, before)
    newer = before | {"kubernetesVersion": "1.32.0"}
    ask(workers, newer)
    assert reached(workers) == {"pool": hash_in_place(before)}, "no machine was selected"
    candidates = dict.fromkeys(names(admin, MACHINES, namespace), "CandidateForUpdate")
    eventually(lambda: updating(admin, namespace) == candidates)
    first, last = candidates
    controller.enabled = False
    chosen = {"type": "InPlaceUpdate", "status": "True", "reason": "SelectedForUpdate"}
    status = {"status": {"conditions": [chosen]}}
    admin.patch(MACHINES, first, namespace, status, subresource="status")
    waits = f"pool-z1: 1 selected for an in-place update: {first} (SelectedForUpdate)"
    eventually(lambda: waits in said_by(workers))
    controller.enabled = True
    is_done(workers)
    assert reached(workers) == {"pool": hash_in_place(before)}, "one machine is old"
    admin.patch(MACHINES, last, namespace, {"metadata": {"labels": {SELECTED: "true"}}})
    eventually(lambda: reached(workers) == {"pool": hash_in_place(newer)})
    is_done(workers)
    assert names(admin, MACHINES, namespace) == [first, last]


@pytest.mark.parametrize(
    ("type", "status"), [("Available", "False"), ("Progressing", "False"), ("Frozen", "True")]
)
def test_an_unhealthy_deployment_is_waited_for(
    workers, admin, start, controller, namespace, type, status
):
    created(workers, start, pool())
    controller.enabled = False
    say(admin, namespace, {"conditions": [{"type": type, "status": status, "message": "why"}]})
    workers.ask("reconcile")
    eventually(lambda: f"pool-z1: {type} is {status} (why)" in said_by(workers))
    say(admin, namespace, {"conditions": [{"type": "Available", "status": "True"}]})
    is_done(workers)


class Later(StandIn):
    """So many seconds after the youngest deployment or class was made, however long that is ago."""

    def __init__(self, seconds, found):
        made = [obj.metadata.creation_timestamp for obj in (*found.deployments, *found.classes)]
        self.time = max(map(parse_time, made)) + timedelta(seconds=seconds)

    @property
    def clock(self):
        return self

    def now(self):
        return self.time

    def monotonic(self):
        return 0.0


def test_a_controller_is_stuck_that_knows_of_a_deployment_and_made_no_set(
    workers, admin, start, controller, namespace
):
    created(workers, start, pool())
    controller.enabled = False
    worker = decode(Worker, workers.get())
    shoot = decode(Cluster, cluster_manifest(namespace))
    [group] = Machines().machine_deployments(None, worker, shoot)
    found = look(admin, namespace)
    early = Later(119, found)
    late = Later(121, found)
    without = attrs.evolve(found, sets=[])
    assert is_stuck(late, group, without)
    assert not is_stuck(early, group, without), "it is too early to say"
    unsteady = SimpleNamespace(clock=WatchedClock(late))
    assert not is_stuck(unsteady, group, without), "the clock may be wrong"
    assert not is_stuck(late, group, found), "there is the set"
    other = attrs.evolve(group, class_name="another")
    assert not is_stuck(late, other, found), "there is no such class"
    release = {"metadata": {"finalizers": None}}
    admin.patch(MACHINE_DEPLOYMENTS, group.name, namespace, release)
    unknown = attrs.evolve(look(admin, namespace), sets=[])
    assert not is_stuck(late, group, unknown), "it has not seen the deployment"


@pytest.mark.usefixtures("short_window")
def test_a_stuck_controller_is_restarted(workers, admin, start, controller, namespace, monkeypatch):
    monkeypatch.setattr("generic.library.worker.availability._STUCK", timedelta(seconds=-1))
    controller.enabled = False
    for name, role in (("stuck", "machine-controller-manager"), ("other", "other")):
        meta = {"name": name, "namespace": namespace, "labels": {"role": role}}
        spec = {"containers": [{"name": "a", "image": "a"}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        admin.create(PODS, pod)
    start(Machines())
    workers.create(manifest(namespace, pool()))
    eventually(lambda: admin.list(MACHINE_DEPLOYMENTS, namespace))
    held = {"metadata": {"finalizers": [MCM_FINALIZER]}}
    admin.patch(MACHINE_DEPLOYMENTS, f"{namespace}-pool-z1", namespace, held)
    eventually(lambda: names(admin, PODS, namespace) == ["other"])
    [event, *_] = eventually(lambda: workers.events("MachineControllerManagerStuck"))
    assert "created no machine set" in event["message"]
    controller.enabled = True
    is_done(workers)


def test_deletion_takes_every_machine_object_and_nothing_else(
    workers, admin, start, controller, namespace
):
    actuator = created(workers, start, pool())
    foreign = {"name": "foreign", "namespace": namespace}
    admin.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": foreign})
    workers.delete()
    eventually(workers.is_gone)
    assert is_empty(admin, namespace)
    assert admin.get(SECRETS, "foreign", namespace)
    assert actuator.hooks[-1] == "post_delete"


def test_machines_go_without_being_drained(workers, admin, start, controller, namespace):
    created(workers, start, pool())
    controller.enabled = False
    workers.delete()
    eventually(lambda: force_deletion_labels(admin, namespace) == {"True"})
    waits = "Waiting for the deletion of machines.machine.sapcloud.io "
    eventually(lambda: waits in said_by(workers))
    assert workers.last_operation() == ("Delete", "Processing")
    controller.enabled = True
    eventually(workers.is_gone)


def test_force_deletion_leaves_machine_objects_to_gardenlet(
    workers, admin, start, controller, namespace
):
    created(workers, start, pool())
    controller.enabled = False
    workers.update_cluster(cluster_manifest(namespace, force="true"))
    workers.delete()
    eventually(workers.is_gone)
    machines = admin.list(MACHINES, namespace)
    assert len(machines) == 2
    assert all("deletionTimestamp" not in machine["metadata"] for machine in machines)


@pytest.mark.parametrize("point", ["machines", "post_reconcile"])
def test_a_reconciliation_that_crashes_is_finished_by_the_next(
    workers, admin, start, controller, namespace, point
):
    actuator = Machines()
    actuator.crashes.add(point)
    created(workers, start, pool(), actuator=actuator)
    assert not actuator.crashes
    assert len(admin.list(MACHINES, namespace)) == 2


@pytest.mark.parametrize("point", ["pre_delete", "machines", "post_delete"])
def test_a_deletion_that_crashes_is_finished_by_the_next(
    workers, admin, start, controller, namespace, point
):
    actuator = created(workers, start, pool())
    actuator.crashes.add(point)
    workers.delete()
    eventually(workers.is_gone)
    assert not actuator.crashes
    assert is_empty(admin, namespace)


def state_of(namespace):
    """The state that gardenlet collects of one deployment, in the form in which Go writes it."""
    name = f"{namespace}-pool-z1"
    labels = {"name": name}
    like = {"class": {"kind": "MachineClass", "name": f"{name}-from-afar"}}
    meta = {"labels": labels, "creationTimestamp": None, "namespace": "elsewhere"}
    spec = {"replicas": 2, "template": {"metadata": {"labels": labels}, "spec": like}}
    machine_set = {"metadata": {"name": "set-1", **meta}, "status": {}, "spec": spec}
    machines = [
        {
            "metadata": {"name": f"machine-{number}", **meta},
            "spec": {**like, "providerID": f"test:///{number}"},
            "status": {},
        }
        for number in range(2)
    ]
    return {
        "machineDeployments": {
            name: {"replicas": 2, "machineSets": [machine_set], "machines": machines}
        }
    }


@pytest.mark.parametrize("packed", [False, True])
def test_a_restored_worker_keeps_its_machines(workers, admin, start, controller, namespace, packed):
    controller.enabled = False
    group = f"{namespace}-pool-z1"
    state = state_of(namespace)
    states = state["machineDeployments"][group]
    machine_class = f"{group}-{hash_in(workers, namespace)}"
    states["machineSets"][0]["spec"]["template"]["spec"]["class"]["name"] = machine_class
    for machine in states["machines"]:
        machine["spec"]["class"]["name"] = machine_class
    if packed:
        text = gzip.compress(json.dumps(state).encode())
        state = {"state": base64.b64encode(text).decode()}
    restore(workers, start, state, pool(minimum=1, maximum=5), pool("new", 1, 1))
    state = workers.status()["state"]  # as it arrived: a merge patch has no null
    eventually(lambda: len(admin.list(MACHINE_DEPLOYMENTS, namespace)) == 2)
    restored = admin.get(MACHINE_DEPLOYMENTS, group, namespace)
    assert restored["spec"]["replicas"] == 2
    assert names(admin, MACHINES, namespace) == ["machine-0", "machine-1"]
    controller.enabled = True
    eventually(workers.is_ready)
    found = {
        m["metadata"]["name"]: m["spec"].get("providerID") for m in admin.list(MACHINES, namespace)
    }
    assert found["machine-0"] == "test:///0"
    assert len(found) == 3
    assert workers.status()["state"] == state


def test_a_hibernated_shoot_is_restored_without_state_and_makes_no_machine(
    workers, admin, start, controller, namespace
):
    workers.update_cluster(hibernated(namespace))
    restore(workers, start, None, pool(minimum=1, maximum=5))
    is_done(workers)
    [deployment] = admin.list(MACHINE_DEPLOYMENTS, namespace)
    assert not deployment["spec"]["replicas"]
    assert admin.list(MACHINES, namespace) == []


def restore(workers, start, state, *pools):
    waiting = {"gardener.cloud/operation": "wait-for-state"}
    workers.create(manifest(workers.namespace, *pools, annotations=waiting))
    if state:
        workers.patch({"status": {"state": state}}, subresource="status")
    start(Machines())
    workers.ask("restore")


def test_sets_and_machines_that_are_there_already_stay_as_they_are(
    workers, admin, start, controller, namespace
):
    state = state_of(namespace)
    [states] = state["machineDeployments"].values()
    [theirs, *_] = states["machines"]
    meta = {"name": "machine-0", "namespace": namespace, "labels": theirs["metadata"]["labels"]}
    machine = {"apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine", "metadata": meta}
    here = {**theirs["spec"], "providerID": "test:///here"}
    controller.enabled = False
    admin.create(MACHINES, {**machine, "spec": here})
    restore(workers, start, state, pool(minimum=1, maximum=5))
    eventually(lambda: names(admin, MACHINES, namespace) == ["machine-0", "machine-1"])
    assert admin.get(MACHINES, "machine-0", namespace)["spec"] == here
    controller.enabled = True
    is_done(workers)


def test_a_restoration_without_state_fails_and_makes_no_machine(
    workers, admin, start, controller, namespace
):
    """Difference: there is no fallback to the ShootState, which Go's library is about to drop:
    gardenlet writes the state into the Worker, and an extension needs no garden for it."""
    restore(workers, start, None, pool(minimum=1, maximum=5))
    error = eventually(lambda: workers.status().get("lastError"))
    assert error["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
    assert f"Worker {namespace}/worker: status.state: expected the state" in error["description"]
    assert "to replace all of them, set status.state to {}" in error["description"]
    assert admin.list(MACHINE_DEPLOYMENTS, namespace) == []


def hash_in(workers, namespace):
    worker = decode(Worker, manifest(namespace, pool()))
    return pool_hash(worker, worker.spec.pools[0], Cluster())


def test_a_state_of_gardenlet_without_machines_makes_no_machine(
    workers, admin, start, controller, namespace
):
    """gardenlet compresses a null if the former seed has no machine kinds."""
    packed = base64.b64encode(gzip.compress(b"null")).decode()
    restore(workers, start, {"state": packed}, pool(minimum=1, maximum=5))
    error = eventually(lambda: workers.status().get("lastError"))
    assert f"Worker {namespace}/worker: status.state: expected the state" in error["description"]
    assert admin.list(MACHINE_DEPLOYMENTS, namespace) == []


def test_a_state_that_is_none_is_named(workers, start, controller, namespace):
    restore(workers, start, {"state": "bm9uc2Vuc2U="}, pool())
    error = eventually(lambda: workers.status().get("lastError"))
    assert f"{namespace}/worker: status.state: cannot read the machine" in error["description"]
    assert error["codes"] == ["ERR_CONFIGURATION_PROBLEM"]


WRONG = {
    "spec.pools[0].nodeAgentSecretName: expected the name": [pool(nodeAgentSecretName=None)],
    "spec.pools: names of machine groups are not unique": [pool(), pool()],
    "spec.pools[1].maxSurge: expected a number or a percentage": [pool("a"), pool(maxSurge="x")],
}


@pytest.mark.parametrize("words", WRONG)
def test_a_wrong_pool_is_the_workers_error_with_code_path_and_remedy(
    workers, start, controller, namespace, words
):
    start(Machines())
    workers.create(manifest(namespace, *WRONG[words]))
    error = eventually(lambda: workers.status().get("lastError"))
    assert f"Worker {namespace}/worker: {words}" in error["description"]
    assert "; " in error["description"]
    assert error["codes"] == ["ERR_CONFIGURATION_PROBLEM"]


def test_a_cluster_without_a_technical_id_is_the_workers_error(
    workers, start, controller, namespace
):
    cluster = cluster_manifest(namespace)
    del cluster["spec"]["shoot"]["status"]["technicalID"]
    start(Machines())
    workers.update_cluster(cluster)
    workers.create(manifest(namespace, pool()))
    error = eventually(lambda: workers.status().get("lastError"))
    path = f"Cluster {namespace}: spec.shoot.status.technicalID: expected the shoot's technical ID"
    assert path in error["description"]
    assert error["codes"] == ["ERR_CONFIGURATION_PROBLEM"]


def test_missing_credentials_are_the_workers_error_also_in_its_deletion(
    workers, admin, start, controller, namespace
):
    meta = {"name": "cloudprovider", "namespace": namespace}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta}
    admin.create(SECRETS, secret)
    actuator = Machines()
    actuator.credentials = decode(Worker, manifest(namespace)).spec.secret_ref
    created(workers, start, pool(), actuator=actuator)
    controller.enabled = False
    admin.patch(SECRETS, "cloudprovider", namespace, {"metadata": {"finalizers": None}})
    admin.delete(SECRETS, "cloudprovider", namespace)
    missing = f"spec.secretRef: Secret {namespace}/cloudprovider not found; restore it"

    def is_said():
        error = workers.status()["lastError"]
        assert missing in error["description"]
        return error["codes"] == ["ERR_CONFIGURATION_PROBLEM"]

    workers.ask("reconcile")
    eventually(is_said)
    workers.delete()
    eventually(lambda: workers.status()["lastOperation"]["type"] == "Delete" and is_said())
    assert len(admin.list(MACHINES, namespace)) == 2
    admin.create(SECRETS, secret)
    controller.enabled = True
    eventually(workers.is_gone)


def test_a_secret_of_another_owner_is_not_taken_over(workers, admin, start, controller, namespace):
    name = f"{namespace}-pool-z1-{hash_in(workers, namespace)}"
    meta = {"name": name, "namespace": namespace}
    admin.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta})
    start(Machines())
    workers.create(manifest(namespace, pool()))
    error = eventually(lambda: workers.status().get("lastError"))
    path = f"Secret {namespace}/{name}: metadata.labels: expected gardener.cloud/purpose="
    assert path in error["description"]
    assert error["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
    assert not admin.get(SECRETS, name, namespace).get("data")


def test_the_controller_adds_the_finalizers_of_the_real_one(
    workers, admin, start, controller, namespace
):
    created(workers, start, pool())
    held = {MACHINES: MC_FINALIZER, MACHINE_SETS: MCM_FINALIZER, MACHINE_DEPLOYMENTS: MCM_FINALIZER}
    for resource, finalizer in held.items():
        found = admin.list(resource, namespace)
        assert found
        assert all(finalizer in obj["metadata"]["finalizers"] for obj in found)
    with pytest.raises(NotFound):
        admin.get(MACHINES, "none", namespace)


def example():
    text = (Path(__file__).parents[3] / "docs/extensions.md").read_text()
    names: dict[str, Any] = {}
    exec(text.partition("## Workers")[2].split("```")[1].removeprefix("python"), names)
    return names["Machines"]()


def write_user_data(admin, namespace, data):
    meta = {"name": "user-data", "namespace": namespace}
    admin.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data})


def cluster_with_image(namespace):
    raw = cluster_manifest(namespace)
    entry = {"version": "1.0", "regions": [{"name": "eu-1", "id": "image-1"}]}
    images = [{"name": "linux", "versions": [entry]}]
    raw["spec"]["cloudProfile"] = {"spec": {"providerConfig": {"machineImages": images}}}
    return decode(Cluster, raw)


def test_the_example_in_the_documentation_makes_machine_classes(admin, namespace):
    data = {"cloud_config": base64.b64encode(b"#!/bin/sh").decode()}
    meta = {"name": "user-data", "namespace": namespace}
    admin.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data})
    ctx = SimpleNamespace(client=admin)
    obj = decode(Worker, manifest(namespace, pool(zones=["a", "b"])))
    groups = example().machine_deployments(ctx, obj, cluster_with_image(namespace))
    specs = [(group.provider_spec["zone"], group.provider_spec["image"]) for group in groups]
    assert specs == [("a", "image-1"), ("b", "image-1")]
    assert [group.secret_data for group in groups] == [{"userData": b"#!/bin/sh"}] * 2
    (kept,) = present(obj.status.provider_status)["machineImages"]
    assert kept == {"name": "linux", "version": "1.0", "id": "image-1"}


@pytest.mark.parametrize("data", [None, {}, {"cloud_config": ""}, {"other": "IyE="}])
def test_missing_user_data_is_the_workers_error(admin, namespace, data):
    if data is not None:
        meta = {"name": "user-data", "namespace": namespace}
        admin.create(
            SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}
        )
    ctx = SimpleNamespace(client=admin)
    obj = decode(Worker, manifest(namespace, pool()))
    words = rf"Worker {namespace}/worker: spec.pools\[0\].userDataSecretRef: there is no Secret "
    words += f"{namespace}/user-data with the data key cloud_config; gardenlet creates it, so"
    with pytest.raises(ConfigurationError, match=words):
        example().machine_deployments(ctx, obj, cluster_with_image(namespace))


def test_a_machine_without_a_class_does_not_stop_the_simulated_controller(
    workers, admin, namespace
):
    meta = {"name": "bare", "namespace": namespace}
    admin.create(
        MACHINES, {"apiVersion": MACHINES.api_version, "kind": "Machine", "metadata": meta}
    )
    MachineController(admin, namespace).poll()
    assert names(admin, MACHINES, namespace) == ["bare"]
