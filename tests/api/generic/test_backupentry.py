"""GenericBackupEntry through a Manager: etcd's Secret comes, follows and goes."""

import base64

import pytest

from actuator.codec import decode
from actuator.errors import ConfigurationError, NotFound
from actuator.interface import Resource
from actuator.v1alpha1 import BackupEntry
from generic.library.backupentry import (
    CREATED_BY,
    GenericBackupEntry,
    folder_of,
    technical_id_and_uid,
)
from tests.support.cluster.harness import OPERATION, eventually
from tests.support.objects.builders import cluster

SECRETS = Resource("v1", "secrets")
NAMESPACES = Resource("v1", "namespaces", namespaced=False)
FORCE_DELETION = "confirmation.gardener.cloud/force-deletion"
PURPOSE = "security.gardener.cloud/purpose"
REQUESTOR = "workload-identity-token-requestor"
IDENTITY = "workloadidentity.security.gardener.cloud"


class Crash(Exception):
    pass


class Backups(GenericBackupEntry):
    """Etcd gets the given data, under upper-case names."""

    def __init__(self):
        self.deleted = []
        self.crashes = 0

    def etcd_secret_data(self, ctx, entry, data):
        return {key if key == "bucketName" else key.upper(): data[key] for key in data}

    def delete_entry(self, ctx, entry):
        if self.crashes:
            self.crashes -= 1
            raise Crash
        self.deleted.append(entry.metadata.name)


class Identities(Backups):
    def etcd_secret_data(self, ctx, entry, data):
        return data


def encoded(**data):
    return {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}


def secret(namespace, name, **more):
    meta = {"name": name, "namespace": namespace, **more.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, **more}


@pytest.fixture
def entry(admin, seed, namespace):
    """The BackupEntry of the shoot whose namespace this is; the credentials are in there too."""
    looking_at = seed.of(BackupEntry, f"{namespace}--uid")
    admin.create(SECRETS, secret(namespace, "credentials", data=encoded(key="one")))
    yield looking_at
    for name in (f"{namespace}--uid", f"source-{namespace}--uid", f"{namespace}-gone--uid"):
        try:
            looking_at.patch({"metadata": {"finalizers": None}}, name)
            looking_at.delete(name)
        except NotFound:
            continue


def create(entry, name="", bucket="bucket", *, ready=True, **meta):
    spec = {"type": entry.namespace, "region": "eu-1", "bucketName": bucket}
    spec["secretRef"] = {"name": "credentials", "namespace": entry.namespace}
    meta["name"] = name or entry.name
    kind = BackupEntry.KIND
    manifest = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": meta, "spec": spec}
    entry.create(manifest)
    if ready:
        eventually(lambda: entry.is_ready(name))


def etcds(entry, name="etcd-backup"):
    return entry.client.get(SECRETS, name, entry.namespace)


def reconcile(entry):
    entry.ask("reconcile")
    eventually(entry.is_ready)


def change(entry, name, patch):
    return entry.client.patch(SECRETS, name, entry.namespace, patch)


def test_etcds_secret_is_created_and_follows_the_credentials(entry, start):
    start(Backups())
    create(entry)
    found = etcds(entry)
    assert found["data"] == encoded(KEY="one", bucketName="bucket")
    assert found["metadata"]["annotations"] == {CREATED_BY: entry.name}
    change(entry, "credentials", {"data": encoded(key="two")})
    reconcile(entry)
    assert etcds(entry)["data"] == encoded(KEY="two", bucketName="bucket")


def test_an_up_to_date_secret_is_not_written(entry, start):
    start(Backups())
    create(entry)
    before = etcds(entry)["metadata"]["resourceVersion"]
    reconcile(entry)
    assert etcds(entry)["metadata"]["resourceVersion"] == before


def test_metadata_of_others_and_data_of_others_are_stripped(entry, start):
    foreign = {"labels": {"foreign": "yes"}, "annotations": {"foreign": "yes"}}
    manifest = secret(entry.namespace, "etcd-backup", metadata=foreign, data=encoded(old="x"))
    entry.client.create(SECRETS, manifest)
    start(Backups())
    create(entry)
    found = etcds(entry)
    assert found["metadata"].get("labels", {}) == {}
    assert found["metadata"]["annotations"] == {CREATED_BY: entry.name}
    assert found["data"] == encoded(KEY="one", bucketName="bucket")


def test_without_the_shoots_namespace_nothing_is_written(entry, start):
    start(Backups())
    create(entry, f"{entry.namespace}-gone--uid")
    names = {obj["metadata"]["name"] for obj in entry.client.list(SECRETS, entry.namespace)}
    assert names == {"credentials"}
    with pytest.raises(NotFound):
        entry.client.get(NAMESPACES, f"{entry.namespace}-gone")


def test_in_a_namespace_that_goes_nothing_is_written(entry, start):
    going = f"{entry.namespace}-gone"
    meta = {"name": going}
    entry.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    held = secret(going, "held", metadata={"finalizers": ["example.org/held"]})
    entry.client.create(SECRETS, held)
    entry.client.delete(NAMESPACES, going)
    start(Backups())
    create(entry, f"{going}--uid")
    with pytest.raises(NotFound):
        entry.client.get(SECRETS, "etcd-backup", going)
    entry.client.patch(SECRETS, "held", going, {"metadata": {"finalizers": None}})


def test_the_labels_of_a_workload_identity_are_kept_with_its_token(entry, start):
    annotations = {f"{IDENTITY}/{part}": part for part in ("name", "namespace", "context-object")}
    labels = {PURPOSE: REQUESTOR, f"{IDENTITY}/provider": "aws"}
    given = {"labels": labels | {"x": "y"}, "annotations": annotations | {"x": "y"}}
    data = encoded(config="c", token="not this one")
    change(entry, "credentials", {"metadata": given, "data": {"key": None, **data}})
    start(Identities())
    create(entry)
    found = etcds(entry)
    assert found["metadata"]["labels"] == labels
    assert found["metadata"]["annotations"] == annotations | {CREATED_BY: entry.name}
    assert found["data"] == encoded(config="c", bucketName="bucket")
    change(entry, "etcd-backup", {"data": encoded(token="requested")})
    change(entry, "credentials", {"data": encoded(config="d")})
    reconcile(entry)
    assert etcds(entry)["data"] == encoded(config="d", bucketName="bucket", token="requested")


@pytest.mark.parametrize("part", ["name", "namespace", "provider"])
def test_a_workload_identity_that_no_requestor_can_find_is_refused(entry, start, part):
    """gardener, backupentry/genericactuator: "BackupEntry is set to use workload identity but"."""
    parts = {"name", "namespace", "provider"} - {part}
    keys = {f"{IDENTITY}/{part}" for part in parts}
    labels = {PURPOSE: REQUESTOR} | {key: "x" for key in keys if key.endswith("provider")}
    meta = {"labels": labels, "annotations": dict.fromkeys(keys, "x")}
    change(entry, "credentials", {"metadata": meta, "data": encoded(config="c")})
    start(Identities())
    create(entry, ready=False)
    error = eventually(lambda: entry.status().get("lastError"))
    assert (
        f"spec.secretRef: the Secret of a workload identity has no {IDENTITY}/{part}"
        in (error["description"])
    )
    assert error["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
    with pytest.raises(NotFound):
        etcds(entry)


def test_the_time_of_a_requested_token_stays_and_other_credentials_are_not_copied(entry, start):
    """gardener, backupentry/genericactuator: only `config` is copied, and without the time the
    token requestor requests another token at once."""
    labels = {PURPOSE: REQUESTOR, f"{IDENTITY}/provider": "aws"}
    annotations = {f"{IDENTITY}/{part}": part for part in ("name", "namespace")}
    meta = {"labels": labels, "annotations": annotations}
    change(entry, "credentials", {"metadata": meta, "data": encoded(config="c", roleARN="x")})
    start(Identities())
    create(entry)
    assert etcds(entry)["data"] == encoded(config="c", bucketName="bucket")
    time = {f"{IDENTITY}/token-renew-timestamp": "2026-01-01T00:00:00Z"}
    change(entry, "etcd-backup", {"metadata": {"annotations": time | {"x": "y"}}})
    reconcile(entry)
    assert etcds(entry)["metadata"]["annotations"] == {
        **annotations,
        **time,
        CREATED_BY: entry.name,
    }


def test_a_deletion_takes_the_secret_and_the_backups(entry, start):
    actuator = start_and_create(entry, start)
    entry.delete()
    eventually(entry.is_gone)
    with pytest.raises(NotFound):
        etcds(entry)
    assert actuator.deleted == [entry.name]


@pytest.mark.parametrize("creator", ["another", ""])
def test_a_secret_that_another_entry_made_survives_the_deletion(entry, start, creator):
    actuator = start_and_create(entry, start)
    other = {"metadata": {"annotations": {CREATED_BY: creator}}}
    change(entry, "etcd-backup", other)
    entry.delete()
    eventually(entry.is_gone)
    assert etcds(entry)["metadata"]["annotations"] == {CREATED_BY: creator}
    assert actuator.deleted == [entry.name]


def test_a_secret_without_creator_goes_with_the_entry(entry, start):
    start_and_create(entry, start)
    change(entry, "etcd-backup", {"metadata": {"annotations": {CREATED_BY: None}}})
    entry.delete()
    eventually(entry.is_gone)
    with pytest.raises(NotFound):
        etcds(entry)


def test_the_source_of_a_migration_has_a_secret_of_its_own(entry, start):
    start_and_create(entry, start)
    source = f"source-{entry.namespace}--uid"
    create(entry, source)
    assert etcds(entry, "source-etcd-backup")["metadata"]["annotations"] == {CREATED_BY: source}
    entry.delete(source)
    eventually(lambda: entry.is_gone(source))
    assert etcds(entry)


@pytest.mark.parametrize("bucket", ["bucket", "another"])
def test_the_source_of_a_migration_keeps_the_backups_that_the_shoot_still_has(entry, start, bucket):
    """gardener, `IsCopyOfBackupsRequired`: with one bucket for both, "data loss will occur"."""
    actuator = start_and_create(entry, start)
    source = f"source-{entry.name}"
    create(entry, source, bucket)
    entry.delete(source)
    eventually(lambda: entry.is_gone(source))
    assert actuator.deleted == ([source] if bucket == "another" else [])
    kept = [
        event for event in entry.events("BackupsKept") if event["involvedObject"]["name"] == source
    ]
    assert [f"BackupEntry {entry.name} has the folder" in item["message"] for item in kept] == (
        [] if bucket == "another" else [True]
    )
    entry.delete()
    eventually(entry.is_gone)
    assert actuator.deleted[-1] == entry.name


@pytest.mark.parametrize("state", [{"failed": True}, {"force": "true"}, {"hibernated": True}])
def test_an_entry_outlives_its_shoot_in_every_state(entry, start, state):
    """A BackupEntry has no Cluster: it is neither skipped nor force-deleted because of one."""
    manifest = cluster(entry.namespace, **{key: state[key] for key in state if key != "hibernated"})
    manifest["spec"]["shoot"]["spec"]["hibernation"] = {"enabled": "hibernated" in state}
    entry.update_cluster(manifest)
    actuator = start_and_create(entry, start)
    entry.annotate(**{FORCE_DELETION: "true"})
    reconcile(entry)
    entry.delete_cluster()
    reconcile(entry)
    entry.delete()
    eventually(entry.is_gone)
    assert actuator.deleted == [entry.name]


def test_the_deletion_after_a_migration_leaves_secret_and_backups(entry, start):
    actuator = start_and_create(entry, start)
    entry.ask("migrate")
    eventually(lambda: entry.last_operation() == ("Migrate", "Succeeded"))
    entry.delete()
    eventually(entry.is_gone)
    assert etcds(entry)
    assert actuator.deleted == []


def test_a_restored_entry_writes_the_secret_on_the_destination(entry, start):
    start(Backups())
    create(entry, ready=False, annotations={OPERATION: "wait-for-state"})
    entry.ask("restore")
    eventually(lambda: entry.last_operation() == ("Restore", "Succeeded"))
    assert etcds(entry)["data"] == encoded(KEY="one", bucketName="bucket")


def test_a_deletion_that_crashes_is_finished_by_the_next(entry, start):
    actuator = start_and_create(entry, start)
    actuator.crashes = 2
    entry.delete()
    eventually(entry.is_gone)
    assert actuator.deleted == [entry.name]


def start_and_create(entry, start):
    actuator = Backups()
    start(actuator)
    create(entry)
    return actuator


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("shoot--project--name--uid", ("shoot--project--name", "uid")),
        ("shoot-project-name--uid", ("shoot-project-name", "uid")),
        ("source-shoot--project--name--uid", ("shoot--project--name", "uid")),
        ("shoot--source-x--name--a-b-c", ("shoot--source-x--name", "a-b-c")),
        ("garden--a-b-c", ("garden", "a-b-c")),  # gardener-operator, of the garden itself
        ("kube-system--a-b-c", ("kube-system", "a-b-c")),  # of a self-hosted shoot
    ],
)
def test_a_name_says_technical_id_and_uid(name, expected):
    assert technical_id_and_uid(name) == expected


@pytest.mark.parametrize("prefix", ["", "source-"])
@pytest.mark.parametrize("name", ["shoot--project--name--uid", "shoot--source-x--name--uid"])
def test_the_source_of_a_migration_has_the_folder_of_its_shoot(prefix, name):
    found = decode(BackupEntry, {"metadata": {"name": f"{prefix}{name}"}})
    assert folder_of(found) == name


@pytest.mark.parametrize("name", ["shoot-project-name", "shoot--", "--uid", "source---uid", ""])
def test_a_name_without_a_shoot_is_refused_and_named(name):
    with pytest.raises(ConfigurationError, match=f"BackupEntry {name}: metadata.name does not"):
        technical_id_and_uid(name)


def test_an_entry_with_such_a_name_reports_it_in_its_status_and_can_be_deleted(seed, start):
    entry = seed.of(BackupEntry, f"{seed.namespace}-nothing")
    actuator = Backups()
    start(actuator)
    entry.client.create(SECRETS, secret(entry.namespace, "credentials"))
    create(entry, ready=False)
    error = eventually(lambda: entry.status().get("lastError"))
    assert "metadata.name does not identify a shoot" in error["description"]
    assert error["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
    entry.delete()
    eventually(entry.is_gone)
    assert actuator.deleted == [entry.name]
