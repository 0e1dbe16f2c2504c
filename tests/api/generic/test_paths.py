"""Every path of gardenlet for all twelve kinds: calls and deletions, in their order.

The expected order is written down here from Gardener's flows (`reconciler_reconcile.go`,
`reconciler_delete.go`, `reconciler_force_delete.go`, `reconciler_migrate.go`), independently of
the tables in `generic.testing.garden.order`.
"""

import secrets
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from actuator import v1alpha1
from actuator.cluster import FORCE_DELETION
from actuator.errors import ActuatorError, AlreadyExists
from actuator.interface import Resource
from actuator.meta import Raw
from generic.kube.clusters import CLUSTERS
from generic.kube.delegating import DelegatingClient
from generic.library.machines import MACHINE_KINDS, MACHINES, MC_FINALIZER
from generic.library.managedresources import ManagedResource
from generic.library.managedresources.kind import MANAGED_RESOURCES
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.testing.drill.paths import PATHS, STEPS
from generic.testing.drill.world import PatientClient
from generic.testing.garden import (
    NAMESPACES,
    SHOOT,
    Garden,
    GardenletFlows,
    SeedShoot,
    ShootState,
    order,
)
from generic.testing.garden.cleanup import OWN
from generic.testing.seed import install_crds
from tests.support.cluster.harness import PATIENCE, Impatient, Script, eventually
from tests.support.objects.shoot_objects import KINDS, PATIENT, held, is_gone, manifests, meta

CONFIGMAPS = Resource("v1", "configmaps")
SECRETS = Resource("v1", "secrets")
ETCDS = Resource("druid.gardener.cloud/v1alpha1", "etcds")
NODES = "ContainerRuntime Network OperatingSystemConfig Worker"
OTHERS = "ControlPlane DNSRecord Extension Infrastructure SelfHostedShootExposure"
TYPE = f"paths-{secrets.token_hex(4)}"
"""Of this process: other processes may run this module on the same cluster."""
pytestmark = pytest.mark.long  # together on one worker: its fixture walks all paths
STUCK = 4.0
"""Seconds without progress until gardenlet gives up in a step that has to get stuck."""
QUIET = 1.0
"""Seconds in which a failed shoot has to rest."""


def groups(text):
    """Lines `operation: kinds`, in order; kinds after a `+` may be missing or called again."""
    found = []
    for line in filter(None, map(str.strip, text.splitlines())):
        parts = [part.partition(":") for part in line.split(";")]
        needed = set()
        allowed = set()
        for operation, _, kinds in parts:
            names, _, others = kinds.partition("+")
            needed |= {(operation.strip(), kind) for kind in names.split()}
            allowed |= {(operation.strip(), kind) for kind in others.split()}
        found.append((needed, needed | allowed))
    return found


CREATE = """
    reconcile: BackupBucket
    reconcile: BackupEntry Infrastructure
    reconcile: DNSRecord
    reconcile: ContainerRuntime ControlPlane Extension
    reconcile: Network OperatingSystemConfig
    reconcile: Worker
    reconcile: Bastion SelfHostedShootExposure
"""
AGAIN = """
    reconcile: ContainerRuntime ControlPlane Extension
    reconcile: Network OperatingSystemConfig
    reconcile: Worker
    reconcile: SelfHostedShootExposure
"""
"""The others are asked again only where they are not ready."""
WAKE = f"""
    reconcile: DNSRecord Infrastructure
    {AGAIN}
"""
BROKEN = AGAIN[: AGAIN.index("reconcile: Worker")]
"""The same up to a Network that fails."""
HIBERNATE = f"""
    {AGAIN}
    delete: DNSRecord
"""
NETWORK = "reconcile: + Network; restore: + Network"
"""A Network that has failed is tried again as soon as its shoot rests no longer."""
BACKUPS = """
    delete: BackupEntry
    delete: BackupBucket
"""
LAST = """
    gardenlet: etcds
    gardenlet: namespaces
    gardenlet: clusters
"""
TAIL = f"""
    delete: ControlPlane
    delete: DNSRecord Infrastructure
    {LAST}
    {BACKUPS}
"""
DELETE = f"""
    delete: Bastion; {NETWORK}
    reconcile: ControlPlane + Network; restore: + Network
    delete: ContainerRuntime Network SelfHostedShootExposure Worker; {NETWORK}
    delete: OperatingSystemConfig; gardenlet: managedresources
    delete: Extension
    {TAIL}
"""
UNFINISHED = DELETE.replace("delete: Bastion;", "").replace(" SelfHostedShootExposure Worker", "")
"""Of a shoot that never got beyond its Network."""
MOVED = DELETE.replace("delete: Bastion;", "").replace(" SelfHostedShootExposure", "")
WOKEN = DELETE.replace("reconcile: ControlPlane", "reconcile: DNSRecord\n reconcile: ControlPlane")
FORCED_OWN = f"""
    gardenlet: + managedresources
    gardenlet: clusters
    gardenlet: etcds
    gardenlet: configmaps secrets
    gardenlet: namespaces
    {BACKUPS}
"""
FORCE = f"""
    force_delete: Bastion; reconcile: + Bastion Network
    force_delete: {NODES} {OTHERS}; gardenlet: machines; {NETWORK}
    {FORCED_OWN}
"""
"""The annotation of a Bastion comes before its deletion, and is an event of its own."""
FORCE_REST = f"""
    force_delete: ControlPlane DNSRecord Infrastructure; gardenlet: machines
    {FORCED_OWN}
"""
BEGIN = f"""
    delete: Bastion
    delete: SelfHostedShootExposure
    gardenlet: managedresources
    migrate: Extension {NODES}
"""
MIGRATE = f"""
    {BEGIN}
    gardenlet: machines
    migrate: ControlPlane
    migrate: DNSRecord Infrastructure
    migrate: BackupEntry
    {LAST}
"""


def restored(kinds):
    """A restored object may be reconciled once more: its annotation goes after its status."""
    return f"restore: {kinds}; reconcile: + {kinds}\n"


RESTORE = "\n" + "".join(
    map(
        restored,
        [
            "BackupEntry DNSRecord Infrastructure",
            "ContainerRuntime ControlPlane Extension",
            "Network OperatingSystemConfig",
        ],
    )
)
STOPPED = f"""
    delete: Bastion; {NETWORK}
    reconcile: ControlPlane
    delete: ContainerRuntime Network SelfHostedShootExposure Worker
    delete: OperatingSystemConfig; gardenlet: managedresources
    delete: Extension
    delete: ControlPlane
"""
"""A deletion up to a ControlPlane that fails."""
EXPECTED = {
    "delete": CREATE + DELETE,
    "hibernate": CREATE + HIBERNATE + WAKE + DELETE,
    "delete-hibernated": CREATE + HIBERNATE + WOKEN,
    "delete-unfinished": "\n".join(CREATE.splitlines()[:6]) + UNFINISHED,
    "migrate": CREATE + MIGRATE + RESTORE + restored("Worker") + MOVED,
    "delete-migrating": f"""
        {CREATE}
        {BEGIN}
        reconcile: ControlPlane
        {TAIL}
    """,
    "delete-restoring": CREATE + MIGRATE + RESTORE + MOVED.replace(" Worker", ""),
    "retry": CREATE + BROKEN + AGAIN + DELETE,
    "retry-delete": CREATE + DELETE,
    "delete-failed": CREATE + BROKEN + DELETE,
    "force-delete-failed": CREATE + BROKEN + FORCE,
    "force-delete": CREATE + STOPPED + FORCE_REST,
    "force-delete-hibernated": (
        CREATE
        + HIBERNATE
        + STOPPED.replace(
            "reconcile: ControlPlane", "reconcile: DNSRecord\n reconcile: ControlPlane"
        )
        + FORCE_REST
    ),
}
HAS_MACHINES = {path for path, expected in EXPECTED.items() if "machines" in expected}
BROKEN_OPERATIONS = {("reconcile", "Network"), ("restore", "Network"), ("delete", "ControlPlane")}


def disorder(lines, expected):
    """Why the lines are not in the expected order, or None."""
    wanted = groups(expected)
    at = 0
    seen: set[tuple[str, str]] = set()
    for number, line in enumerate(lines):
        while line not in wanted[at][1]:
            if missing := wanted[at][0] - seen:
                return f"line {number}: {line} came before {sorted(missing)}"
            at = at + 1
            seen = set()
            if at == len(wanted):
                return f"line {number}: {line} came after everything"
        seen.add(line)
    missing = [
        needed - (seen if n == at else set()) for n, (needed, _) in enumerate(wanted) if n >= at
    ]
    return f"missing: {missing}" if any(missing) else None


class Diary:
    """The calls, and the deletions by gardenlet, of each shoot."""

    def __init__(self):
        self.lines = {}
        self.fails = {}
        self.lock = threading.Lock()

    def note(self, shoot, operation, kind):
        with self.lock:
            self.lines.setdefault(shoot, []).append((operation, kind))


class Noted(Script):
    """Notes its calls; generates statuses for other kinds, and fails by the diary."""

    def __init__(self, diary, of):
        super().__init__(of)
        self.diary = diary
        if of is v1alpha1.Extension:
            self.finalizer = "extensions.gardener.cloud/paths"

    def _run(self, operation, ctx, obj, cluster):
        shoot = obj.metadata.labels[SHOOT]
        kind = obj.KIND.name
        self.diary.note(shoot, operation, kind)
        if (operation, kind) in self.diary.fails.get(shoot, ()):
            raise ActuatorError("no luck")
        if operation in ("reconcile", "restore"):
            obj.status.provider_status = {"kind": f"{kind}Status"}
            obj.status.state = None if kind == "Worker" else {"made": kind}


class Deletions(DelegatingClient):
    """A client of gardenlet: its own deletions are in the diary."""

    def __init__(self, inner, diary, shoot):
        super().__init__(inner)
        self.diary = diary
        self.shoot = shoot

    def delete(self, resource, name, namespace="", **options):
        if resource.group != "extensions.gardener.cloud" or resource == CLUSTERS:
            self.diary.note(self.shoot, "gardenlet", resource.plural)
        super().delete(resource, name, namespace, **options)


class Told(Garden):
    """Waits until the manager knows the Cluster: watches have no order."""

    def __init__(self, client, manager):
        super().__init__(client)
        self.manager = manager

    def sync(self, shoot, type, state="Processing", **changes):
        super().sync(shoot, type, state, **changes)
        forced = FORCE_DELETION in changes.get("metadata", {}).get("annotations", {})
        failed = state == "Failed"

        def knows():
            verdict = self.manager.verdict(shoot.technical_id)
            return verdict.failed == failed and (verdict.forced or not forced)

        if not is_gone(self.client, CLUSTERS, shoot.technical_id):
            eventually(knows)


class Walk:
    """One shoot on a path."""

    def __init__(self, admin, manager, diary, machines):
        name = f"paths-{secrets.token_hex(4)}"
        self.shoot = SeedShoot(
            technical_id=name, name="a", project="tests", region="eu-1", labels={SHOOT: name}
        )
        self.admin = admin
        self.diary = diary
        self.machines = machines
        self.garden = Told(Deletions(PatientClient(admin), diary, name), manager)
        self.state = ShootState()
        self.rested = []
        self.problem = None

    @property
    def lines(self):
        return list(self.diary.lines.get(self.shoot.technical_id, ()))

    @property
    def objects(self):
        return [
            (cls.KIND.name, obj["metadata"].get("uid"), obj["metadata"].get("finalizers"))
            for cls in KINDS
            for obj in self.garden.objects(cls.KIND, self.shoot)
            if "deletionTimestamp" not in obj["metadata"]
        ]

    def manifests(self):
        found = manifests(self.shoot)
        return [
            obj if "spec" not in obj else {**obj, "spec": {**obj["spec"], "type": TYPE}}
            for obj in found
        ]

    def take(self, path, kinds=KINDS):
        for step in path.split():
            self.step(step, kinds)

    def step(self, step, kinds=KINDS):
        name, stuck, _ = step.partition("!")
        fails = self.diary.fails
        if name in ("break", "repair"):
            fails[self.shoot.technical_id] = BROKEN_OPERATIONS if name == "break" else set()
        elif name == "fail":
            self.rest()
        else:
            served = [cls.KIND for cls in kinds]
            if stuck:
                impatient = Impatient(self.garden, self.shoot, served, stuck="no luck", quiet=STUCK)
                with pytest.raises(ActuatorError, match="no luck"):
                    STEPS[name].act(impatient, self.manifests(), self.state)
            else:
                flow = GardenletFlows(self.garden, self.shoot, served, patience=PATIENT)
                self.state = STEPS[name].act(flow, self.manifests(), self.state) or self.state
            if name in ("create", "restore"):
                self.plant(machines=self.machines and name == "create")

    def rest(self):
        """A failed shoot rests: extensions do nothing until gardenlet acts again."""
        self.garden.sync(self.shoot, "", "Failed")
        time.sleep(QUIET)
        before = self.lines
        time.sleep(QUIET)
        self.rested.append(self.lines == before)

    def plant(self, *, machines):
        """Create the objects that gardenlet has in a shoot's namespace, and deletes itself."""
        where = meta(self.shoot.technical_id, "planted")
        mine = {**where, "labels": {"origin": "gardener"}}
        spec = {"class": "seed", "secretRefs": []}
        kinds: list[tuple[Resource, str, Raw, Raw]] = [
            (MANAGED_RESOURCES, "ManagedResource", mine, {"spec": spec}),
            (ETCDS, "Etcd", where, {"spec": {}}),
            (CONFIGMAPS, "ConfigMap", where, {}),
        ]
        for resource, kind, metadata, rest in kinds:
            self.admin.create(
                resource,
                {"apiVersion": resource.api_version, "kind": kind, "metadata": metadata, **rest},
            )
        if machines:
            self.admin.create(MACHINES, held("Machine", self.shoot, {}, holder=MC_FINALIZER))


@pytest.fixture(scope="module")
def diary():
    return Diary()


@pytest.fixture(scope="module")
def manager(environment, admin, diary):
    """One for every kind; as administrator."""
    install_crds(admin, [*KINDS, *MACHINE_KINDS, ManagedResource])
    install_crds(admin, [ETCD_CRD])
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta("default", "cloudprovider")}
    with suppress(AlreadyExists):
        admin.create(SECRETS, secret)
    made = Manager(
        Options(
            kubeconfig=environment.kubeconfig,
            metrics_bind_address="0",
            health_bind_address="0",
            shutdown_timeout=5.0,
        )
    )
    for cls in KINDS:
        made.add(Noted(diary, cls), type=TYPE)
    made.start()
    assert made.wait_synced(PATIENCE)
    yield made
    made.stop()


ETCD_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "etcds.druid.gardener.cloud"},
    "spec": {
        "group": "druid.gardener.cloud",
        "scope": "Namespaced",
        "names": {"kind": "Etcd", "plural": "etcds", "singular": "etcd", "listKind": "EtcdList"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


@pytest.fixture(scope="module")
def walked(admin, manager, diary):
    """All paths at once, each with a shoot of its own; and a neighbour that stays unchanged."""
    neighbour = Walk(admin, manager, diary, machines=False)
    neighbour.step("create")
    before = neighbour.objects, neighbour.lines
    walks = {path: Walk(admin, manager, diary, path in HAS_MACHINES) for path in PATHS}

    def walk(path):
        try:
            walks[path].take(PATHS[path])
        except Exception as error:
            walks[path].problem = error

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(walk, walks))
    return walks, before, (neighbour.objects, neighbour.lines)


def test_the_order_of_each_path_is_written_down():
    assert set(EXPECTED) == set(PATHS)


@pytest.mark.parametrize("path", list(PATHS))
def test_each_path_calls_all_kinds_in_gardenlets_order_and_leaves_nothing(admin, walked, path):
    walk = walked[0][path]
    assert walk.problem is None, "\n".join(map(str, walk.lines))
    assert disorder(walk.lines, EXPECTED[path]) is None, "\n".join(map(str, walk.lines))
    assert walk.objects == []
    assert is_gone(admin, CLUSTERS, walk.shoot.technical_id)
    assert is_gone(admin, NAMESPACES, walk.shoot.technical_id)


@pytest.mark.parametrize("path", [path for path, steps in PATHS.items() if "fail" in steps.split()])
def test_extensions_rest_while_their_shoot_is_failed(walked, path):
    assert walked[0][path].rested == [True]


def test_a_shoot_beside_them_is_not_touched(walked):
    _, before, after = walked
    assert before == after
    assert len(before[0]) == len(KINDS)


@pytest.fixture
def walk(admin, manager, diary):
    return Walk(admin, manager, diary, machines=False)


def test_a_table_in_the_wrong_order_is_noticed(walk, monkeypatch):
    swapped = list(order.DELETION)
    one, other = (
        next(n for n, s in enumerate(swapped) if kind in s)
        for kind in ("ControlPlane", "Infrastructure")
    )
    swapped[one], swapped[other] = swapped[other], swapped[one]
    monkeypatch.setattr(order, "DELETION", swapped)
    walk.take("create delete")
    problem = disorder(walk.lines, EXPECTED["delete"])
    assert "came before [('delete', 'ControlPlane')]" in problem


def test_an_object_of_gardenlet_that_is_forgotten_is_noticed(walk, monkeypatch):
    monkeypatch.setitem(OWN, "etcds", [])
    walk.take("create delete")
    assert "('gardenlet', 'etcds')" in disorder(walk.lines, EXPECTED["delete"])


def test_an_extension_that_does_not_release_ends_the_path_with_its_name(walk, diary):
    walk.step("create")
    diary.fails[walk.shoot.technical_id] = {("delete", "Infrastructure")}
    kinds = [cls.KIND for cls in KINDS]
    with pytest.raises(ActuatorError, match=r"Infrastructure .*no luck"):
        Impatient(walk.garden, walk.shoot, kinds, stuck="no luck").delete()
    assert ("gardenlet", "namespaces") not in walk.lines
    walk.take("repair delete")


def test_a_managed_resource_left_in_the_shoot_stops_its_deletion(walk, admin, diary):
    walk.step("create")
    left = held("ManagedResource", walk.shoot, {"secretRefs": []}, "left")
    admin.create(MANAGED_RESOURCES, left)
    kinds = [cls.KIND for cls in KINDS]
    with pytest.raises(ActuatorError, match="waiting for managedresources left"):
        Impatient(walk.garden, walk.shoot, kinds, stuck="managedresources left").delete()
    assert walk.lines[-1] == ("delete", "ControlPlane")
    free = {"metadata": {"finalizers": None}}
    admin.patch(MANAGED_RESOURCES, "left", walk.shoot.technical_id, free)
    admin.delete(MANAGED_RESOURCES, "left", walk.shoot.technical_id)
    walk.step("delete")
