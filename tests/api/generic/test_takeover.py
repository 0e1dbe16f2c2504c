"""Take-over from an extension on Gardener's Go library: its objects are adopted and kept."""

import base64
import threading
from datetime import UTC, datetime

import pytest

from actuator import Resource
from actuator.errors import ActuatorError, NotFound
from actuator.interface import Provisioned
from actuator.meta import Raw
from actuator.v1alpha1 import BackupBucket, ControlPlane, OperatingSystemConfig, Worker
from generic.kube.clock import SystemClock
from generic.kube.crds import crd
from generic.library import managedresources
from generic.library.controlplane import GenericControlPlane
from generic.library.controlplane.parts import EVERY_PART
from generic.library.machines import MACHINE_CLASSES, MACHINE_DEPLOYMENTS, MACHINE_KINDS, MACHINES
from generic.library.managedresources import ManagedResource
from generic.library.managedresources.kind import MANAGED_RESOURCES
from generic.library.managedresources.ours import GO_LIBRARY
from generic.library.worker import GenericWorker, in_zone
from generic.manager.heartbeat import LEASE_NAME, Heartbeat
from generic.manager.leaderelection import LEASES, LeaderElector, Timing
from generic.serving.metrics import Metrics
from generic.testing.machinecontroller import MachineController
from generic.testing.polling import polling
from generic.testing.resourcemanager import ResourceManager
from generic.testing.seed import OneShoot, install, install_crds
from generic.testing.shoots import ShootManager, Shoots
from tests.support.cluster.harness import Script, eventually
from tests.support.cluster.shoot_extension import Extended
from tests.support.objects.go_state import PARTS, deploy_part, ready_object, reference

SECRETS = Resource("v1", "secrets")
CONFIG_MAPS = Resource("v1", "configmaps")
CONFIG, SEED, SHOOT, CRDS, STORAGE, WEBHOOKS = PARTS
SPEC: Raw = {"region": "eu-1", "secretRef": {"name": "cloudprovider"}}


def manifests(part, namespace, value="1"):
    """The objects that the part deploys; the seed's in the shoot's namespace."""
    where = namespace if PARTS[part].get("class") == "seed" else "kube-system"
    meta = {"name": part, "namespace": where}
    return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"value": value}}]


class Provider(GenericControlPlane):
    """The same control plane as the Go extension had."""

    origin = "provider-test"
    access_secrets = ("csi",)

    def config(self, at):
        return manifests(CONFIG, at.namespace)

    def seed(self, at):
        return manifests(SEED, at.namespace, "2")

    def shoot(self, at):
        return manifests(SHOOT, at.namespace, "2")

    def shoot_crds(self, at):
        return manifests(CRDS, at.namespace)

    def storage_classes(self, at):
        return manifests(STORAGE, at.namespace)

    def shoot_webhooks(self, at):
        return manifests(WEBHOOKS, at.namespace)


class Watched(Shoots):
    """Remembers every deletion in a shoot."""

    def __init__(self):
        super().__init__()
        self.taken = []

    def take(self, shoot, thing):
        self.taken.append(thing)
        super().take(shoot, thing)


@pytest.fixture
def shoots(admin, environment, namespace):
    install(environment, [ManagedResource])
    found = Watched()
    mine = OneShoot(admin, namespace)
    with (
        polling(ShootManager(mine, found).poll, "shoot-manager"),
        polling(ResourceManager(mine).poll, "resource-manager"),
    ):
        yield found


def leave(cp):
    """Create the objects that a Go extension leaves of a control plane that works."""
    meta = {"name": cp.name, "namespace": cp.namespace}
    spec = {"type": cp.namespace, **SPEC}
    finalizer = "extensions.gardener.cloud/controlplane"
    made = ready_object(cp.client, "ControlPlane", "controlplanes", finalizer, meta, spec)
    for part in PARTS:
        deploy_part(cp.client, cp.namespace, part, manifests(part, cp.namespace))
    access = {
        "name": "shoot-access-csi",
        "namespace": cp.namespace,
        "labels": {
            "resources.gardener.cloud/purpose": "token-requestor",
            "resources.gardener.cloud/class": "shoot",
        },
        "annotations": {
            "serviceaccount.resources.gardener.cloud/name": "csi",
            "serviceaccount.resources.gardener.cloud/namespace": "kube-system",
        },
    }
    token = {"token": base64.b64encode(b"token").decode()}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": access, "data": token}
    cp.client.create(SECRETS, secret)
    eventually(lambda: settled(cp))
    return made


def settled(cp):
    found = [cp.managed(part) for part in PARTS]
    status = [obj.get("status", {}) for obj in found]
    return all(
        said.get("observedGeneration") == obj["metadata"]["generation"]
        and all(c["status"] == "True" for c in said["conditions"][:2])
        for obj, said in zip(found, status, strict=True)
    )


def identities(cp):
    """The uid of everything that a take-over must not create anew."""
    found = {part: cp.managed(part)["metadata"] for part in PARTS}
    found["x"] = cp.get()["metadata"]
    for part in (CONFIG, SEED):
        found[f"deployed {part}"] = cp.client.get(CONFIG_MAPS, part, cp.namespace)["metadata"]
    found["access"] = cp.client.get(SECRETS, "shoot-access-csi", cp.namespace)["metadata"]
    return {name: (meta["uid"], meta.get("finalizers")) for name, meta in found.items()}


def parts_left(cp):
    return {obj["metadata"]["name"] for obj in cp.client.list(MANAGED_RESOURCES, cp.namespace)}


def secret_names(cp):
    names = {obj["metadata"]["name"] for obj in cp.client.list(SECRETS, cp.namespace)}
    return {name for name in names if "controlplane" in name}


@pytest.fixture
def cp(seed, shoots):
    """A control plane that a Go extension has served until now."""
    found = Extended(seed, shoots, ControlPlane)
    leave(found)
    return found


def test_the_documented_names_are_those_of_the_parts_and_of_nothing_else():
    assert {part.name: "seed" if part.in_seed else "" for part in EVERY_PART} == GO_LIBRARY
    assert {name: spec.get("class", "") for name, spec in PARTS.items()} == GO_LIBRARY


def test_a_take_over_and_the_way_back_lose_no_finalizer_and_create_nothing_anew(cp, shoots, start):
    before = identities(cp)
    inside = cp.inside()
    assert len(inside) == 4
    manager = start(Provider())
    cp.ask("reconcile")
    eventually(cp.is_ready)
    eventually(lambda: settled(cp))
    assert identities(cp) == before
    for part in PARTS:
        managed = cp.managed(part)
        assert managed["metadata"]["labels"] == {"origin": "provider-test"}
        [used] = managed["spec"]["secretRefs"]
        assert managed["metadata"]["annotations"] == reference(used["name"])
    assert cp.client.get(CONFIG_MAPS, SEED, cp.namespace)["data"] == {"value": "2"}
    assert cp.client.get(SECRETS, "shoot-access-csi", cp.namespace)["data"]["token"]
    manager.stop()
    for part in PARTS:
        deploy_part(cp.client, cp.namespace, part, manifests(part, cp.namespace, "3"))
    eventually(lambda: settled(cp))
    assert identities(cp) == before
    assert cp.client.get(CONFIG_MAPS, SEED, cp.namespace)["data"] == {"value": "3"}
    assert cp.inside() == inside
    assert shoots.taken == [], "nothing in the shoot was deleted in between"


def test_a_part_without_a_hook_stays_until_the_deletion(cp, shoots, start):
    """Go's library never deletes a part that has no chart; CRDs would go with all their objects."""

    class WithoutCrds(Provider):
        def shoot_crds(self, at):
            return None

    inside = cp.inside()
    before = cp.managed(CRDS)["metadata"]
    start(WithoutCrds())
    cp.ask("reconcile")
    eventually(cp.is_ready)
    eventually(lambda: settled(cp))
    after = cp.managed(CRDS)["metadata"]
    assert (after["uid"], after.get("labels")) == (before["uid"], before.get("labels"))
    assert "deletionTimestamp" not in after
    assert (cp.inside(), shoots.taken) == (inside, [])
    cp.delete()
    eventually(cp.is_gone)
    eventually(lambda: cp.client.list(MANAGED_RESOURCES, cp.namespace) == [])
    assert cp.inside() == set()


def test_a_deletion_right_after_the_take_over_leaves_nothing(cp, start):
    start(Provider())
    cp.delete()
    eventually(cp.is_gone)
    eventually(lambda: cp.client.list(MANAGED_RESOURCES, cp.namespace) == [])
    replaced = {name for name in secret_names(cp) if name.startswith(CONFIG)}
    assert secret_names(cp) == replaced, "the garbage collector deletes what was replaced"
    assert cp.inside() == set()
    with pytest.raises(NotFound):
        cp.client.get(CONFIG_MAPS, SEED, cp.namespace)


def test_a_migration_right_after_the_take_over_keeps_the_objects_in_the_shoot(cp, shoots, start):
    inside = cp.inside()
    start(Provider())
    cp.ask("migrate")
    eventually(lambda: cp.last_operation() == ("Migrate", "Succeeded"))
    eventually(lambda: cp.client.list(MANAGED_RESOURCES, cp.namespace) == [])
    kept = {thing for thing in inside if WEBHOOKS not in thing[1]}
    assert cp.inside() == kept


def test_a_forced_deletion_right_after_the_take_over_asks_every_part_to_go(cp, shoots, start):
    shoots.fail("everything-fails")
    start(Provider())
    cp.delete()
    eventually(lambda: cp.status().get("lastOperation", {}).get("type") == "Delete")
    cp.force()
    eventually(cp.is_gone)
    left = cp.client.list(MANAGED_RESOURCES, cp.namespace)
    assert all("deletionTimestamp" in obj["metadata"] for obj in left)
    eventually(lambda: not parts_left(cp) & {SEED, CONFIG})
    assert parts_left(cp) == set(PARTS) - {SEED, CONFIG}, "gardenlet removes these"


def managed_resource(client, namespace, name, labels=None, **spec):
    meta = {"name": name, "namespace": namespace, "labels": labels or {}}
    manifest = {"apiVersion": MANAGED_RESOURCES.api_version, "kind": "ManagedResource"}
    return client.create(
        MANAGED_RESOURCES, {**manifest, "metadata": meta, "spec": {"secretRefs": [], **spec}}
    )


@pytest.mark.parametrize(
    ("name", "labels", "spec"),
    [
        pytest.param("extension-controlplane-seed-2", {}, {"class": "seed"}, id="name"),
        pytest.param(SEED, {}, {}, id="class of a seed part"),
        pytest.param(SHOOT, {}, {"class": "seed"}, id="class of a shoot part"),
        pytest.param(SEED, {"origin": "gardener"}, {"class": "seed"}, id="origin gardener"),
        pytest.param(SHOOT, {"origin": "other"}, {}, id="origin of another extension"),
    ],
)
def test_nothing_else_is_adopted(admin, environment, namespace, name, labels, spec):
    install(environment, [ManagedResource])
    before = managed_resource(admin, namespace, name, labels, **spec)
    where = (admin, name, namespace)
    with pytest.raises(ActuatorError, match="belongs to another owner"):
        managedresources.deploy_for_seed(*where, [], origin="mine")
    managedresources.set_keep_objects(*where, keep=True, origin="mine")
    managedresources.delete(*where, origin="mine")
    assert admin.get(MANAGED_RESOURCES, name, namespace) == before


def test_only_secrets_that_came_with_it_go_with_an_adopted_managed_resource(
    admin, environment, namespace
):
    install(environment, [ManagedResource])
    names = {
        SEED: False,
        f"{SEED}-0a1b2c3d": False,
        "cloudprovider": True,
        "extension-controlplane-seeds": True,
    }
    for name in names:
        meta = {"name": name, "namespace": namespace}
        admin.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta})
    refs = [{"name": name} for name in names]
    managed_resource(admin, namespace, SEED, **{"class": "seed", "secretRefs": refs})
    managedresources.delete(admin, SEED, namespace, origin="mine")
    left = {obj["metadata"]["name"] for obj in admin.list(SECRETS, namespace)}
    assert {name: name in left for name in names} == names


def test_a_heartbeat_continues_the_lease_of_the_former_extension(admin, namespace):
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": "former", "leaseDurationSeconds": 30, "renewTime": now}
    meta = {"name": LEASE_NAME, "namespace": namespace}
    lease = {"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": meta, "spec": spec}
    before = admin.create(LEASES, lease)

    class Once(threading.Event):
        """Ends the heartbeat after one renewal."""

        def wait(self, timeout=None):
            self.set()
            return True

    Heartbeat("provider-test", namespace).run(admin, Once())
    after = admin.get(LEASES, LEASE_NAME, namespace)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"]["holderIdentity"] == "provider-test"
    assert after["spec"]["renewTime"] > now


def test_the_former_leader_is_waited_for_until_its_lease_ends(admin, namespace):
    name = "provider-test-leader-election"
    spec = {
        "holderIdentity": "pod-1_f1a2",
        "leaseDurationSeconds": 3,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:00.000000Z",
        "leaseTransitions": 7,
    }
    meta = {"name": name, "namespace": namespace}
    lease = {"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": meta, "spec": spec}
    admin.create(LEASES, lease)
    clock = SystemClock()
    led = []
    stop = threading.Event()
    elector = LeaderElector(
        admin,
        namespace,
        name,
        on_started=lambda: led.append(clock.monotonic()),
        on_lost=lambda: None,
        clock=clock,
        metrics=Metrics(),
        timing=Timing(retry_period=0.2),
    )
    began = clock.monotonic()
    thread = threading.Thread(target=elector.run, args=(stop,), daemon=True)
    thread.start()
    try:
        eventually(lambda: led)
        assert led[0] - began >= 2.9, "it may still act until then"
        assert admin.get(LEASES, name, namespace)["spec"]["leaseTransitions"] == 8
    finally:
        stop.set()
        elector.release()
        thread.join(10)


def test_finalizers_on_the_secrets_of_backups_go_with_their_bucket(admin, seed, namespace, start):
    finalizer = "extensions.gardener.cloud/backupbucket"
    meta = {"name": "backup", "namespace": namespace, "finalizers": [finalizer]}
    admin.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta})
    secret = {"name": "backup", "namespace": namespace}
    spec = {"type": namespace, "region": "eu-1", "secretRef": secret}
    bucket = seed.of(BackupBucket, namespace, "")
    ready_object(admin, "BackupBucket", "backupbuckets", finalizer, {"name": namespace}, spec)
    start(Script(BackupBucket))
    bucket.ask("reconcile")
    eventually(bucket.is_ready)
    assert admin.get(SECRETS, "backup", namespace)["metadata"]["finalizers"] == [finalizer]
    bucket.delete()
    eventually(bucket.is_gone)
    assert "finalizers" not in admin.get(SECRETS, "backup", namespace)["metadata"]


def test_an_operating_system_config_keeps_its_plural_finalizer_and_its_secret(admin, seed, start):
    finalizer = "extensions.gardener.cloud/operatingsystemconfigs"
    osc = seed.of(OperatingSystemConfig, "pool")
    meta = {"name": "pool", "namespace": osc.namespace}
    secret_name = "osc-result-pool"
    made = ready_object(
        admin,
        "OperatingSystemConfig",
        "operatingsystemconfigs",
        finalizer,
        meta,
        {"type": osc.namespace, "purpose": "reconcile"},
        cloudConfig={"secretRef": {"name": secret_name, "namespace": osc.namespace}},
    )
    owner = {
        "apiVersion": made["apiVersion"],
        "kind": made["kind"],
        "name": "pool",
        "uid": made["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    secret_meta = {"name": secret_name, "namespace": osc.namespace, "ownerReferences": [owner]}
    data = {"cloud_config": base64.b64encode(b"old").decode()}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": secret_meta, "data": data}
    before = admin.create(SECRETS, secret)["metadata"]["uid"]
    provisioned = Provisioned(user_data=b"new")
    start(Script(OperatingSystemConfig, reconcile=lambda *_: provisioned))
    osc.ask("reconcile")
    eventually(osc.is_ready)
    assert osc.get()["metadata"]["finalizers"] == [finalizer]
    after = admin.get(SECRETS, secret_name, osc.namespace)
    assert after["metadata"]["uid"] == before
    assert base64.b64decode(after["data"]["cloud_config"]) == b"new"
    osc.delete()
    eventually(osc.is_gone)


def test_objects_that_the_former_extension_reconciled_are_left_alone_until_asked(cp, start):
    before = cp.status()
    actuator = Script(ControlPlane)
    start(actuator)
    cp.annotate(**{"example.org/seen": "yes"})
    assert cp.status() == before
    cp.ask("reconcile")
    eventually(cp.is_ready)
    assert actuator.operations(cp.name) == ["reconcile"]


class OnePool(GenericWorker):
    """Machines of one pool in one zone."""

    def machine_deployments(self, ctx, worker, cluster):
        [pool] = worker.spec.pools
        group = in_zone(
            worker,
            pool,
            cluster,
            0,
            hash="0a1b2",
            secret_data={"userData": b"x"},
            provider="test",
            provider_spec={"type": pool.machine_type},
        )
        return [group]


def test_machines_stay_and_a_machine_state_that_was_left_is_no_obstacle(admin, seed, start):
    install_crds(admin, [crd(cls) for cls in MACHINE_KINDS])
    worker = seed.of(Worker, "worker")
    pool = {
        "name": "pool",
        "machineType": "small",
        "machineImage": {"name": "linux", "version": "1.0"},
        "minimum": 1,
        "maximum": 1,
        "maxSurge": 1,
        "maxUnavailable": 0,
        "nodeAgentSecretName": "node-agent",
        "userDataSecretRef": {"name": "user-data", "key": "cloud_config"},
        "zones": ["a"],
    }
    spec = {"type": worker.namespace, **SPEC, "pools": [pool]}
    spec["secretRef"] = {**SPEC["secretRef"], "namespace": worker.namespace}
    state = {"machineDeployments": {"gone": {"replicas": 3}}}
    meta = {"name": "worker", "namespace": worker.namespace}
    finalizer = "extensions.gardener.cloud/worker"
    with polling(MachineController(admin, worker.namespace).poll, "machines"):
        former = start(OnePool())
        ready_object(admin, "Worker", "workers", finalizer, meta, spec, state=state)
        worker.ask("reconcile")
        eventually(worker.is_ready)
        former.stop()

        def uids():
            kinds = (MACHINE_DEPLOYMENTS, MACHINES, MACHINE_CLASSES)
            found = [obj for kind in kinds for obj in admin.list(kind, worker.namespace)]
            return {obj["metadata"]["name"]: obj["metadata"]["uid"] for obj in found}

        before = uids()
        assert len(before) == 3
        start(OnePool())
        worker.ask("reconcile")
        eventually(worker.is_ready)
        assert uids() == before
        assert worker.get()["metadata"]["finalizers"] == [finalizer]
