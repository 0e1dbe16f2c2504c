"""`actuator shoot` in a seed like that of `actuator dev`: each command reports its result."""

from __future__ import annotations

import importlib
import json
import secrets
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from actuator.errors import NotFound
from actuator.interface import SECRETS, resource_of
from actuator.v1alpha1 import KINDS, BackupBucket, BackupEntry, Extension, Infrastructure, Worker
from generic.kube.client import connect
from generic.kube.clusters import CLUSTERS, NAMESPACES
from generic.kube.crds import crd
from generic.library.lookup import find
from generic.library.machines import MACHINES
from generic.library.manifests import manifest
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.testing.drill.seeds import running_seed
from generic.testing.shoots import Shoots
from tests.support.cluster.harness import connected, eventually

AUTHOR = """
from collections import Counter

from actuator import Actuator, RequeueAfter
from actuator.meta import Raw
from actuator.v1alpha1 import BackupBucket, Extension, Infrastructure
from generic.library import GenericBackupEntry, managedresources
from generic.library.manifests import manifest
from generic.library.worker import GenericWorker, in_zone, pool_hash

CALLS = Counter()


class Agent(Actuator[Extension]):
    permissions = managedresources.PERMISSIONS

    def __init__(self, name):
        self.name, self.finalizer = name, f"extensions.gardener.cloud/{name}"

    def reconcile(self, ctx, obj, cluster):
        client, namespace = ctx.client, obj.metadata.namespace
        agent = manifest("v1", "ConfigMap", self.name, "kube-system")
        managedresources.deploy_for_shoot(client, self.name, namespace, [agent])
        managedresources.wait_until_healthy(client, ctx.clock, self.name, namespace=namespace)
        CALLS["reconcile", namespace, self.name] += 1

    def delete(self, ctx, obj, cluster):
        namespace = obj.metadata.namespace
        managedresources.delete(ctx.client, self.name, namespace)
        managedresources.check_deleted(ctx.client, ctx.clock, self.name, namespace=namespace)

    def migrate(self, ctx, obj, cluster):
        CALLS["migrate", obj.metadata.namespace, self.name] += 1
        obj.status.state = {"of": self.name}
        where = ctx.client, self.name, obj.metadata.namespace
        managedresources.set_keep_objects(*where, keep=True)
        managedresources.delete(*where)


class Router(Actuator[Extension, Raw]):
    finalizer = "extensions.gardener.cloud/router"

    def reconcile(self, ctx, obj, cluster):
        if obj.spec.provider_config["slow"]:
            raise RequeueAfter(1, "waiting for the router")

    def delete(self, ctx, obj, cluster):
        if obj.spec.provider_config["slow"]:
            raise RequeueAfter(1, "waiting for the route table")


class Net(Actuator[Infrastructure, Raw]):
    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...


class Bucket(Actuator[BackupBucket]):
    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...


class Entry(GenericBackupEntry):
    def etcd_secret_data(self, ctx, entry, data):
        return data

    def delete_entry(self, ctx, entry):
        CALLS["key", entry.metadata.name] += len(ctx.credentials(entry.spec.secret_ref, "apiKey"))


class Machines(GenericWorker):
    def machine_deployments(self, ctx, worker, cluster):
        return [
            in_zone(
                worker,
                pool,
                cluster,
                0,
                hash=pool_hash(worker, pool, cluster),
                provider="test",
                provider_spec={},
                secret_data={"userData": b"#!/bin/sh"},
            )
            for pool in worker.spec.pools
        ]


def extension(manager):
    manager.add(Agent("one"), type="one")
    manager.add(Agent("two"), type="two")
    manager.add(Router(), type="router")
    manager.add(Net(), type="net")
    manager.add(Bucket(), type="backup")
    manager.add(Entry(), type="backup")
    manager.add(Machines(), type="worker")
"""
MODULE = "author_of_shoots"
POOL = {
    "name": "pool",
    "machineType": "small",
    "machineImage": {"name": "linux", "version": "1.0"},
    "minimum": 2,
    "maximum": 2,
    "maxSurge": 1,
    "maxUnavailable": 0,
    "nodeAgentSecretName": "node-agent-1",
    "userDataSecretRef": {"name": "user-data", "key": "cloud_config"},
    "zones": ["a"],
}


@pytest.fixture(scope="module")
def author(tmp_path_factory):
    """The module of the extension, in a folder of its own."""
    folder = tmp_path_factory.mktemp("author")
    (folder / f"{MODULE}.py").write_text(AUTHOR)
    sys.path.insert(0, str(folder))
    yield importlib.import_module(MODULE)
    sys.path.remove(str(folder))
    del sys.modules[MODULE]


@pytest.fixture(scope="module")
def kubeconfig(author):
    """The administrator's, of a seed in which a manager serves the extension."""
    manager = Manager(Options(metrics_bind_address="0", health_bind_address="0"))
    author.extension(manager)
    with (
        running_seed([*map(crd, KINDS)], Shoots(), print) as seed,
        connected(seed.environment, seed.admin, manager, "author"),
    ):
        manager.start()
        assert manager.wait_synced(60)
        yield seed.environment.kubeconfig


@pytest.fixture
def admin(kubeconfig):
    return connect(kubeconfig)


@pytest.fixture
def name():
    return f"s{secrets.token_hex(3)}"


@pytest.fixture
def namespace(name):
    return f"shoot--dev--{name}"


@pytest.fixture
def run(command, kubeconfig, name, tmp_path, monkeypatch):
    """Runs a command for a shoot with these objects; returns all that it printed."""
    monkeypatch.chdir(tmp_path)

    def run(verb, *objects, status=0, timeout=60):
        Path("objects.yaml").write_text("\n---\n".join(map(json.dumps, objects)))
        target = ("--kubeconfig", kubeconfig, "--extension", f"{MODULE}:extension")
        given = ("--file", "objects.yaml", "--timeout", timeout)
        done = command("shoot", verb, name, *given, *target, status=status)
        return f"{done.stdout}\n{done.stderr}"

    return run


def obj(cls, type_, **spec):
    given = {"type": type_, "region": "local", **spec}
    return manifest(cls.KIND.api_version, cls.KIND.name, type_, spec=given)


AGENTS = (obj(Extension, "one"), obj(Extension, "two"))


def calls(author, operation, namespace):
    return {
        key[2]: count for key, count in author.CALLS.items() if key[:2] == (operation, namespace)
    }


def test_each_extension_is_handled_once_and_is_once_in_the_state(run, author, namespace, name):
    assert f"shoot {name}: created" in run("create", *AGENTS)
    assert calls(author, "reconcile", namespace) == {"one": 1, "two": 1}
    run("reconcile", *AGENTS)
    assert calls(author, "reconcile", namespace) == {"one": 2, "two": 2}
    run("migrate", *AGENTS)
    assert calls(author, "migrate", namespace) == {"one": 1, "two": 1}
    state = json.loads(Path(f"{name}.shootstate.json").read_text())
    assert Counter((extension["kind"], extension["name"]) for extension in state["extensions"]) == {
        ("Extension", "one"): 1,
        ("Extension", "two"): 1,
    }


def test_a_shoot_can_be_created_again_after_a_forced_deletion(run, name):
    assert f"shoot {name}: created" in run("create", *AGENTS)
    assert f"shoot {name}: deleted" in run("force-delete", *AGENTS)
    assert f"shoot {name}: created" in run("create", *AGENTS)


@pytest.mark.parametrize("verb", ["migrate", "force-delete"])
def test_a_file_that_cannot_be_read_keeps_no_shoot(command, run, kubeconfig, name, verb):
    run("create", *AGENTS)
    Path("objects.yaml").write_text("{")
    target = ("--kubeconfig", kubeconfig, "--extension", f"{MODULE}:extension")
    given = (name, "--file", "objects.yaml", "--timeout", 60, *target)
    assert "objects.yaml cannot be read" in command("shoot", "reconcile", *given, status=1).stderr
    command("shoot", verb, *given)


@pytest.mark.parametrize("verb", ["delete", "force-delete"])
def test_backups_are_deleted_with_credentials_that_outlive_the_namespace(
    run, admin, author, namespace, name, verb
):
    secret = manifest("v1", "Secret", "cloudprovider", stringData={"apiKey": "four"})
    reference = {"secretRef": {"name": "cloudprovider"}}
    bucket = obj(BackupBucket, "backup", **reference)
    entry = obj(BackupEntry, "backup", bucketName=namespace, **reference)
    for made, written in ((bucket, namespace), (entry, f"{namespace}--1")):
        made["metadata"]["name"] = written
    objects = secret, bucket, entry
    assert f"shoot {name}: created" in run("create", *objects)
    assert "etcd-backup" in names(admin, SECRETS, namespace)
    assert f"shoot {name}: deleted" in run(verb, *objects)
    assert author.CALLS["key", f"{namespace}--1"] == len("four")
    eventually(lambda: find(admin, NAMESPACES, f"backup-{namespace}") is None)


def test_a_shoot_with_machines_migrates_as_often_as_wanted(run, admin, namespace, name):
    reference = {"name": "cloudprovider"}
    workers = obj(Worker, "worker", pools=[POOL], secretRef=reference)
    data = manifest("v1", "Secret", "user-data", stringData={"cloud_config": "#!/bin/sh"})
    objects = data, workers
    run("create", *objects)
    machines = names(admin, MACHINES, namespace)
    assert len(machines) == 2
    for secret, labels in (("gardener-internal", {}), ("password", {"persist": "true"})):
        more = {"metadata": {"name": secret, "namespace": namespace, "labels": labels}}
        admin.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", **more})
    run("migrate", *objects)
    assert f"shoot {name}: restored" in run("restore", *objects)
    assert names(admin, MACHINES, namespace) == machines
    kept = {"cloudprovider", "gardener-internal", "password"}
    assert kept <= {*names(admin, SECRETS, namespace)}
    assert f"shoot {name}: migrated" in run("migrate", *objects)


def test_a_cloud_profile_is_merged_changed_and_kept_over_a_restore(run, admin, namespace):
    def cluster():
        return admin.get(CLUSTERS, namespace)["spec"]

    def profile(**spec):
        return manifest("core.gardener.cloud/v1beta1", "CloudProfile", "acme", spec=spec)

    dual = manifest("core.gardener.cloud/v1beta1", "Shoot", "x", spec={"networking": {"a": "b"}})
    run("create", profile(type="acme"), dual, *AGENTS)
    assert cluster()["cloudProfile"]["spec"] == {"type": "acme"}
    assert cluster()["shoot"]["spec"]["networking"] == {"a": "b"}
    changed = (profile(type="acme", regions=[]), dual, *AGENTS)
    run("reconcile", *changed)
    run("migrate", *changed)
    run("restore", *changed)
    assert cluster()["cloudProfile"]["spec"] == {"type": "acme", "regions": []}
    assert cluster()["cloudProfile"]["metadata"]["name"] == "acme"
    assert cluster()["shoot"]["spec"]["networking"] == {"a": "b"}
    wrong = {"apiVersion": "v1", "kind": "Cluster", "metadata": {"name": "x"}, "spec": {"shoot": 1}}
    assert "Cluster: set spec, with objects as its fields" in run("reconcile", wrong, status=1)


def names(admin, resource, namespace):
    return sorted(item["metadata"]["name"] for item in admin.list(resource, namespace))


@pytest.mark.parametrize(
    ("verb", "cls", "type_"),
    [
        ("create", Extension, "one"),
        ("reconcile", Infrastructure, "net"),
        ("wake", Extension, "one"),
        ("restore", Infrastructure, "net"),
    ],
)
def test_a_command_whose_objects_another_one_deletes_does_not_succeed(
    run, admin, namespace, name, verb, cls, type_
):
    """In the stage that it waits for, or in an earlier one."""
    slow = obj(Extension, "router", providerConfig={"slow": True})
    fast = obj(cls, type_, secretRef={"name": "cloudprovider"})
    if verb != "create":
        run("create", fast)
    if verb == "restore":
        run("migrate", fast)
    where = (resource_of(cls.KIND), type_, namespace)
    other = threading.Thread(target=delete_once_it_waits, args=(admin, where))
    other.start()
    shown = run(verb, fast, slow, status=1)
    other.join()
    assert f"shoot {name}: another client deleted {cls.KIND.name} {type_}; repeat" in shown
    assert not any(f"shoot {name}: {word}" in shown for word in ("created", "awake", "re"))


def delete_once_it_waits(admin, where):
    router = (resource_of(Extension.KIND), "router", where[2])
    eventually(lambda: "lastOperation" in admin.get(*router).get("status", {}))
    confirmed = {"confirmation.gardener.cloud/deletion": "true"}
    admin.patch(*where, {"metadata": {"annotations": confirmed}})
    admin.delete(*where)
    eventually(lambda: is_gone(admin, *where))
    asked = {"gardener.cloud/operation": "reconcile"}
    spec = {"providerConfig": {"slow": False}}
    admin.patch(*router, {"spec": spec, "metadata": {"annotations": asked}})


def is_gone(admin, resource, name, namespace):
    try:
        admin.get(resource, name, namespace)
    except NotFound:
        return True
    return False


def test_a_wait_shows_the_reason_that_explain_has(run, command, kubeconfig, namespace):
    slow = obj(Extension, "router", providerConfig={"slow": True})
    nobodys = obj(Extension, "other")
    shown = run("create", slow, nobodys, status=1, timeout=4)
    reason = "Create is in progress: waiting for the router"
    where = f"{namespace}/Extension/router"
    assert reason in command("explain", where, "--kubeconfig", kubeconfig).stdout
    assert f"Extension router: observed generation outdated: {reason}" in shown
    assert "Extension other: observed generation outdated: no extension has worked on it" in shown
    shown = run("delete", slow, nobodys, status=1, timeout=4)
    assert "still there: Delete is in progress: waiting for the route table" in shown
