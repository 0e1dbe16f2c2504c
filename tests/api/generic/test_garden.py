"""The simulated gardenlet: order, annotations and waits, with small actuators."""

import secrets
import threading
import time
from contextlib import suppress

import attrs
import pytest

from actuator import v1alpha1
from actuator.cluster import FORCE_DELETION
from actuator.errors import ActuatorError, AlreadyExists, ErrorCode
from actuator.interface import Resource, resource_of
from actuator.meta import NamedResourceReference, Object, ResourceReference
from generic.kube.clusters import CLUSTERS
from generic.library.machines import (
    MACHINE_DEPLOYMENTS,
    MACHINE_KINDS,
    MACHINES,
    MC_FINALIZER,
    MCM_FINALIZER,
)
from generic.library.managedresources import ManagedResource
from generic.library.managedresources.kind import MANAGED_RESOURCES
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.testing.garden import (
    NAMESPACES,
    SHOOT,
    ExtensionState,
    Garden,
    GardenletFlows,
    SeedShoot,
    resource_of_manifest,
)
from generic.testing.garden.order import CREATION, DELETION, FORCED, LATER, MIGRATION, in_stages
from generic.testing.garden.state import put_back
from generic.testing.seed import install_crds
from generic.tools.explain.standing import not_forcible_because
from tests.support.cluster.harness import PATIENCE, Impatient, Script, eventually
from tests.support.objects.shoot_objects import (
    FOREIGN,
    KINDS,
    PATIENT,
    SECRET,
    held,
    is_gone,
    manifests,
    meta,
)

SECRETS = Resource("v1", "secrets")
BACKUPS = {"BackupBucket", "BackupEntry"}


class Told(Garden):
    """Waits until the manager has heard of a force deletion: watches have no order."""

    def __init__(self, client, manager):
        super().__init__(client)
        self.manager = manager

    def force(self, shoot, value="true"):
        super().force(shoot, value)
        eventually(lambda: self.manager.verdict(shoot.technical_id).forced)


class Diary:
    """The called kinds and operations, in order."""

    def __init__(self, manager):
        self.manager = manager
        self.lines = []
        self.states = {}
        self.fails = set()
        self.stuck = {cls.KIND.name for cls in KINDS}
        self.codes = []
        self.lock = threading.Lock()

    def kinds(self, operation):
        return {kind for what, kind in self.lines if what == operation}

    def is_in_order(self, operation, order):
        """Whether no kind was called before those of an earlier stage."""
        place = {kind: number for number, stage in enumerate(order) for kind in stage}
        called = [place[kind] for what, kind in self.lines if what == operation]
        return called == sorted(called)


class Noted(Script):
    """Notes its calls; makes up a state, and a Secret that belongs to it."""

    def __init__(self, diary, of):
        super().__init__(of)
        self.diary = diary
        if of is v1alpha1.Extension:
            self.finalizer = "extensions.gardener.cloud/noted"

    def _run(self, operation, ctx, obj, cluster):
        kind = obj.KIND.name
        with self.diary.lock:
            self.diary.lines.append((operation, kind))
        if operation in self.diary.fails and kind in self.diary.stuck:
            raise ActuatorError("no luck", codes=self.diary.codes)
        if operation in ("reconcile", "restore"):
            self.diary.states[operation, kind] = obj.status.state
            obj.status.provider_status = {"kind": f"{kind}Status"}
            if kind == "Infrastructure":
                reference = ResourceReference(api_version="v1", kind="Secret", name="made")
                obj.status.resources = [NamedResourceReference(name="made", resource_ref=reference)]
                secret = {"metadata": meta(obj.metadata.namespace, "made"), "data": {"a": "Yg=="}}
                ctx.client.apply(SECRETS, {"apiVersion": "v1", "kind": "Secret", **secret})
            if kind != "Worker":
                obj.status.state = {"made": kind}


@pytest.fixture(scope="session")
def all_kinds(admin):
    install_crds(admin, [*KINDS, *MACHINE_KINDS, ManagedResource])
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta("default", "cloudprovider")}
    with suppress(AlreadyExists):
        admin.create(SECRETS, secret)


@pytest.fixture
def shoot():
    """A shoot whose namespace the Garden makes itself."""
    name = f"garden-{secrets.token_hex(4)}"
    return SeedShoot(
        technical_id=name, name="a", project="tests", region="eu-1", labels={SHOOT: name}
    )


@pytest.fixture
def diary(environment, admin, shoot, all_kinds):
    """A manager for every kind, whose calls are noted; as administrator."""
    manager = Manager(
        Options(
            kubeconfig=environment.kubeconfig,
            metrics_bind_address="0",
            health_bind_address="0",
            shutdown_timeout=5.0,
        )
    )
    diary = Diary(manager)
    for cls in KINDS:
        manager.add(Noted(diary, cls), type=shoot.technical_id)
    manager.start()
    assert manager.wait_synced(PATIENCE)
    yield diary
    manager.stop()


@pytest.fixture
def flow(admin, shoot, diary):
    return GardenletFlows(
        Told(admin, diary.manager), shoot, [cls.KIND for cls in KINDS], patience=PATIENT
    )


def objects(admin, shoot, kinds=KINDS):
    garden = Garden(admin)
    return [
        (cls.KIND.name, obj["metadata"]["name"])
        for cls in kinds
        for obj in garden.objects(cls.KIND, shoot)
    ]


def test_a_shoot_is_created_in_gardenlets_order_with_statuses_of_earlier_kinds(
    admin, shoot, flow, diary
):
    flow.create(manifests(shoot))
    assert diary.is_in_order("reconcile", CREATION)
    assert diary.kinds("reconcile") == {cls.KIND.name for cls in KINDS}
    (worker,) = admin.list(resource_of(v1alpha1.Worker.KIND), shoot.technical_id)
    assert worker["spec"]["infrastructureProviderStatus"] == {"kind": "InfrastructureStatus"}
    entry = admin.get(resource_of(v1alpha1.BackupEntry.KIND), shoot.technical_id)
    assert entry["spec"]["backupBucketProviderStatus"] == {"kind": "BackupBucketStatus"}


def test_a_shoot_is_deleted_in_gardenlets_order_and_leaves_nothing(admin, shoot, flow, diary):
    flow.create(manifests(shoot))
    flow.delete()
    assert diary.is_in_order("delete", DELETION)
    assert diary.kinds("delete") == {cls.KIND.name for cls in KINDS}
    assert objects(admin, shoot) == []
    assert is_gone(admin, CLUSTERS, shoot.technical_id)
    assert is_gone(admin, NAMESPACES, shoot.technical_id)


def test_a_forced_deletion_hits_bastions_first_then_all_at_once_and_no_backup(
    admin, shoot, flow, diary
):
    flow.create(manifests(shoot))
    flow.force_delete()
    forced = [kind for what, kind in diary.lines if what == "force_delete"]
    assert forced[0] == "Bastion"
    assert set(forced) == {cls.KIND.name for cls in KINDS} - BACKUPS
    assert diary.kinds("delete") == set()
    assert {kind for kind, _ in objects(admin, shoot)} == BACKUPS
    flow.delete_afterwards()
    assert diary.is_in_order("delete", DELETION)
    assert objects(admin, shoot) == []


def test_a_forced_deletion_releases_only_machines_and_managed_resources_of_the_shoot(
    admin, shoot, flow
):
    flow.create(manifests(shoot))
    admin.create(MACHINES, held("Machine", shoot, {}))
    spec = {"keepObjects": True, "secretRefs": []}
    for name, given in (("shoots", spec), ("seeds", {**spec, "class": "seed"})):
        admin.create(MANAGED_RESOURCES, held("ManagedResource", shoot, given, name))
    kinds = [cls.KIND for cls in KINDS]
    impatient = Impatient(flow._garden, shoot, kinds, stuck="managedresources seeds")
    with pytest.raises(ActuatorError, match="waiting for managedresources seeds"):
        impatient.force_delete()
    assert is_gone(admin, MACHINES, "machine", shoot.technical_id)
    assert is_gone(admin, MANAGED_RESOURCES, "shoots", shoot.technical_id)
    left = admin.get(MANAGED_RESOURCES, "seeds", shoot.technical_id)
    assert left["metadata"]["finalizers"] == [FOREIGN]
    assert left["metadata"]["deletionTimestamp"]
    assert left["spec"]["keepObjects"] is False
    patch = {"metadata": {"finalizers": None}}
    admin.patch(MANAGED_RESOURCES, "seeds", shoot.technical_id, patch)
    flow.clear()
    eventually(lambda: is_gone(admin, NAMESPACES, shoot.technical_id), seconds=PATIENT)


def test_a_shoot_moves_with_its_state_and_the_resources_of_its_extensions(
    admin, shoot, flow, diary
):
    flow.create(manifests(shoot))
    deployment = {"replicas": 2, "template": {}}
    admin.create(
        MACHINE_DEPLOYMENTS, held("MachineDeployment", shoot, deployment, holder=MCM_FINALIZER)
    )
    admin.create(MACHINES, held("Machine", shoot, {"class": {}}, holder=MC_FINALIZER))
    state = flow.migrate()
    moving = {cls.KIND.name for cls in KINDS if cls.KIND.migratable}
    assert diary.kinds("migrate") == moving
    assert diary.is_in_order("migrate", MIGRATION)
    assert diary.kinds("delete") == {"Bastion", "SelfHostedShootExposure"}
    assert {kind for kind, _ in objects(admin, shoot)} == {"BackupBucket"}
    assert is_gone(admin, NAMESPACES, shoot.technical_id)

    flow.restore(manifests(shoot), state)
    assert diary.kinds("restore") == moving
    assert diary.is_in_order("restore", LATER)
    for kind in moving - {"Worker"}:
        assert diary.states["restore", kind] == {"made": kind}
    machines = diary.states["restore", "Worker"]["machineDeployments"]["machinedeployment"]
    assert machines["replicas"] == 2
    assert [machine["metadata"]["name"] for machine in machines["machines"]] == ["machine"]
    secret = admin.get(SECRETS, "made", shoot.technical_id)
    assert secret["data"] == {"a": "Yg=="}
    flow.delete()
    flow.delete_afterwards()


@pytest.mark.parametrize(
    ("kind", "status", "words"),
    [
        ("Worker", {"state": {"mine": 1}}, "status.state is set, but gardenlet"),
        (
            "Infrastructure",
            {
                "resources": [
                    {
                        "name": "a",
                        "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "no"},
                    }
                ]
            },
            "Secret no, which does not exist",
        ),
    ],
)
def test_a_state_that_gardenlet_could_not_take_is_refused(
    admin, shoot, flow, diary, kind, status, words
):
    flow.create(manifests(shoot))
    resource = resource_of(next(cls.KIND for cls in KINDS if cls.KIND.name == kind))
    where = (resource, shoot.technical_id, shoot.technical_id)
    admin.patch(*where, {"status": status}, subresource="status")
    with pytest.raises(ActuatorError, match=words):
        flow.migrate()
    admin.patch(*where, {"status": {"state": None, "resources": None}}, subresource="status")
    flow.delete()


def test_a_wait_in_vain_names_the_object_and_its_error(admin, shoot, diary):
    kinds = [v1alpha1.Infrastructure.KIND]
    flow = Impatient(Garden(admin), shoot, kinds, stuck="no luck")
    diary.fails.add("reconcile")
    with pytest.raises(ActuatorError, match=r"Infrastructure .* error: .*no luck"):
        flow.create(manifests(shoot, [v1alpha1.Infrastructure]))
    diary.fails.clear()
    GardenletFlows(Garden(admin), shoot, kinds, patience=PATIENT).delete()


def test_an_error_ends_a_wait_after_the_threshold_of_gardenlet_at_scale(admin, shoot, diary):
    kinds = [v1alpha1.Infrastructure.KIND]
    flow = GardenletFlows(Garden(admin), shoot, kinds, patience=PATIENT, scale=1 / 60)
    diary.fails.add("reconcile")
    began = time.monotonic()
    with pytest.raises(ActuatorError, match=r"no luck \(.* for 180 s, here 3 s"):
        flow.create(manifests(shoot, [v1alpha1.Infrastructure]))
    assert 3 <= time.monotonic() - began < PATIENCE
    diary.fails.add("delete")
    with pytest.raises(ActuatorError, match=r"after 10 s still waiting for Infrastructure .*luck"):
        flow.delete()
    diary.fails.clear()
    GardenletFlows(Garden(admin), shoot, kinds, patience=PATIENT).delete()


def test_a_deletion_that_fails_surfaces_with_its_codes(admin, shoot, diary):
    kinds = [v1alpha1.Infrastructure.KIND]
    flow = GardenletFlows(Garden(admin), shoot, kinds, patience=PATIENT)
    flow.create(manifests(shoot, [v1alpha1.Infrastructure]))
    diary.fails.add("delete")
    diary.codes = [ErrorCode.ERR_INFRA_UNAUTHORIZED]
    impatient = Impatient(Garden(admin), shoot, kinds, stuck="no luck")
    stuck = r"Infrastructure .*no luck.*\(ERR_INFRA_UNAUTHORIZED\)"
    with pytest.raises(ActuatorError, match=stuck):
        impatient.delete()
    diary.fails.clear()
    flow.delete()


def test_a_kind_that_the_seed_does_not_have_counts_as_deleted(admin, shoot):
    unknown = attrs.evolve(v1alpha1.Infrastructure.KIND, name="Nowhere", plural="nowheres")
    garden = Garden(admin)
    garden.create_namespace(shoot)
    flow = GardenletFlows(garden, shoot, [unknown], patience=PATIENT)
    flow.delete()
    assert is_gone(admin, NAMESPACES, shoot.technical_id)


def test_a_state_that_is_there_is_not_overwritten_on_restore(admin, shoot, flow, diary, namespace):
    kind = v1alpha1.Infrastructure.KIND
    flow.create(manifests(shoot, [v1alpha1.Infrastructure]))
    (obj,) = Garden(admin).objects(kind, shoot)
    assert obj["status"]["state"] == {"made": "Infrastructure"}
    put_back(admin, kind, obj, ExtensionState(kind=kind.name, name="x", state={"other": 1}))
    (after,) = Garden(admin).objects(kind, shoot)
    assert after["status"]["state"] == {"made": "Infrastructure"}
    flow.delete()


def test_one_that_is_stuck_fails_the_wait_and_is_named(admin, shoot, diary):
    classes: list[type[Object]] = [v1alpha1.Infrastructure, v1alpha1.Network]
    kinds = [cls.KIND for cls in classes]
    garden = Told(admin, diary.manager)
    flow = GardenletFlows(garden, shoot, kinds, patience=PATIENT)
    flow.create(manifests(shoot, classes))
    diary.fails.add("force_delete")
    diary.stuck = {"Network"}
    impatient = Impatient(garden, shoot, kinds, stuck="no luck")
    with pytest.raises(ActuatorError, match=r"Network .*no luck") as error:
        impatient.force_delete()
    assert "Infrastructure" not in str(error.value)
    diary.fails.clear()
    flow.force_delete()


@pytest.mark.parametrize(
    ("deleting", "codes", "problem"),
    [
        (True, ["ERR_INFRA_UNAUTHENTICATED"], None),
        (True, ["ERR_INFRA_QUOTA_EXCEEDED", "ERR_CLEANUP_CLUSTER_RESOURCES"], None),
        (True, ["ERR_INFRA_QUOTA_EXCEEDED"], "no last error of the shoot"),
        (True, [], "no last error of the shoot"),
        (False, ["ERR_INFRA_UNAUTHENTICATED"], "not being deleted"),
    ],
)
def test_a_force_deletion_needs_a_deletion_and_a_code(deleting, codes, problem):
    meta = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleting else {}
    shoot = {"metadata": meta, "status": {"lastErrors": [{"codes": codes}]}}
    answer = not_forcible_because(shoot)
    assert answer is None if problem is None else problem in str(answer)


def test_a_bastion_carries_its_own_force_deletion(admin, shoot, diary):
    kind = v1alpha1.Bastion.KIND
    flow = GardenletFlows(Garden(admin), shoot, [kind], patience=PATIENT)
    flow.create(manifests(shoot, [v1alpha1.Bastion]))
    diary.fails.add("force_delete")
    Garden(admin).delete(kind, shoot.technical_id, shoot.technical_id, force=True)
    (obj,) = Garden(admin).objects(kind, shoot)
    assert obj["metadata"]["annotations"][FORCE_DELETION] == "true"
    diary.fails.clear()
    flow.force_delete()


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("Secret", "secrets"),
        ("NetworkPolicy", "networkpolicies"),
        ("StorageClass", "storageclasses"),
        ("Ingress", "ingresses"),
        ("Gateway", "gateways"),
    ],
)
def test_the_plural_of_a_kind_follows_kubernetes(kind, plural):
    manifest = {"apiVersion": "x/v1", "kind": kind, "metadata": {"name": "a"}}
    assert resource_of_manifest(manifest).plural == plural


def test_a_kind_that_no_table_names_has_its_place_in_every_flow():
    new = attrs.evolve(v1alpha1.Infrastructure.KIND, name="Brandnew")
    for order in (CREATION, DELETION, FORCED, MIGRATION):
        assert [new] in list(in_stages(order, [new]))


def test_a_changed_manifest_replaces_the_fields_of_a_configuration(admin, namespace):
    def deployed(**config):
        spec = {"type": "x", "region": "eu-1", "secretRef": SECRET, "providerConfig": config}
        where = {"name": "one", "namespace": namespace}
        kind = v1alpha1.Infrastructure.KIND
        manifest = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": where}
        return Garden(admin).deploy({**manifest, "spec": spec})["spec"]["providerConfig"]

    misspelt = {"kind": "Config", "sizze": 1, "network": {"mtu": 9000, "zones": ["a"]}}
    assert deployed(**misspelt) == misspelt
    corrected = {"kind": "Config", "size": 1, "network": {"zones": ["b"]}}
    assert deployed(**corrected) == corrected
