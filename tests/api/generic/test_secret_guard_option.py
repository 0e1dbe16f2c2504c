"""guards_secret=True: the Secret stays until the last object that needs it is cleaned up."""

import random
import threading
from contextlib import ExitStack

import pytest

from actuator import ActuatorError, Resource
from actuator.errors import NotFound
from actuator.interface import resource_of
from actuator.v1alpha1 import BackupBucket, Bastion, DNSRecord, Infrastructure
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.reconciler.behaviours import with_behaviour
from generic.reconciler.behaviours.secret_guard import GuardsSecret
from tests.support.cluster.harness import PATIENCE, Script, cluster_rules, connected, eventually
from tests.support.objects.builders import cluster

SECRETS = Resource("v1", "secrets")
NAMESPACES = Resource("v1", "namespaces", namespaced=False)
RECORDS = [f"record-{number}" for number in range(4)]
GUARD = DNSRecord.KIND.finalizer


def secret(namespace, name="cloudprovider"):
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"key": "eA=="}}


def manifest(cls, namespace, name, secret_name="cloudprovider"):
    spec = {"type": namespace, "region": "eu-1"}
    spec["secretRef"] = {"name": secret_name, "namespace": namespace}
    if cls is DNSRecord:
        spec |= {"name": f"{name}.example.org", "recordType": "A", "values": ["192.0.2.1"]}
    return {
        "apiVersion": cls.KIND.api_version,
        "kind": cls.KIND.name,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def needs_secret(deleted):
    """A deletion that reads the Secret itself; a remembered Secret does not help it."""

    def delete(ctx, obj, cluster):
        ctx.client.get(SECRETS, "cloudprovider", obj.metadata.namespace)
        deleted.append((obj.KIND.name, obj.metadata.name))

    return delete


@pytest.fixture
def deleted():
    return []


@pytest.fixture
def serve(environment, admin, namespace, managers):
    """Starts a manager that guards the Secrets of these actuators' objects, under its Role."""
    stack = ExitStack()

    def start(*actuators, guards_secret=True):
        options = Options(
            metrics_bind_address="0",
            health_bind_address="0",
            shutdown_timeout=5.0,
            leader_election=False,
        )
        manager = Manager(options)
        for actuator in actuators:
            manager.add(actuator, type=namespace, guards_secret=guards_secret)
        stack.enter_context(connected(environment, admin, manager, namespace))
        manager.start()
        managers.append(manager)  # the seed waits for it where it has to know a Cluster
        assert manager.wait_synced(PATIENCE)
        return manager

    with stack:
        yield start


@pytest.fixture
def records(seed, namespace):
    """A shoot namespace with a Secret that several DNSRecords need."""
    seed.client.create(SECRETS, secret(namespace))
    return seed.of(DNSRecord, RECORDS[0])


def create(records):
    for name in RECORDS:
        records.create(manifest(DNSRecord, records.namespace, name))
    eventually(lambda: all(records.is_ready(name) for name in RECORDS))


def guards(seed, name="cloudprovider"):
    try:
        return seed.client.get(SECRETS, name, seed.namespace)["metadata"].get("finalizers") or []
    except NotFound:
        return None


def test_the_guard_is_on_the_secret_before_the_first_reconcile(serve, records):
    seen = []
    serve(Script(DNSRecord, reconcile=lambda ctx, obj, cluster: seen.append(guards(records))))
    create(records)
    assert seen == [[GUARD]] * len(RECORDS)


def test_the_guard_is_removed_with_the_last_object_that_needs_the_secret(serve, records, deleted):
    serve(Script(DNSRecord, delete=needs_secret(deleted)))
    create(records)
    records.client.create(SECRETS, secret(records.namespace, "other"))
    records.create(manifest(DNSRecord, records.namespace, "elsewhere", "other"))
    eventually(lambda: records.is_ready("elsewhere"))
    for number, name in enumerate(RECORDS, 1):
        assert guards(records) == [GUARD]
        records.delete(name)
        eventually(lambda name=name: records.is_gone(name))
        assert len(deleted) == number
    assert guards(records) == []
    assert guards(records, "other") == [GUARD]


def test_the_last_of_objects_deleted_simultaneously_removes_the_guard(serve, records):
    together = threading.Barrier(len(RECORDS))
    serve(Script(DNSRecord, delete=lambda ctx, obj, cluster: together.wait(PATIENCE)))
    create(records)
    for name in RECORDS:
        records.delete(name)
    eventually(lambda: all(records.is_gone(name) for name in RECORDS))
    assert guards(records) == []


def test_kinds_guard_side_by_side(serve, records, deleted):
    network = records.of(Infrastructure, "infra")
    delete = needs_secret(deleted)
    serve(Script(DNSRecord, delete=delete), Script(Infrastructure, delete=delete))
    create(records)
    network.create(manifest(Infrastructure, records.namespace, "infra"))
    eventually(network.is_ready)
    assert sorted(guards(records)) == sorted([GUARD, Infrastructure.KIND.finalizer])
    network.delete()
    eventually(network.is_gone)
    assert guards(records) == [GUARD]


@pytest.mark.parametrize("random_seed", range(3))
def test_a_namespace_can_be_deleted_in_whatever_order(serve, records, deleted, random_seed):
    """The children go in a random order, the Secret first, and the namespace with them."""
    network = records.of(Infrastructure, "infra")
    slow = threading.Event()

    def delete(ctx, obj, cluster):
        slow.wait(0.2)
        needs_secret(deleted)(ctx, obj, cluster)

    serve(Script(DNSRecord, delete=delete), Script(Infrastructure, delete=delete))
    create(records)
    network.create(manifest(Infrastructure, records.namespace, "infra"))
    eventually(network.is_ready)
    children = [(resource_of(DNSRecord.KIND), name) for name in RECORDS]
    children.append((network.resource, "infra"))
    random.Random(random_seed).shuffle(children)
    records.client.delete(SECRETS, "cloudprovider", records.namespace)
    records.client.delete(NAMESPACES, records.namespace)
    for resource, name in children:
        try:
            records.client.delete(resource, name, records.namespace)
        except NotFound:
            pass  # its namespace's deletion was faster
    eventually(lambda: _is_gone(records.client, records.namespace), 2 * PATIENCE)
    assert sorted({name for _, name in deleted}) == sorted(["infra", *RECORDS])


def _is_gone(client, namespace):
    try:
        client.get(NAMESPACES, namespace)
    except NotFound:
        return True
    return False


def test_a_force_deletion_lets_the_secret_go_although_it_fails(serve, records):
    seen = []

    def fail(ctx, obj, cluster):
        seen.append(guards(records))
        if len(seen) < 3:
            raise ActuatorError("no")

    serve(Script(DNSRecord, force_delete=fail))
    records.create(manifest(DNSRecord, records.namespace, RECORDS[0]))
    eventually(records.is_ready)
    records.update_cluster(cluster(records.namespace, force="true"))
    records.delete()
    eventually(records.is_gone)
    assert seen == [[]] * 3


def test_after_a_migration_the_secret_is_free(serve, records):
    serve(Script(DNSRecord))
    records.create(manifest(DNSRecord, records.namespace, RECORDS[0]))
    eventually(records.is_ready)
    records.ask("migrate")
    eventually(lambda: records.last_operation() == ("Migrate", "Succeeded"))
    eventually(lambda: guards(records) == [])
    records.delete()


def point(records, name, secret_name):
    """Let a DNSRecord refer to another Secret, as gardenlet does."""
    spec = {"secretRef": {"name": secret_name, "namespace": records.namespace}}
    asked = {"gardener.cloud/operation": "reconcile"}
    records.patch({"metadata": {"annotations": asked}, "spec": spec}, name)


def test_a_secret_is_free_when_no_object_refers_to_it_any_more(serve, records):
    """With several objects, of which each changes its reference, to a guarded Secret too."""
    serve(Script(DNSRecord))
    records.client.create(SECRETS, secret(records.namespace, "other"))
    create(records)
    for number, name in enumerate(RECORDS, 1):
        point(records, name, "other")
        wanted = [] if number == len(RECORDS) else [GUARD]
        eventually(lambda: guards(records, "other") == [GUARD])
        eventually(lambda wanted=wanted: guards(records) == wanted)


def left_guarded(records, *names):
    """Secrets that a former process guarded, and that no object refers to."""
    for name in names:
        manifest = secret(records.namespace, name)
        manifest["metadata"]["finalizers"] = [GUARD, "example.org/other"]
        records.client.create(SECRETS, manifest)


def test_a_former_secret_is_free_after_a_deletion_without_its_successor(serve, records):
    """The new Secret does not exist, so that no reconcile succeeds any more."""
    left_guarded(records, "left")
    serve(Script(DNSRecord))
    eventually(lambda: guards(records, "left") == ["example.org/other"])  # the start looks no more
    records.create(manifest(DNSRecord, records.namespace, RECORDS[0]))
    eventually(records.is_ready)
    point(records, RECORDS[0], "missing")
    eventually(lambda: "missing not found" in str(records.status().get("lastError")))
    assert guards(records) == [GUARD]
    records.delete()
    eventually(records.is_gone)
    assert guards(records) == []


@pytest.mark.parametrize("guards_secret", [True, False])
def test_a_start_frees_secrets_that_no_object_refers_to(serve, records, guards_secret):
    left_guarded(records, "left", "another")
    serve(Script(DNSRecord), guards_secret=guards_secret)
    for name in ("left", "another"):
        eventually(lambda name=name: guards(records, name) == ["example.org/other"])


def test_a_kind_that_is_guarded_anyway_frees_a_former_secret(serve, seed, namespace):
    for name in ("cloudprovider", "other"):
        seed.client.create(SECRETS, secret(namespace, name))
    bucket = seed.of(BackupBucket, namespace)
    guard = BackupBucket.KIND.finalizer
    serve(Script(BackupBucket))
    wanted = manifest(BackupBucket, namespace, namespace)
    bucket.create({**wanted, "metadata": {"name": namespace}})
    eventually(bucket.is_ready)
    assert guards(seed) == [guard]
    reference = {"secretRef": {"name": "other", "namespace": namespace}}
    asked = {"gardener.cloud/operation": "reconcile"}
    bucket.patch({"metadata": {"annotations": asked}, "spec": reference})
    eventually(lambda: guards(seed, "other") == [guard])
    eventually(lambda: guards(seed) == [])
    bucket.delete()
    eventually(bucket.is_gone)
    assert guards(seed, "other") == []


def test_a_start_keeps_the_guard_of_objects_that_another_actuator_serves(serve, records):
    left_guarded(records, "theirs", "left")
    other = manifest(DNSRecord, records.namespace, "theirs", "theirs")
    other["spec"]["type"] = "another"
    other["metadata"]["finalizers"] = [GUARD]
    records.create(other)
    serve(Script(DNSRecord), guards_secret=False)
    eventually(lambda: guards(records, "left") == ["example.org/other"])
    assert guards(records, "theirs") == [GUARD, "example.org/other"]
    records.patch({"metadata": {"finalizers": None}}, "theirs")
    records.client.delete(records.resource, "theirs", records.namespace)


def test_a_namespace_ends_after_the_option_was_switched_off(serve, records):
    """The next version serves the same objects, and releases no Secret when they are deleted."""
    first = serve(Script(DNSRecord))
    create(records)
    assert guards(records) == [GUARD]
    first.stop()
    serve(Script(DNSRecord), guards_secret=False)
    eventually(lambda: guards(records) == [])
    records.client.delete(NAMESPACES, records.namespace)
    eventually(lambda: _is_gone(records.client, records.namespace), 2 * PATIENCE)


def test_a_missing_secret_is_named(serve, records):
    serve(Script(DNSRecord))
    records.create(manifest(DNSRecord, records.namespace, RECORDS[0], "missing"))
    eventually(lambda: records.last_operation() == ("Create", "Error"))
    error = records.status()["lastError"]
    assert f"Secret {records.namespace}/missing not found" in error["description"]
    records.client.create(SECRETS, secret(records.namespace, "missing"))
    eventually(records.is_ready)


@pytest.mark.parametrize("guards_secret", [True, False])
def test_the_role_allows_it_and_nothing_beyond(guards_secret):
    plain = Manager()
    guarded = Manager()
    plain.add(Script(), type="t")
    guarded.add(Script(), type="t", guards_secret=guards_secret)
    more = [rule for rule in cluster_rules(guarded) if rule not in cluster_rules(plain)]
    allowed = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "patch"]}
    assert more == [allowed]


def test_a_kind_without_a_secret_reference_is_refused():
    with pytest.raises(ValueError, match=r"Bastion has no spec\.secretRef"):
        Manager().add(Script(Bastion), type="t", guards_secret=True)


def test_a_kind_that_is_guarded_anyway_is_guarded_once():
    wrapped = with_behaviour(Script(BackupBucket), guards_secret=True)
    assert isinstance(wrapped, GuardsSecret)
    assert not isinstance(wrapped.inner, GuardsSecret)
