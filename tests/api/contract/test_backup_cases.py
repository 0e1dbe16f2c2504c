"""The Gardener contract: BackupBucket and BackupEntry and their Secret."""

import pytest

from actuator import ActuatorError
from actuator.errors import NotFound
from actuator.interface import Resource
from actuator.v1alpha1 import BackupBucket, BackupEntry
from tests.support.cluster.harness import OPERATION, Script, eventually
from tests.support.objects.contract import manifest, secret

SECRETS = Resource("v1", "secrets")
both = pytest.mark.parametrize("cls", [BackupBucket, BackupEntry], ids=lambda cls: cls.KIND.name)


def finalizers(seed, name="cloudprovider"):
    return seed.client.get(SECRETS, name, seed.namespace)["metadata"].get("finalizers") or []


@pytest.fixture
def backup(of, start, namespace):
    """A seed with an object of the kind, its Secret, and a manager that serves it."""

    def make(cls, script, *, with_secret=True, **options):
        seed = of(cls, f"{namespace}--uid")
        start(script, **options)
        if with_secret:
            seed.client.create(SECRETS, secret(namespace))
        seed.create(manifest(cls, namespace, seed.name))
        return seed

    return make


@both
def test_created_it_guards_its_secret(backup, cls):
    script = Script(cls)
    seed = backup(cls, script)
    eventually(seed.is_ready)
    assert seed.last_operation() == ("Create", "Succeeded")
    assert seed.status()["observedGeneration"] == 1
    assert finalizers(seed) == [cls.KIND.finalizer]


@both
def test_a_missing_secret_is_named_in_the_status(backup, cls):
    """Difference: Go's library leaves lastOperation at Processing and says nothing. Ours
    shows failures before the call of the actuator in the status too."""
    script = Script(cls)
    seed = backup(cls, script, with_secret=False)
    eventually(lambda: seed.last_operation() == ("Create", "Error"))
    error = seed.status()["lastError"]
    assert f"Secret {seed.namespace}/cloudprovider not found" in error["description"]
    assert error["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
    seed.client.create(SECRETS, secret(seed.namespace, "other"))
    seed.patch({"spec": {"secretRef": {"name": "other", "namespace": seed.namespace}}})
    eventually(lambda: seed.is_ready() and seed.status()["observedGeneration"] == 2)
    assert seed.last_operation() == ("Create", "Succeeded")
    assert len(script.operations(seed.name)) == 1


@both
def test_a_fault_that_clears_is_overcome_by_backoff(backup, cls):
    broken: list[bool] = []

    def reconcile(ctx, obj, cluster):
        if broken:
            raise ActuatorError("broken")

    seed = backup(cls, Script(cls, reconcile=reconcile))
    eventually(seed.is_ready)
    broken.append(True)
    seed.ask("reconcile")
    eventually(lambda: seed.last_operation() == ("Reconcile", "Error"))
    broken.clear()
    eventually(seed.is_ready)


@both
def test_a_failed_deletion_is_reported_and_then_releases_the_secret(backup, cls):
    failing = [ActuatorError("no")]
    seen = []

    def delete(ctx, obj, cluster):
        seen.append(seed.last_operation())
        if failing:
            raise failing.pop()

    seed = backup(cls, Script(cls, delete=delete))
    eventually(seed.is_ready)
    seed.delete()
    eventually(seed.is_gone)
    assert seen[1] == ("Delete", "Error")
    assert finalizers(seed) == []


@both
def test_a_secret_that_changes_during_the_deletion_does_not_stop_it(backup, cls):
    def delete(ctx, obj, cluster):
        patch = {"metadata": {"labels": {"changed": "yes"}}}
        seed.client.patch(SECRETS, "cloudprovider", seed.namespace, patch)

    seed = backup(cls, Script(cls, delete=delete))
    eventually(seed.is_ready)
    seed.delete()
    eventually(seed.is_gone)
    assert finalizers(seed) == []


def test_a_restore_that_fails_recovers(backup, namespace):
    failing = [ActuatorError("no")]
    seen = []

    def restore(ctx, obj, cluster):
        seen.append(seed.last_operation())
        if failing:
            raise failing.pop()

    seed = backup(BackupEntry, Script(BackupEntry, restore=restore))
    eventually(seed.is_ready)
    seed.ask("restore")
    eventually(lambda: OPERATION not in seed.get()["metadata"]["annotations"])
    eventually(seed.is_ready)
    assert seed.last_operation() == ("Restore", "Succeeded")
    assert seen[1] == ("Restore", "Error")


def test_a_migration_removes_our_finalizers_and_no_others(backup):
    """Difference: Go's library wipes all finalizers of the object."""
    failing = [ActuatorError("no")]
    seen = []

    def migrate(ctx, obj, cluster):
        seen.append(seed.last_operation())
        if failing:
            raise failing.pop()

    seed = backup(BackupEntry, Script(BackupEntry, migrate=migrate))
    eventually(seed.is_ready)
    ours = BackupEntry.KIND.finalizer
    seed.patch({"metadata": {"finalizers": ["example.org/foreign", ours]}})
    seed.ask("migrate")
    eventually(lambda: seed.last_operation() == ("Migrate", "Succeeded"))
    eventually(lambda: seed.get()["metadata"]["finalizers"] == ["example.org/foreign"])
    assert OPERATION not in seed.get()["metadata"]["annotations"]
    assert finalizers(seed) == []
    assert seen[1] == ("Migrate", "Error")
    seed.patch({"metadata": {"finalizers": None}})


def test_an_entry_whose_secret_is_gone_cannot_be_cleaned_up_and_goes(backup):
    script = Script(BackupEntry)
    seed = backup(BackupEntry, script)
    eventually(seed.is_ready)
    seed.client.patch(SECRETS, "cloudprovider", seed.namespace, {"metadata": {"finalizers": None}})
    seed.client.delete(SECRETS, "cloudprovider", seed.namespace)
    seed.delete()
    eventually(seed.is_gone)
    assert script.operations(seed.name) == ["reconcile"]
    [event] = [e for e in seed.events("CleanupSkipped") if e["involvedObject"]["name"] == seed.name]
    assert "cloudprovider not found" in event["message"]


def test_a_secret_that_is_asked_to_go_stays_until_its_bucket_is_gone(backup):
    seed = backup(BackupBucket, Script(BackupBucket))
    eventually(seed.is_ready)
    seed.client.delete(SECRETS, "cloudprovider", seed.namespace)
    assert finalizers(seed) == [BackupBucket.KIND.finalizer]
    seed.delete()
    eventually(seed.is_gone)
    with pytest.raises(NotFound):
        seed.client.get(SECRETS, "cloudprovider", seed.namespace)
