"""The default ForceDelete: declared seed objects go, and nothing else does."""

import pytest
from builders import cluster, infrastructure
from harness import EVENTS, INFRASTRUCTURES, Script, eventually

from actuator import Actuator, ActuatorError, Resource, SeedObjects
from actuator.errors import NotFound
from generic.force_delete import CONFIRM_DELETION, Stripped, delete_seed_objects
from generic.machines import MACHINE_KINDS, MACHINES
from generic.machines import MCM_FINALIZER as MCM
from generic.seed import install_kinds

GUARD = "kubernetes.io/pv-protection"
CONFIGMAPS = Resource("v1", "configmaps")


@pytest.fixture(scope="session")
def machines(admin):
    """The machine-controller-manager's kinds."""
    install_kinds(admin, MACHINE_KINDS)


@pytest.fixture
def machine(admin, machines, namespace):
    """Creates Machines; takes all finalizers off at the end."""

    def create(name, *finalizers, where=namespace):
        meta = {"name": name, "namespace": where, "finalizers": list(finalizers)}
        obj = {"apiVersion": MACHINES.api_version, "kind": "Machine", "metadata": meta, "spec": {}}
        return admin.create(MACHINES, obj)

    yield create
    for obj in admin.list(MACHINES, namespace):
        patch = {"metadata": {"finalizers": None}}
        admin.patch(MACHINES, obj["metadata"]["name"], namespace, patch)


def exists(admin, resource, name, namespace):
    try:
        return admin.get(resource, name, namespace)
    except NotFound:
        return None


def test_declared_finalizers_are_stripped_and_reported(admin, machine, namespace):
    for name in ("one", "two"):
        machine(name, MCM)
    machine("free")
    stripped = []
    group = SeedObjects(MACHINES.api_version, "machines", finalizers=[MCM])
    delete_seed_objects(admin, namespace, [group], stripped.append)
    assert admin.list(MACHINES, namespace) == []
    assert sorted(stripped, key=lambda one: one.name) == [
        Stripped(
            resource="machines.machine.sapcloud.io", namespace=namespace, name=name, finalizer=MCM
        )
        for name in ("one", "two")
    ]


@pytest.mark.parametrize("undeclared", ["example.org/other", GUARD])
def test_what_an_undeclared_finalizer_holds_is_an_error_that_names_it(
    admin, machine, namespace, undeclared
):
    machine("held", MCM, undeclared)
    machine("free", MCM)
    group = SeedObjects(MACHINES.api_version, "machines", finalizers=[MCM])
    with pytest.raises(ActuatorError, match=f"held \\(held by {undeclared}\\)"):
        delete_seed_objects(admin, namespace, [group], lambda _one: None)
    (left,) = admin.list(MACHINES, namespace)
    assert left["metadata"]["finalizers"] == [undeclared]
    assert left["metadata"]["deletionTimestamp"]


def test_other_namespaces_and_other_labels_are_not_touched(admin, machine, namespace):
    meta = {"namespace": namespace}
    for name, labels in (("mine", {"app": "ccm"}), ("yours", {"app": "other"})):
        obj = {"apiVersion": "v1", "kind": "ConfigMap"}
        admin.create(CONFIGMAPS, {**obj, "metadata": {**meta, "name": name, "labels": labels}})
    machine("elsewhere", where="default")
    groups = [
        SeedObjects("v1", "configmaps", label_selector="app=ccm"),
        SeedObjects(MACHINES.api_version, "machines", finalizers=[MCM]),
    ]
    delete_seed_objects(admin, namespace, groups, lambda _one: None)
    assert exists(admin, CONFIGMAPS, "yours", namespace)
    assert not exists(admin, CONFIGMAPS, "mine", namespace)
    assert exists(admin, MACHINES, "elsewhere", "default")
    admin.delete(MACHINES, "elsewhere", "default")


def test_a_type_that_nobody_installed_is_nothing_to_delete(admin, namespace):
    group = SeedObjects("never.example.org/v1", "nevers", finalizers=["x/y"])
    delete_seed_objects(admin, namespace, [group], lambda _one: None)


@pytest.mark.parametrize(
    ("version", "plural", "namespaced"),
    [
        pytest.param("v1", "configmaps", True, id="core kinds are shared"),
        pytest.param("rbac.example.org/v1", "things", False, id="so are cluster-scoped ones"),
        pytest.param(
            "resources.gardener.cloud/v1alpha1", "managedresources", True, id="and ManagedResources"
        ),
    ],
)
def test_what_is_shared_with_others_needs_a_selector(version, plural, namespaced):
    with pytest.raises(ValueError, match="label_selector"):
        SeedObjects(version, plural, namespaced=namespaced)
    SeedObjects(version, plural, namespaced=namespaced, label_selector="a=b")


def test_extension_objects_are_confirmed_before_they_are_deleted(admin, seed):
    """Gardener's webhook denies a deletion that is not confirmed; here an audit of the object."""
    obj = infrastructure(seed.namespace, "nobody", finalizers=["example.org/hold"])
    seed.create(obj)
    group = SeedObjects(INFRASTRUCTURES.api_version, "infrastructures")
    with pytest.raises(ActuatorError):
        delete_seed_objects(admin, seed.namespace, [group], lambda _one: None)
    assert seed.get()["metadata"]["annotations"][CONFIRM_DELETION] == "true"
    seed.patch([{"op": "remove", "path": "/metadata/finalizers"}])


def test_the_default_force_delete_does_it_under_the_generated_role(
    admin, seed, start, machine, namespace
):
    class Worker(Script):
        seed_objects = [SeedObjects(MACHINES.api_version, "machines", finalizers=[MCM])]
        force_delete = Actuator.force_delete

    def fail(ctx, obj, cluster):
        raise ActuatorError("the machines do not go")

    manager = start(Worker(delete=fail))
    machine("stuck", MCM)
    seed.create(infrastructure(namespace, namespace))
    eventually(seed.is_ready)
    seed.delete()
    seed.update_cluster(cluster(namespace, force="true"))
    eventually(seed.is_gone)
    assert admin.list(MACHINES, namespace) == []
    (event,) = [e for e in admin.list(EVENTS, namespace) if e["reason"] == "FinalizerStripped"]
    assert MCM in event["message"]
    assert "stuck" in event["message"]
    stripped = manager.metrics.total("actuator_seed_finalizers_stripped_total", "resource")
    assert stripped == {"machines.machine.sapcloud.io": 1}
