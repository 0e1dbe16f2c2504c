"""The Garden double: gardenlet's order, annotations and waits, with small actuators."""

import secrets
import threading
from contextlib import suppress

import attrs
import pytest
from harness import Script, eventually

from actuator import v1alpha1
from actuator.errors import ActuatorError, AlreadyExists, NotFound
from actuator.interface import Resource, resource_of
from actuator.meta import NamedResourceReference, ResourceReference
from generic.clusters import CLUSTERS
from generic.garden import (
    MANAGED_RESOURCES,
    NAMESPACES,
    SHOOT,
    Flow,
    Garden,
    Shoot,
    resource_of_manifest,
)
from generic.garden.order import CREATION, DELETION, FORCED, MIGRATION, in_stages
from generic.machines import (
    MACHINE_DEPLOYMENTS,
    MACHINE_KINDS,
    MACHINES,
    MC_FINALIZER,
    MCM_FINALIZER,
)
from generic.manager import Manager
from generic.options import Options
from generic.seed import install_crds, install_kinds

KINDS = list(v1alpha1.KINDS)
SECRETS = Resource("v1", "secrets")
FOREIGN = "example.org/foreign"
BACKUPS = {"BackupBucket", "BackupEntry"}
SECRET = {"name": "cloudprovider", "namespace": "default"}
NEEDED = {
    "Bastion": {"userData": "aGk=", "ingress": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]},
    "BackupBucket": {"region": "eu-1", "secretRef": SECRET},
    "BackupEntry": {"region": "eu-1", "secretRef": SECRET},
    "Extension": {},
    "ContainerRuntime": {
        "binaryPath": "/bin",
        "workerPool": {"name": "pool", "selector": {"matchLabels": {"a": "b"}}},
    },
    "DNSRecord": {
        "name": "api.example.com",
        "recordType": "A",
        "values": ["192.0.2.1"],
        "secretRef": {"name": "cloudprovider"},
    },
    "Network": {"podCIDR": "100.96.0.0/11", "serviceCIDR": "100.64.0.0/13"},
    "OperatingSystemConfig": {"purpose": "provision"},
    "SelfHostedShootExposure": {
        "port": 443,
        "endpoints": [
            {
                "nodeName": "node",
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            }
        ],
    },
    "Worker": {"region": "eu-1", "secretRef": {"name": "cloudprovider"}, "pools": []},
}
OTHERWISE = {"region": "eu-1", "secretRef": {"name": "cloudprovider"}}


class Diary:
    """Who was called for what, over all kinds."""

    def __init__(self):
        self.lines = []
        self.states = {}
        self.fails = set()
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
        if operation in self.diary.fails:
            raise ActuatorError("no luck")
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


def manifests(shoot, kinds=KINDS):
    """One object of each kind, and the Secret that they name."""
    name = shoot.technical_id
    found = [{"apiVersion": "v1", "kind": "Secret", "metadata": meta(name, "cloudprovider")}]
    for cls in kinds:
        kind = cls.KIND
        where = meta(name if kind.namespaced else "", name)
        spec = {"type": name, **NEEDED.get(kind.name, OTHERWISE)}
        if kind.name == "BackupEntry":
            spec["bucketName"] = name
        manifest = {"apiVersion": kind.api_version, "kind": kind.name, "spec": spec}
        found.append({**manifest, "metadata": {**where, "labels": shoot.labels}})
    return found


def meta(namespace, name):
    return {"name": name, **({"namespace": namespace} if namespace else {})}


def held(kind, shoot, spec, name="", holder=FOREIGN):
    """Somebody else's object, with a finalizer of theirs."""
    where = meta(shoot.technical_id, name or kind.lower())
    where |= {"finalizers": [holder], "labels": {"name": "machinedeployment"}}
    group = "resources.gardener.cloud" if kind == "ManagedResource" else "machine.sapcloud.io"
    return {"apiVersion": f"{group}/v1alpha1", "kind": kind, "metadata": where, "spec": spec}


@pytest.fixture(scope="session")
def all_kinds(admin):
    install_kinds(admin, KINDS)
    install_crds(admin, [raw_crd("resources.gardener.cloud", "ManagedResource")])
    install_kinds(admin, MACHINE_KINDS)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta("default", "cloudprovider")}
    with suppress(AlreadyExists):
        admin.create(SECRETS, secret)


def raw_crd(group, kind, plural="managedresources"):
    """A kind of somebody else, taken as it comes."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": anything},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


@pytest.fixture
def shoot():
    """A shoot whose namespace the Garden makes itself."""
    name = f"garden-{secrets.token_hex(4)}"
    return Shoot(technical_id=name, name="a", project="tests", region="eu-1", labels={SHOOT: name})


@pytest.fixture
def diary(environment, admin, shoot, all_kinds):
    """A manager for every kind, whose calls are noted; as administrator."""
    diary = Diary()
    manager = Manager(
        Options(
            kubeconfig=environment.kubeconfig,
            metrics_bind_address="0",
            health_bind_address="0",
            shutdown_timeout=5.0,
        )
    )
    for cls in KINDS:
        manager.add(Noted(diary, cls), type=shoot.technical_id)
    manager.start()
    assert manager.wait_synced(20)
    yield diary
    manager.stop()


@pytest.fixture
def flow(admin, shoot):
    return Flow(Garden(admin), shoot, [cls.KIND for cls in KINDS], patience=20.0)


def objects(admin, shoot, kinds=KINDS):
    garden = Garden(admin)
    return [
        (cls.KIND.name, obj["metadata"]["name"])
        for cls in kinds
        for obj in garden.objects(cls.KIND, shoot)
    ]


def is_gone(admin, resource, name, namespace=""):
    try:
        admin.get(resource, name, namespace)
    except NotFound:
        return True
    return False


def test_a_shoot_is_created_in_gardenlets_order_and_told_what_others_made(
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


def test_a_forced_deletion_lets_go_of_machines_and_of_what_is_in_the_shoot_only(
    admin, shoot, flow, diary
):
    flow.create(manifests(shoot))
    admin.create(MACHINES, held("Machine", shoot, {}))
    for name, spec in (("shoots", {}), ("seeds", {"class": "seed"})):
        spec |= {"keepObjects": True, "secretRefs": []}
        admin.create(MANAGED_RESOURCES, held("ManagedResource", shoot, spec, name))
    impatient = Flow(Garden(admin), shoot, [cls.KIND for cls in KINDS], patience=4.0)
    with pytest.raises(ActuatorError, match="waiting for ManagedResource seeds"):
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
    eventually(lambda: is_gone(admin, NAMESPACES, shoot.technical_id))


def test_a_shoot_moves_with_its_state_and_what_its_extensions_refer_to(admin, shoot, flow, diary):
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
    assert diary.is_in_order("restore", CREATION)
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


def test_a_wait_that_is_in_vain_says_for_what(admin, shoot, diary):
    kinds = [v1alpha1.Infrastructure.KIND]
    flow = Flow(Garden(admin), shoot, kinds, patience=1.0)
    diary.fails.add("reconcile")
    with pytest.raises(ActuatorError, match=r"Infrastructure .* error: .*no luck"):
        flow.create(manifests(shoot, [v1alpha1.Infrastructure]))
    diary.fails.clear()
    Flow(Garden(admin), shoot, kinds, patience=20.0).delete()


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
