"""ManagedResourceActuator: the operations that an author of manifests inherits."""

from typing import get_type_hints

import pytest

from actuator import Cluster, ObjectMeta, RequeueAfter, Resource, SeedObjects
from actuator.cluster import ClusterSpec
from actuator.v1alpha1 import Extension
from generic.library.managedresources import ManagedResourceActuator
from generic.library.managedresources.deployment import Fields
from generic.library.managedresources.kind import GroupKind
from generic.library.manifests import manifest
from generic.manager.manager import Manager
from generic.testing.recording import RecordingContext

NAMESPACE = "shoot--a--b"
MANAGED = f"managedresources.resources.gardener.cloud {NAMESPACE}/extension-extension-x"
OBJECT = Extension(metadata=ObjectMeta(name="x", namespace=NAMESPACE))
BOTH = pytest.mark.parametrize("target", ["seed", "shoot"])


class Agent(ManagedResourceActuator[Extension]):
    finalizer = "extensions.gardener.cloud/agent"
    seed_objects = (SeedObjects(Resource("example.org/v1", "agents")),)

    def __init__(self, **attributes):
        vars(self).update(attributes)

    def manifests(self, ctx, obj, cluster):
        return [manifest("v1", "ConfigMap", "agent", "kube-system", data={})]


@pytest.fixture
def ctx():
    return RecordingContext()


def deployed(ctx, **attributes):
    actuator = Agent(**attributes)
    actuator.reconcile(ctx, OBJECT, Cluster())
    return actuator


@BOTH
def test_the_manifests_are_applied_to_the_target(ctx, target):
    deployed(ctx, target=target, origin="mine")
    body = ctx.bodies[f"create {MANAGED}"]
    assert body["spec"].get("class") == ("seed" if target == "seed" else None)
    assert body["metadata"]["labels"] == {"origin": "mine"}


VALUES = {
    bool: True,
    "Mapping": {"a": "b"},
    "Sequence": [[GroupKind(group="apps", kind="Deployment")]],
}


@BOTH
@pytest.mark.parametrize("field", sorted(Fields.__annotations__.keys() - {"keep_objects"}))
def test_each_further_field_of_a_managed_resource_is_an_attribute(ctx, target, field):
    hint = get_type_hints(Fields)[field]
    value = VALUES[hint if hint is bool else hint.__origin__.__name__]
    before = RecordingContext()
    deployed(before, target=target)
    deployed(ctx, target=target, **{field: value})
    specs = [item.bodies[f"create {MANAGED}"]["spec"] for item in (before, ctx)]
    assert specs[0] != specs[1]
    assert not getattr(Agent, field)


@BOTH
def test_an_awaited_deployment_requeues_until_it_is_healthy(ctx, target):
    with pytest.raises(RequeueAfter, match="extension-extension-x to be healthy"):
        deployed(ctx, target=target, waits_until_healthy=True)


@pytest.mark.parametrize(("target", "waits"), [("seed", True), ("shoot", False)])
def test_a_hibernated_shoot_is_not_awaited(ctx, target, waits):
    spec = ClusterSpec(shoot={"spec": {"hibernation": {"enabled": True}}})
    actuator = Agent(target=target, waits_until_healthy=True)
    if waits:
        with pytest.raises(RequeueAfter):
            actuator.reconcile(ctx, OBJECT, Cluster(spec=spec))
    else:
        actuator.reconcile(ctx, OBJECT, Cluster(spec=spec))


OPERATIONS = [
    # operation, target, keeps its objects, waits for their deletion, deletes the seed objects
    ("delete", "seed", False, True, False),
    ("delete", "shoot", False, True, False),
    ("migrate", "seed", False, True, False),
    ("migrate", "shoot", True, True, False),
    ("force_delete", "seed", False, True, True),
    ("force_delete", "shoot", False, False, True),
]


@pytest.mark.parametrize(("operation", "target", "keeps", "waits", "strips"), OPERATIONS)
def test_operations_that_end_a_managed_resource(ctx, operation, target, keeps, waits, strips):
    actuator = deployed(ctx, target=target)
    ctx.steps.clear()
    getattr(actuator, operation)(ctx, OBJECT, Cluster())
    assert f"delete {MANAGED}" in ctx.steps
    assert (f"patch {MANAGED}" in ctx.steps) is keeps
    assert (ctx.steps[-1] == f"get {MANAGED}") is waits
    assert ("delete seed objects agents.example.org" in ctx.steps) is strips


GROUP = SeedObjects(Resource("example.org/v1", "agents"), ["example.org/held"])
AGENTS = f"agents.example.org {NAMESPACE}"


def agent(name, **more):
    meta = {"name": name, "namespace": NAMESPACE, **more}
    return {"apiVersion": "example.org/v1", "kind": "Agent", "metadata": meta}


class Creating(Agent):
    """Creates one object in the seed; tests/api/certificate waits for its controller."""

    seed_objects = (GROUP,)

    def objects_in_seed(self, ctx, obj, cluster):
        return {GROUP: [agent("first")]}


def test_the_objects_in_the_seed_are_exactly_those_of_the_author():
    ctx = RecordingContext(agent("former", uid="1"))
    Creating().reconcile(ctx, OBJECT, Cluster())
    assert ctx.bodies[f"create {AGENTS}/first"]["metadata"]["finalizers"] == ["example.org/held"]
    assert f"delete {AGENTS}/former" in ctx.steps
    assert f"create {MANAGED}" in ctx.steps


@BOTH
@pytest.mark.parametrize("operation", ["delete", "migrate"])
@pytest.mark.parametrize(("cls", "deletes"), [(Creating, True), (Agent, False)])
def test_objects_that_the_author_creates_in_the_seed_are_deleted(target, operation, cls, deletes):
    """Seed objects of other controllers are left to these, but for a force deletion."""
    ctx = RecordingContext(agent("first", uid="1"))
    getattr(cls(target=target), operation)(ctx, OBJECT, Cluster())
    assert (f"delete {AGENTS}/first" in ctx.steps) is deletes
    assert (ctx.steps[-1] == f"list {AGENTS}") is deletes, "it waits for them"


def test_a_migration_never_calls_the_delete_of_the_author(ctx):
    """It may delete resources outside, which the next seed needs."""

    class Outside(Agent):
        def delete(self, ctx, obj, cluster):
            raise AssertionError("deleted")

    Outside().migrate(ctx, OBJECT, Cluster())


def test_the_name_is_one_for_each_object_or_that_of_the_author(ctx):
    deployed(ctx, managed_name="agent")
    deployed(ctx, managed_name="agent-{name}")
    names = [step.rpartition("/")[2] for step in ctx.steps if step.startswith("create managed")]
    assert names == ["agent", "agent-x"]


def test_its_manager_has_its_permissions_and_its_manifests_are_required():
    manager = Manager()
    manager.add(Agent(), type="agent")
    resources = {
        str(permission.resource) for permission in manager.registrations[0].actuator.permissions
    }
    assert resources == {"secrets", "managedresources.resources.gardener.cloud"}

    class Without(ManagedResourceActuator[Extension]):
        pass

    with pytest.raises(TypeError, match="Without has no method manifests; define manifests"):
        Without()  # type: ignore[abstract]  # what is refused
