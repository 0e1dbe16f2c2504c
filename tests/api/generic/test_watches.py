"""Events of other resources enqueue the related objects, under the generated Role."""

import threading
from contextlib import contextmanager
from typing import Any

import pytest

from actuator import Resource
from actuator.errors import Forbidden, NotFound
from actuator.v1alpha1 import BackupBucket, BackupEntry, Infrastructure
from generic.controller.mappers import by_label, by_secret_reference
from generic.controller.predicates import (
    all_of,
    any_of,
    for_event_types,
    has_namespace,
    is_deleting,
    negate,
)
from generic.controller.watch import owns, watches
from generic.kube.headers import EventType, Request
from generic.kube.problems import ABSENT
from generic.library.healthchecks import Check, HealthChecks, HealthResult
from generic.manager.manager import Manager
from generic.manager.options import Options
from tests.support.cluster.harness import (
    INFRASTRUCTURES,
    OPERATION,
    PATIENCE,
    Script,
    connected,
    eventually,
)
from tests.support.objects.builders import cluster, infrastructure
from tests.support.objects.predicates import has_name

CONFIG_MAPS = Resource("v1", "configmaps")
SECRETS = Resource("v1", "secrets")
LEASES = Resource("coordination.k8s.io/v1", "leases")
NAMESPACES = Resource("v1", "namespaces", namespaced=False)


@pytest.fixture
def managed(environment, admin, namespace):
    """Starts a manager with the parts that `add` adds; it has the rights of its Role alone."""

    @contextmanager
    def running(add, **options):
        base: dict[str, Any] = {
            "metrics_bind_address": "0",
            "health_bind_address": "0",
            "shutdown_timeout": 5.0,
        }
        manager = Manager(Options(**(base | options)))
        add(manager)
        with connected(environment, admin, manager, namespace):
            manager.start()
            eventually(lambda: is_ready(manager))
            yield manager

    return running


def is_ready(manager):
    """Whether nothing keeps it from being ready; the failure has the reason."""
    assert {check() for check in manager.check_ready().values()} == {None}
    return True


@pytest.fixture
def quiet(seed):
    """An object that was reconciled once, and to which nothing happens any more."""

    def make(script, name="infra", type=""):
        seed.create(infrastructure(seed.namespace, type or seed.namespace, name))
        eventually(lambda: seed.is_ready(name))
        return len(script.operations(name))

    return make


def settles_at(script, count, name="infra"):
    """Whether the object was looked at that often, and no more after a while."""
    eventually(lambda: len(script.operations(name)) >= count)
    threading.Event().wait(0.5)
    assert len(script.operations(name)) == count


def config_map(namespace, name="child", **meta):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, **meta},
    }


def owned_by(obj):
    owner = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "controller": True}
    meta = obj["metadata"]
    return {"ownerReferences": [owner | {"name": meta["name"], "uid": meta["uid"]}]}


def secret(namespace, name="cloudprovider"):
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"key": "c2VjcmV0"}}


def test_a_childs_life_reaches_its_owner(managed, seed, script, quiet, admin):
    watch = owns(CONFIG_MAPS)
    with managed(lambda m: m.add(script, type=seed.namespace, watches=[watch])):
        before = quiet(script)
        admin.create(CONFIG_MAPS, config_map(seed.namespace, **owned_by(seed.get())))
        settles_at(script, before + 1)
        admin.patch(CONFIG_MAPS, "child", seed.namespace, {"data": {"a": "b"}})
        settles_at(script, before + 2)
        admin.delete(CONFIG_MAPS, "child", seed.namespace)
        settles_at(script, before + 3)
        admin.create(CONFIG_MAPS, config_map(seed.namespace, "nobodys"))
        settles_at(script, before + 3)


def test_a_childs_life_reaches_an_owner_that_does_not_control_it(
    managed, seed, script, quiet, admin
):
    watch = owns(CONFIG_MAPS, controller_only=False)
    with managed(lambda m: m.add(script, type=seed.namespace, watches=[watch])):
        before = quiet(script)
        [reference] = owned_by(seed.get())["ownerReferences"]
        shared = {"ownerReferences": [reference | {"controller": False}]}
        admin.create(CONFIG_MAPS, config_map(seed.namespace, **shared))
        settles_at(script, before + 1)
        admin.delete(CONFIG_MAPS, "child", seed.namespace)
        settles_at(script, before + 2)


def test_a_mapped_event_reaches_only_objects_that_are_served(managed, seed, script, quiet, admin):
    other = Script()
    others = f"{seed.namespace}-other"
    watch = watches(CONFIG_MAPS, by_label("about"))

    def add(manager):
        manager.add(script, type=seed.namespace, watches=[watch], predicates=[has_name("infra")])
        manager.add(other, type=others)

    with managed(add):
        before = quiet(script)
        quiet(other, "others", others)
        seed.create(infrastructure(seed.namespace, seed.namespace, "unwanted"))
        for name in ("infra", "others", "unwanted"):
            child = config_map(seed.namespace, name, labels={"about": name})
            admin.create(CONFIG_MAPS, child)
        settles_at(script, before + 1)
        assert other.operations("others") == ["reconcile"]
        assert not script.operations("unwanted")


def test_watches_receive_deletions_performed_by_the_same_manager(managed, seed, script, quiet):
    """Our own writes do not trigger their own controller; watching controllers receive them."""
    watcher = Script()
    others = f"{seed.namespace}-watcher"
    ours = all_of(has_namespace(seed.namespace), has_name("infra"))
    ends = all_of(for_event_types(EventType.DELETED), ours)
    about = Request(seed.namespace, "watcher")
    watch = watches(INFRASTRUCTURES, lambda event, target: [about], predicates=[ends])

    def add(manager):
        manager.add(script, type=seed.namespace)
        manager.add(watcher, type=others, watches=[watch])

    with managed(add):
        before = quiet(watcher, "watcher", others)
        quiet(script)
        seed.delete()
        settles_at(watcher, before + 1, "watcher")
        assert seed.is_gone()


def test_events_that_a_combination_of_predicates_passes(managed, seed, script, quiet, admin):
    here = has_namespace(seed.namespace)
    wanted = any_of(has_name("a"), is_deleting)
    watch = watches(CONFIG_MAPS, by_label("about"), predicates=[here, negate(negate(wanted))])
    with managed(lambda m: m.add(script, type=seed.namespace, watches=[watch])):
        before = quiet(script)
        for name in ("a", "b"):
            meta = {"labels": {"about": "infra"}, "finalizers": ["example.org/hold"]}
            admin.create(CONFIG_MAPS, config_map(seed.namespace, name, **meta))
        settles_at(script, before + 1)
        admin.delete(CONFIG_MAPS, "b", seed.namespace)
        settles_at(script, before + 2)
        for name in ("a", "b"):
            admin.patch(CONFIG_MAPS, name, seed.namespace, {"metadata": {"finalizers": None}})


@pytest.mark.parametrize("ignore", [True, False])
def test_a_changed_cluster_is_news_where_the_annotation_is_ignored(
    managed, seed, script, quiet, ignore
):
    def add(manager):
        manager.add(script, type=seed.namespace)

    with managed(add, ignore_operation_annotation=ignore):
        before = quiet(script)
        seed.update_cluster(cluster(seed.namespace, seed={"changed": True}))
        settles_at(script, before + ignore)


def test_of_a_secret_nothing_but_metadata_is_kept(managed, seed, script, quiet, admin):
    watch = watches(SECRETS, by_secret_reference)
    with managed(lambda m: m.add(script, type=seed.namespace, watches=[watch])) as manager:
        before = quiet(script)
        admin.create(SECRETS, secret(seed.namespace))
        settles_at(script, before + 1)
        admin.patch(SECRETS, "cloudprovider", seed.namespace, {"data": {"key": "bmV3"}})
        settles_at(script, before + 2)
        admin.create(SECRETS, secret(seed.namespace, "unrelated"))
        settles_at(script, before + 2)
        (informer,) = (i for i in manager._running.wiring.informers if i.name == "secrets")
        store = informer._store
        assert {store.get(request).raw for request, _ in store.headers()} == {b""}
    listed = admin.metadata_only().list(SECRETS, seed.namespace)
    assert len(listed) == 2
    assert not any("data" in item for item in listed)


def backup(cls, name, namespace):
    """A BackupBucket or BackupEntry of the type that is served, with its Secret."""
    spec = {"type": namespace, "region": "eu-1", "bucketName": "bucket"}
    if cls is BackupBucket:
        del spec["bucketName"]
    spec["secretRef"] = {"name": "cloudprovider", "namespace": namespace}
    kind = cls.KIND
    meta = {"name": name}
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": meta, "spec": spec}


@pytest.fixture
def backed_up(seed, admin, managed):
    """An object that is reconciled whenever its spec changes, or only when asked to be."""

    @contextmanager
    def running(cls, script, **options):
        there = seed.of(cls, f"{seed.namespace}--1234")
        admin.create(SECRETS, secret(seed.namespace))
        with managed(lambda m: m.add(script, type=seed.namespace), **options):
            there.create(backup(cls, there.name, seed.namespace))
            eventually(there.is_ready)
            yield there
            there.delete()
            eventually(there.is_gone)

    return running


@pytest.mark.parametrize("cls", [BackupBucket, BackupEntry], ids=lambda cls: cls.KIND.name)
def test_with_the_annotation_ignored_spec_secret_and_namespace_are_news(
    backed_up, seed, admin, cls
):
    script = Script(cls)
    with backed_up(cls, script, ignore_operation_annotation=True) as there:
        before = 2  # our finalizer on the Secret is an event about it, too
        settles_at(script, before, there.name)
        there.patch({"spec": {"providerConfig": {"a": "b"}}})
        settles_at(script, before + 1, there.name)
        admin.patch(SECRETS, "cloudprovider", seed.namespace, {"data": {"key": "bmV3"}})
        settles_at(script, before + 2, there.name)
        there.annotate(some="thing")
        settles_at(script, before + 2, there.name)
        uid = {"metadata": {"annotations": {"shoot.gardener.cloud/uid": "1234"}}}
        admin.patch(NAMESPACES, seed.namespace, "", uid)
        settles_at(script, before + 2 + (cls is BackupEntry), there.name)


def test_without_that_a_changed_spec_waits_for_the_annotation(backed_up, seed, admin):
    script = Script(BackupEntry)
    with backed_up(BackupEntry, script) as there:
        there.patch({"spec": {"providerConfig": {"a": "b"}}})
        admin.patch(SECRETS, "cloudprovider", seed.namespace, {"data": {"key": "bmV3"}})
        settles_at(script, 1, there.name)
        assert there.status()["observedGeneration"] < there.get()["metadata"]["generation"]
        there.ask("reconcile")
        eventually(there.is_ready)
        assert there.status()["observedGeneration"] == there.get()["metadata"]["generation"]
        assert OPERATION not in there.get()["metadata"]["annotations"]


def test_actuators_of_one_kind_share_a_stream_and_keep_to_their_types(managed, seed, quiet):
    scripts = {f"{seed.namespace}{end}": Script() for end in ("", "-second", "-third")}

    def add(manager):
        for type, script in scripts.items():
            manager.add(script, type=type)

    with managed(add) as manager:
        names = [informer.name for informer in manager._running.wiring.informers]
        assert sorted(names) == [
            "clusters.extensions.gardener.cloud",
            "infrastructures.extensions.gardener.cloud",
        ]
        for type, script in scripts.items():
            quiet(script, f"infra-{type}", type)
            seed.patch({"spec": {"region": "eu-2"}}, f"infra-{type}")
            seed.ask("reconcile", f"infra-{type}")
            eventually(lambda name=f"infra-{type}": seed.is_ready(name))
    for type, script in scripts.items():
        assert {name for _, name in script.calls} == {f"infra-{type}"}


def test_an_actuators_own_finalizer_takes_the_place_of_its_kinds(managed, seed, quiet):
    script = Script()
    script.finalizer = "extensions.gardener.cloud/mine"
    with managed(lambda m: m.add(script, type=seed.namespace)):
        quiet(script)
        assert seed.get()["metadata"]["finalizers"] == ["extensions.gardener.cloud/mine"]
        seed.delete()
        eventually(seed.is_gone)


def test_a_runnable_that_fails_runs_again_with_its_declared_permissions(managed, seed, namespace):
    tries = []
    refused = threading.Event()
    ended = threading.Event()
    allowed = Resource("v1", "configmaps").permission("create")

    def run(client, stop):
        tries.append(1)
        if len(tries) == 1:
            raise SystemExit("a thread must not end by that")
        client.create(CONFIG_MAPS, config_map(namespace, "made"))
        with pytest.raises(Forbidden):
            client.delete(CONFIG_MAPS, "made", namespace)
        refused.set()
        stop.wait(PATIENCE)
        ended.set()

    def add(manager):
        manager.add_runnable("maker", run, permissions=[allowed])

    with managed(add) as manager:
        assert refused.wait(PATIENCE)
        assert seed.client.get(CONFIG_MAPS, "made", namespace)
        assert len(tries) >= 2  # one more where the server did not know the Role yet
        assert manager.check_ready()["runnables"]() is None
    assert ended.wait(PATIENCE)


def test_health_checks_run_beside_an_actuator_and_do_not_trigger_it(managed, seed, script, quiet):
    found = [HealthResult.healthy()]
    checks = HealthChecks(
        cls=Infrastructure,
        types=(seed.namespace,),
        checks=(Check("Healthy", lambda ctx: found[-1]),),
        sync_period=0.2,
    )

    def add(manager):
        manager.add(script, type=seed.namespace)
        manager.add_health_checks(checks)

    def status():
        return [c["status"] for c in seed.status().get("conditions", ()) if c["type"] == "Healthy"]

    with managed(add):
        before = quiet(script)
        eventually(lambda: status() == ["True"])
        found.append(HealthResult.unhealthy("it hurts"))
        eventually(lambda: status() == ["False"])
        settles_at(script, before)
        seed.delete()
        eventually(seed.is_gone)


def test_the_heartbeat_is_renewed_under_the_role(managed, seed):
    with managed(lambda manager: None, heartbeat_namespace=seed.namespace):
        lease = eventually(lambda: seed.client.list(LEASES, seed.namespace))[0]
        assert lease["spec"]["holderIdentity"] == "gardener-actuator"


def test_a_disabled_controller_does_nothing(managed, seed, script):
    other = f"{seed.namespace}-other"

    def add(manager):
        manager.add(script, type=seed.namespace)
        manager.add(Script(), type=other)
        manager.add_runnable("never", lambda client, stop: script.calls.append(("ran", "")))

    with managed(add, controllers=(f"infrastructure-{other}",)) as manager:
        seed.create(infrastructure(seed.namespace, other, "others"))
        seed.create(infrastructure(seed.namespace, seed.namespace))
        eventually(lambda: seed.is_ready("others"))
        assert manager._running.wiring.controllers[0][0].name == f"infrastructure-{other}"
        assert not script.calls


@pytest.mark.parametrize("controllers", [(), ("infrastructure",)])
def test_a_watched_kind_that_is_not_installed_blocks_nothing_and_is_named(
    managed, seed, script, quiet, controllers
):
    watch = owns(Resource("no.such/v1", "things"))

    def add(manager):
        manager.add(script, type=seed.namespace, watches=[watch])

    with managed(add, controllers=controllers) as manager:
        quiet(script)
        remarks = manager._running.probes.remarks()
        assert remarks == [f"things.no.such: {ABSENT}"]


def test_a_role_without_a_watch_is_not_enough(managed, seed, script):
    """Proves that the other tests here run under no more than their Role."""
    with managed(lambda m: m.add(script, type=seed.namespace)) as manager:
        client = manager._running.wiring._client
        for resource in (CONFIG_MAPS, SECRETS):
            with pytest.raises(Forbidden):
                client.list(resource, seed.namespace)
        with pytest.raises(NotFound):
            seed.get()
