"""The default ForceDelete: declared seed objects go, and nothing else does."""

from typing import Any

import pytest

from actuator import Actuator, ActuatorError, Resource, SeedObjects
from actuator.errors import ApiError, NotFound
from actuator.interface import resource_of
from actuator.v1alpha1 import KINDS, BackupBucket, BackupEntry
from generic.kube.deleting import CONFIRM_DELETION
from generic.library import seedobjects
from generic.library.machines import MACHINE_KINDS, MACHINES
from generic.library.machines import MCM_FINALIZER as MCM
from generic.manager.manager import Manager
from generic.reconciler.stripping import Stripped, delete_seed_objects
from generic.testing.recording import RecordingClient
from generic.testing.seed import install_crds
from tests.support.cluster.harness import EVENTS, INFRASTRUCTURES, Script, eventually
from tests.support.objects.builders import cluster, infrastructure
from tests.support.objects.contract import manifest
from tests.support.objects.stand_ins import StandIn

GUARD = "kubernetes.io/pv-protection"
CONFIGMAPS = Resource("v1", "configmaps")
NAMESPACES = Resource("v1", "namespaces", namespaced=False)


@pytest.fixture(scope="session")
def machines(admin):
    """The machine-controller-manager's kinds."""
    install_crds(admin, MACHINE_KINDS)


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
    stripped: list[Any] = []
    group = SeedObjects(MACHINES, finalizers=[MCM])
    delete_seed_objects(admin, namespace, [group], stripped.append)
    assert admin.list(MACHINES, namespace) == []
    assert sorted(stripped, key=lambda item: item.name) == [
        Stripped(
            resource="machines.machine.sapcloud.io", namespace=namespace, name=name, finalizer=MCM
        )
        for name in ("one", "two")
    ]


@pytest.mark.parametrize("undeclared", ["example.org/other", GUARD])
def test_an_object_with_an_undeclared_finalizer_is_an_error_that_names_both(
    admin, machine, namespace, undeclared
):
    machine("held", MCM, undeclared)
    machine("free", MCM)
    group = SeedObjects(MACHINES, finalizers=[MCM])
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
        SeedObjects(Resource("v1", "configmaps"), label_selector="app=ccm"),
        SeedObjects(MACHINES, finalizers=[MCM]),
    ]
    delete_seed_objects(admin, namespace, groups, lambda _one: None)
    assert exists(admin, CONFIGMAPS, "yours", namespace)
    assert not exists(admin, CONFIGMAPS, "mine", namespace)
    assert exists(admin, MACHINES, "elsewhere", "default")
    admin.delete(MACHINES, "elsewhere", "default")


def test_a_type_that_is_not_installed_is_nothing_to_delete(admin, namespace):
    group = SeedObjects(Resource("never.example.org/v1", "nevers"), finalizers=["x/y"])
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
def test_a_resource_shared_with_others_needs_a_selector(version, plural, namespaced):
    resource = Resource(version, plural, namespaced=namespaced)
    with pytest.raises(ValueError, match="label_selector"):
        SeedObjects(resource)
    SeedObjects(resource, label_selector="a=b")


def test_extension_objects_are_confirmed_before_they_are_deleted(admin, seed):
    """Gardener's webhook denies a deletion that is not confirmed; here an audit of the object."""
    obj = infrastructure(seed.namespace, "nobody", finalizers=["example.org/hold"])
    seed.create(obj)
    group = SeedObjects(INFRASTRUCTURES)
    with pytest.raises(ActuatorError):
        delete_seed_objects(admin, seed.namespace, [group], lambda _one: None)
    assert seed.get()["metadata"]["annotations"][CONFIRM_DELETION] == "true"
    seed.patch([{"op": "remove", "path": "/metadata/finalizers"}])


def test_the_default_force_delete_does_it_under_the_generated_role(
    admin, seed, start, machine, namespace
):
    class Worker(Script):
        seed_objects = [SeedObjects(MACHINES, finalizers=[MCM])]
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


MACHINE_GROUP = SeedObjects(MACHINES, finalizers=[MCM])


@pytest.fixture
def two_machines(admin, machine, namespace):
    """A Machine in each of two namespaces; checks that neither was touched."""
    other = f"{namespace}-other"
    admin.create(NAMESPACES, {"metadata": {"name": other}})
    made = [machine("mine", MCM), machine("other", MCM, where=other)]
    yield
    for before in made:
        meta = before["metadata"]
        assert admin.get(MACHINES, meta["name"], meta["namespace"]) == before
    admin.patch(MACHINES, "other", other, {"metadata": {"finalizers": None}})


def test_namespaced_seed_objects_without_a_namespace_are_refused(admin, two_machines):
    with pytest.raises(ActuatorError) as caught:
        delete_seed_objects(admin, "", [MACHINE_GROUP], lambda _one: None, "BackupEntry")
    assert str(caught.value) == (
        "BackupEntry is cluster-scoped, but its seed objects machines.machine.sapcloud.io are "
        "namespaced: delete them by namespace and name in force_delete"
    )


def test_an_actuator_of_a_cluster_scoped_object_cannot_delete_in_all_namespaces(
    admin, seed, start, namespace, two_machines
):
    def delete(ctx, obj, cluster):
        ctx.delete_seed_objects([MACHINE_GROUP])

    start(Script(BackupBucket, delete=delete))
    bucket = seed.of(BackupBucket, namespace)
    reference = {"name": "credentials", "namespace": namespace}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": reference}
    admin.create(Resource("v1", "secrets"), secret)
    spec = {"type": namespace, "region": "eu-1", "secretRef": reference}
    version = BackupBucket.KIND.api_version
    meta = {"name": namespace}
    bucket.create({"apiVersion": version, "kind": "BackupBucket", "metadata": meta, "spec": spec})
    eventually(bucket.is_ready)
    bucket.delete()
    error = eventually(lambda: bucket.status().get("lastError"))
    assert "BackupBucket is cluster-scoped" in error["description"]
    assert error["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
    bucket.patch({"metadata": {"finalizers": None}})


@pytest.mark.parametrize("kind", [BackupBucket, BackupEntry])
def test_an_actuator_of_a_cluster_scoped_kind_cannot_declare_namespaced_seed_objects(kind):
    class Backup(Script):
        seed_objects = [MACHINE_GROUP]

    with pytest.raises(TypeError, match=f"{kind.KIND.name} is cluster-scoped.*delete them by"):
        Manager().add(Backup(kind), type="t")

    class Selected(Script):
        seed_objects = [
            SeedObjects(Resource("x.example.org/v1", "xs", namespaced=False), label_selector="a")
        ]

    Manager().add(Selected(kind), type="t")


class Replacing(StandIn):
    """The API server, where objects are replaced by others of their names once they are listed."""

    def __init__(self, client, replacement):
        self._client = client
        self._replacement = replacement

    def __getattr__(self, name):
        return getattr(self._client, name)

    def list(self, resource, namespace="", *, label_selector=""):
        found = self._client.list(resource, namespace, label_selector=label_selector)
        for obj in found:
            self._client.delete(resource, obj["metadata"]["name"], namespace)
            self._client.create(resource, self._replacement)
        return found


@pytest.mark.parametrize("annotations", [{}, {"a": "b"}])
def test_the_deletion_of_another_object_of_the_same_name_is_not_confirmed(admin, seed, annotations):
    group = SeedObjects(INFRASTRUCTURES, label_selector="shoot=deleted")
    more = {"annotations": annotations}
    seed.create(infrastructure(seed.namespace, "nobody", labels={"shoot": "deleted"}, **more))
    replacing = Replacing(admin, infrastructure(seed.namespace, "nobody", **more))
    delete_seed_objects(replacing, seed.namespace, [group], lambda _one: None)
    meta = seed.get()["metadata"]
    assert meta.get("annotations", {}) == annotations
    assert "deletionTimestamp" not in meta


def test_a_confirmation_keeps_other_annotations(admin, seed):
    kept = {"example.org/text": "a=1&b=<2> für"}
    seed.create(
        infrastructure(seed.namespace, "nobody", annotations=kept, finalizers=["example.org/hold"])
    )
    group = SeedObjects(INFRASTRUCTURES)
    with pytest.raises(ActuatorError, match="held by example"):
        delete_seed_objects(admin, seed.namespace, [group], lambda _one: None)
    assert seed.get()["metadata"]["annotations"] == {**kept, CONFIRM_DELETION: "true"}
    seed.patch([{"op": "remove", "path": "/metadata/finalizers"}])


ADMISSION = "admissionregistration.k8s.io/v1"
POLICIES = Resource(ADMISSION, "validatingadmissionpolicies", namespaced=False)
POLICY_BINDINGS = Resource(ADMISSION, "validatingadmissionpolicybindings", namespaced=False)
CONFIRMED = (
    "oldObject.metadata.?annotations[?'confirmation.gardener.cloud/deletion'].orValue('') == 'true'"
)


@pytest.fixture
def protected(admin, namespace):
    """Denies deletions of extension objects that are not confirmed, as Gardener's webhook does."""
    rule = {"apiGroups": ["extensions.gardener.cloud"], "apiVersions": ["*"], "resources": ["*"]}
    ours = f"oldObject.?spec.?type.orValue('') == '{namespace}'"
    spec = {
        "matchConstraints": {"resourceRules": [{**rule, "operations": ["DELETE"]}]},
        "matchConditions": [{"name": "ours", "expression": ours}],
        "validations": [{"expression": CONFIRMED, "message": "not confirmed"}],
    }
    bound = {"policyName": namespace, "validationActions": ["Deny"]}
    admin.create(POLICIES, {"metadata": {"name": namespace}, "spec": spec})
    admin.create(POLICY_BINDINGS, {"metadata": {"name": namespace}, "spec": bound})
    probe = infrastructure(namespace, namespace, "probe")

    def denied():
        if not exists(admin, INFRASTRUCTURES, "probe", namespace):
            admin.create(INFRASTRUCTURES, probe)
        with pytest.raises(ApiError, match="not confirmed"):
            admin.delete(INFRASTRUCTURES, "probe", namespace)
        return True

    eventually(lambda: not raises(denied))
    yield
    for resource in (POLICIES, POLICY_BINDINGS):
        admin.delete(resource, namespace)


def raises(call):
    try:
        return not call()
    except pytest.fail.Exception:
        return True


def by_the_library(client, namespace, group):
    seedobjects.delete(client, [group], namespace)


def by_a_force_deletion(client, namespace, group):
    delete_seed_objects(client, namespace, [group], lambda _one: None)


@pytest.mark.parametrize("delete", [by_the_library, by_a_force_deletion])
def test_every_kind_that_gardener_protects_is_deleted(admin, namespace, protected, delete):
    for cls in KINDS:
        resource = resource_of(cls.KIND)
        name = f"{namespace}-0"
        wanted = manifest(cls, namespace, name)
        wanted["metadata"]["labels"] = {"of": namespace}
        admin.create(resource, wanted)
        group = SeedObjects(resource, label_selector=f"of={namespace}")
        delete(admin, namespace, group)
        assert not exists(admin, resource, name, namespace), cls


def test_a_deletion_of_etcd_druids_objects_is_confirmed_too():
    meta = {"name": "main", "namespace": "ns", "uid": "u"}
    client = RecordingClient(
        {"apiVersion": "druid.gardener.cloud/v1alpha1", "kind": "Etcd", "metadata": meta}
    )
    group = SeedObjects(Resource("druid.gardener.cloud/v1alpha1", "etcds"))
    seedobjects.delete(client, [group], "ns")
    assert [step.split()[0] for step in client.steps] == ["list", "patch", "delete"]
