"""RecordingContext and RecordingClient: an actuator's test without a cluster."""

import inspect
import logging

import pytest

from actuator import Actuator, Client, Cluster, Context, ObjectMeta, Resource, SeedObjects
from actuator.errors import AlreadyExists, CallAbandoned, DeadlineExceeded, NotFound
from actuator.interface import resource_of
from actuator.v1alpha1 import BackupEntry, Extension, Infrastructure
from generic.library.manifests import manifest
from generic.testing.minimal import minimal_object
from generic.testing.recording import RecordingClient, RecordingContext

SECRETS = Resource("v1", "secrets")
CONFIG_MAPS = Resource("v1", "configmaps")
MACHINES = SeedObjects(Resource("machine.sapcloud.io/v1alpha1", "machines"))
SECRET = manifest("v1", "Secret", "cloudprovider", "shoot--a--b", data={"token": "YQ=="})


def config_map(name, **labels):
    return manifest("v1", "ConfigMap", name, "shoot--a--b", labels, data={"a": "b"})


def infrastructure():
    return Infrastructure(metadata=ObjectMeta(name="x", namespace="shoot--a--b"))


class Network(Actuator[Infrastructure]):
    """Uses everything that a Context has."""

    seed_objects = [MACHINES]

    def __init__(self):
        self.tokens = []

    def reconcile(self, ctx, obj, cluster):
        secret = ctx.secret("cloudprovider", obj.metadata.namespace)
        obj.status.provider_status = {"network": "net-1"}
        ctx.save(obj)
        ctx.check()
        self.tokens.append(secret["data"]["token"])
        ctx.log.info("network created", extra={"fields": {"id": "net-1"}})
        ctx.event("Created", "The network exists")
        ctx.client.create(CONFIG_MAPS, config_map("network"))
        ctx.shoot.list(CONFIG_MAPS, "kube-system")
        obj.status.provider_status = {"network": "net-2"}

    def delete(self, ctx, obj, cluster):
        ctx.client.delete(CONFIG_MAPS, "network", obj.metadata.namespace)
        ctx.event("Deleted", "The network is gone", warning=True)


def test_everything_is_recorded_in_order(caplog):
    shoot = RecordingClient()
    network = Network()
    ctx = RecordingContext(SECRET, shoot=shoot)
    obj = infrastructure()
    network.reconcile(ctx, obj, Cluster())
    assert ctx.steps == [
        "get secrets shoot--a--b/cloudprovider",
        "save",
        "check",
        "event Created: The network exists",
        "create configmaps shoot--a--b/network",
    ]
    [saved] = ctx.saved
    assert saved.status.provider_status == {"network": "net-1"}, "as it was then"
    assert network.tokens == ["YQ=="]
    assert caplog.messages == ["network created"]
    assert caplog.records[0].fields == {"id": "net-1"}
    assert shoot.steps == ["list configmaps kube-system"]
    assert ctx.bodies == {"create configmaps shoot--a--b/network": config_map("network")}
    network.delete(ctx, obj, Cluster())
    network.force_delete(ctx, obj, Cluster())
    assert ctx.steps[5:] == [
        "delete configmaps shoot--a--b/network",
        "warning Deleted: The network is gone",
        "delete seed objects machines.machine.sapcloud.io",
    ]


def test_after_a_cancellation_every_use_raises_as_in_a_manager():
    ctx = RecordingContext(SECRET)
    ctx.cancel("a force deletion begins")
    for use in (
        ctx.check,
        lambda: ctx.save(infrastructure()),
        lambda: ctx.secret("cloudprovider", "shoot--a--b"),
        lambda: ctx.client.list(SECRETS),
        lambda: ctx.garden,
        lambda: ctx.delete_seed_objects([]),
    ):
        with pytest.raises(CallAbandoned, match="a force deletion begins"):
            use()
    assert ctx.saved == []
    with pytest.raises(DeadlineExceeded):
        RecordingContext(seconds=0).check()


def test_objects_are_found_by_kind_namespace_and_labels():
    client = RecordingClient(
        infrastructure(), config_map("a", app="x"), config_map("b", app="x", tier="y")
    )
    found = client.get(resource_of(Infrastructure.KIND), "x", "shoot--a--b")
    assert (found["kind"], found["metadata"]["name"]) == ("Infrastructure", "x")
    by_label = client.list(CONFIG_MAPS, label_selector="app=x,tier=y")
    assert [obj["metadata"]["name"] for obj in by_label] == ["b"]
    assert len(client.list(CONFIG_MAPS, "shoot--a--b", label_selector="app=x")) == 2
    assert client.list(CONFIG_MAPS, "other") == client.list(SECRETS) == []
    by_label[0]["data"]["a"] = "changed by the actuator"
    assert client.get(CONFIG_MAPS, "b", "shoot--a--b")["data"] == {"a": "b"}
    uid = client.get(CONFIG_MAPS, "a", "shoot--a--b")["metadata"]["uid"]
    changed = config_map("a")
    changed["metadata"]["uid"] = uid
    assert client.apply(CONFIG_MAPS, config_map("a")) == changed
    patch = [{"op": "remove", "path": "/data/a"}]
    assert client.patch(CONFIG_MAPS, "a", "shoot--a--b", patch, subresource="status") == changed
    assert client.bodies[client.steps[-1]] == patch


def test_each_object_has_a_uid_as_owners_need_it():
    client = RecordingClient()
    created = [client.create(CONFIG_MAPS, config_map(name)) for name in "cd"]
    assert len({obj["metadata"]["uid"] for obj in created}) == 2
    given = {**config_map("e"), "metadata": {**config_map("e")["metadata"], "uid": "given"}}
    assert client.create(CONFIG_MAPS, given)["metadata"]["uid"] == "given"


@pytest.mark.parametrize(
    "request_of",
    [
        lambda client: client.get(SECRETS, "a", "b"),
        lambda client: client.patch(SECRETS, "a", "b", {}),
        lambda client: client.delete(SECRETS, "a", "b", uid="1"),
    ],
)
def test_an_object_that_was_not_given_is_not_found_and_named(request_of):
    with pytest.raises(NotFound, match=r"\w+ secrets b/a: not found; if it has to exist, pass it"):
        request_of(RecordingClient())


def test_an_existing_object_is_not_created_again():
    client = RecordingClient(config_map("a"))
    with pytest.raises(AlreadyExists, match="create configmaps shoot--a--b/a: it exists"):
        client.create(CONFIG_MAPS, config_map("a"))
    client.apply(CONFIG_MAPS, config_map("a"))


@pytest.mark.parametrize("selector", ["a", "!a", "a!=b", "a==b", "a in (b)"])
def test_a_selector_that_it_cannot_evaluate_is_refused(selector):
    with pytest.raises(NotImplementedError, match="select by key=value, or use the fixture seed"):
        RecordingClient().list(SECRETS, label_selector=selector)


def members(protocol):
    names = {*protocol.__annotations__, *vars(protocol)}
    return {name for name in names if not name.startswith("_")}


def test_it_has_all_that_a_context_has():
    ctx = RecordingContext()
    assert members(Context) >= {"client", "save", "shoot", "delete_seed_objects"}
    assert [name for name in sorted(members(Context)) if not hasattr(ctx, name)] == []
    assert isinstance(ctx.log, logging.LoggerAdapter)


@pytest.mark.parametrize("name", sorted(members(Client)))
def test_it_takes_the_arguments_that_a_client_takes(name):
    wanted = inspect.signature(getattr(Client, name)).parameters.values()
    namespaced = {"metadata": {"name": "a", "namespace": "b"}}
    values = {"resource": SECRETS, "name": "a", "namespace": "b", "obj": namespaced, "patch": {}}
    given = {item.name: values.get(item.name, "") for item in wanted if item.name != "self"}
    client = RecordingClient(*([] if name == "create" else [manifest("v1", "Secret", "a", "b")]))
    answer = getattr(client, name)(**given)
    assert (answer is None) == (name == "delete")
    assert client.steps == [f"{name} secrets b" if name == "list" else f"{name} secrets b/a"]
    with pytest.raises(TypeError, match="unexpected keyword argument 'timeout'"):
        getattr(client, name)(**given, timeout=5)


def test_a_minimal_object_has_given_and_required_fields_and_finds_the_credentials():
    ctx = RecordingContext(credentials={"apiKey": "an-example", "user": "me"})
    obj = minimal_object(Infrastructure, region="north")
    assert (obj.key, obj.spec.region, obj.spec.type) == (
        "shoot--test--example/example",
        "north",
        "",
    )
    assert ctx.credentials(obj, "user", "apiKey") == ("me", "an-example")
    assert ctx.credentials(minimal_object(Extension), "user") == "me"
    entry = minimal_object(BackupEntry, "b--1")
    assert entry.key == "b--1"
    assert ctx.credentials(entry, "user") == "me"
