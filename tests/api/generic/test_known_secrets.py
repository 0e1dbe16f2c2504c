"""A Secret deleted before the object that needs it: the version read last is used for deletion."""

import base64
import gc
import logging
import time
from datetime import UTC, datetime, timedelta

import pytest

from actuator import ActuatorError, Resource, SecretReference
from actuator.errors import NotFound
from generic.kube.clock import SystemClock, trusted_now
from generic.kube.headers import DELETION_BLOCKED
from generic.reconciler.known_secrets import SharedSecrets
from generic.reconciler.orphans import ORPHANS
from tests.support.cluster.harness import FINALIZER, Script, eventually
from tests.support.objects.builders import cluster, infrastructure
from tests.support.objects.workload_identities import identity_secret, token

SECRETS = Resource("v1", "secrets")
PLANTED = "cGxhbnRlZC12YWx1ZQ=="
NEWER = "bmV3ZXItdmFsdWU="


class Reader(Script):
    """Reads the Secret in every operation, and keeps the values."""

    permissions = (Resource("v1", "secrets").permission("get"),)

    def __init__(self, **on):
        super().__init__(**on)
        self.found = []

    def _run(self, operation, ctx, obj, cluster):
        try:
            secret = ctx.secret(obj.spec.secret_ref.name, obj.metadata.namespace)
        except NotFound as error:
            self.found.append((operation, None))
            raise ActuatorError("no credentials") from error
        self.found.append((operation, secret["data"]["key"]))
        return super()._run(operation, ctx, obj, cluster)


def planted(namespace, value=PLANTED):
    meta = {"name": "cloudprovider", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"key": value}}


@pytest.fixture
def reader(seed, namespace):
    """Its Secret is there."""
    seed.client.create(SECRETS, planted(namespace))
    return Reader()


def known(manager):
    """The Secrets that a manager remembers, by object."""
    (watched,) = manager._running.wiring.routes.ours.values()
    [(_, watchdog)] = watched.controllers
    return [track.secrets for track in watchdog.tracks.all() if track.secrets]


def create(seed):
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)


def drop_secret(seed):
    seed.client.delete(SECRETS, "cloudprovider", seed.namespace)


def blocked(seed):
    conditions = seed.status().get("conditions") or []
    return next((c for c in conditions if c["type"] == DELETION_BLOCKED), None)


def test_a_deletion_goes_on_with_the_secret_that_was_read_last(seed, start, reader):
    start(reader)
    create(seed)
    change = {"data": {"key": NEWER}}
    seed.client.patch(SECRETS, "cloudprovider", seed.namespace, change)
    seed.ask("reconcile")
    eventually(lambda: ("reconcile", NEWER) in reader.found)
    eventually(seed.is_ready)
    drop_secret(seed)
    seed.delete()
    eventually(seed.is_gone)
    assert reader.found[-1] == ("delete", NEWER)


def test_a_missing_secret_has_one_event(seed, start, reader):
    failing = [ActuatorError("no"), ActuatorError("no")]

    def delete(ctx, obj, cluster):
        if failing:
            raise failing.pop()

    reader.on["delete"] = delete
    start(reader)
    create(seed)
    drop_secret(seed)
    seed.delete()
    eventually(seed.is_gone)
    assert len(reader.operations()) == 4
    [event] = seed.events("SecretGone")
    assert event["type"] == "Warning"
    assert f"Secret {seed.namespace}/cloudprovider not found" in event["message"]


def test_a_force_deletion_gets_it_as_well(seed, start, reader):
    start(reader)
    create(seed)
    drop_secret(seed)
    seed.update_cluster(cluster(seed.namespace, force="true"))
    seed.delete()
    eventually(seed.is_gone)
    assert reader.found[-1] == ("force_delete", PLANTED)


def test_a_living_object_gets_an_error_without_its_secret(seed, start, reader):
    start(reader)
    create(seed)
    drop_secret(seed)
    seed.ask("reconcile")
    eventually(lambda: seed.last_operation() == ("Reconcile", "Error"))
    assert reader.found[-1] == ("reconcile", None)
    assert seed.events("SecretGone") == []


def test_after_a_restart_the_deletion_is_blocked_until_the_secret_is_back(seed, start, reader):
    before = start(reader)
    create(seed)
    before.stop()
    drop_secret(seed)
    start(reader)
    seed.delete()
    condition = eventually(lambda: blocked(seed))
    assert (condition["status"], condition["reason"]) == ("True", "SecretMissing")
    assert reader.found[-1] == ("delete", None)
    seed.client.create(SECRETS, planted(seed.namespace))
    eventually(seed.is_gone)
    assert reader.found[-1] == ("delete", PLANTED)


def test_a_secret_read_for_another_object_is_not_used(seed, start, reader):
    start(reader)
    create(seed)
    drop_secret(seed)
    seed.create(infrastructure(seed.namespace, seed.namespace, "late"))
    eventually(lambda: seed.last_operation("late") == ("Create", "Error"))
    seed.delete("late")
    eventually(lambda: ("delete", None) in reader.found)
    assert not seed.is_gone("late")
    seed.client.create(SECRETS, planted(seed.namespace))
    eventually(lambda: seed.is_gone("late"))


def test_a_released_object_is_forgotten_also_while_others_still_hold_it(seed, start, reader):
    manager = start(reader)
    foreign = "example.org/foreign"
    seed.create(infrastructure(seed.namespace, seed.namespace, finalizers=[foreign]))
    eventually(seed.is_ready)
    assert len(known(manager)) == 1
    seed.delete()
    eventually(lambda: seed.get()["metadata"]["finalizers"] == [foreign])
    eventually(lambda: len(known(manager)) == 0)
    seed.patch([{"op": "remove", "path": "/metadata/finalizers"}])


def test_a_migrated_object_is_forgotten(seed, start, reader):
    manager = start(reader)
    create(seed)
    seed.ask("migrate")
    eventually(lambda: FINALIZER not in (seed.get()["metadata"].get("finalizers") or []))
    eventually(lambda: len(known(manager)) == 0)
    seed.delete()


def test_a_deleted_object_is_cleaned_up_with_the_last_secret_and_then_forgotten(
    seed, start, reader
):
    failing = [ActuatorError("no")]

    def delete(ctx, obj, cluster):
        if failing:
            seed.patch([{"op": "remove", "path": "/metadata/finalizers"}])
            raise failing.pop()

    reader.on["delete"] = delete
    manager = start(reader)
    create(seed)
    drop_secret(seed)
    seed.delete()
    eventually(seed.is_gone)
    eventually(lambda: reader.found[1:] == [("delete", PLANTED), ("delete", PLANTED)])
    eventually(lambda: len(known(manager)) == 0)


def test_an_object_deleted_without_our_finalizer_is_forgotten(seed, start, reader):
    manager = start(reader)
    create(seed)
    seed.patch([{"op": "remove", "path": "/metadata/finalizers"}])
    seed.delete()
    eventually(lambda: len(known(manager)) == 0)


def test_a_known_secret_is_in_no_log_event_or_record(seed, start, reader, caplog):
    caplog.set_level(logging.DEBUG)
    failing = [ActuatorError("no")]

    def delete(ctx, obj, cluster):
        if failing:
            raise failing.pop()

    reader.on["delete"] = delete
    manager = start(reader)
    create(seed)
    drop_secret(seed)
    kept = repr(known(manager))
    seed.delete()
    eventually(seed.is_gone)
    assert len(reader.operations()) == 3
    texts = [
        *(record.getMessage() + repr(vars(record)) for record in caplog.records),
        repr(seed.client.list(Resource("v1", "events"), seed.namespace)),
        repr(seed.client.list(ORPHANS)),
        kept,
    ]
    for text in texts:
        assert PLANTED not in text
        assert "planted-value" not in text


def credentials(ctx, obj, cluster=None):
    """Read the credentials of an Infrastructure, without returning them."""
    ref = SecretReference(name="cloudprovider", namespace=obj.metadata.namespace)
    assert ctx.credentials(ref, "key") == "planted-value"


@pytest.mark.parametrize("force", [None, "true"])
def test_credentials_serve_a_deletion_after_their_secret(seed, start, reader, caplog, force):
    caplog.set_level(logging.DEBUG)
    reader.on.update(reconcile=credentials, delete=credentials, force_delete=credentials)
    start(reader)
    create(seed)
    drop_secret(seed)
    if force:
        seed.update_cluster(cluster(seed.namespace, force=force))
    seed.delete()
    eventually(seed.is_gone)
    assert reader.found[-1] == ("force_delete" if force else "delete", PLANTED)
    assert "planted-value" not in repr([vars(record) for record in caplog.records])


WRONG_FORMS = {
    "not UTF-8": b"\xffplanted-value",
    "a newline at its end": b"planted-value\n",
    "no value": b"",
}


@pytest.mark.parametrize("form", WRONG_FORMS)
def test_wrong_credentials_are_reported_with_secret_key_and_code(seed, start, caplog, form):
    caplog.set_level(logging.DEBUG)
    value = base64.b64encode(WRONG_FORMS[form]).decode()
    seed.client.create(SECRETS, planted(seed.namespace, value))
    start(Reader(reconcile=credentials))
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(lambda: seed.last_operation() == ("Create", "Error"))
    error = seed.status()["lastError"]
    assert error["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
    assert f"Secret {seed.namespace}/cloudprovider: data key key: " in error["description"]
    events = seed.client.list(Resource("v1", "events"), seed.namespace)
    texts = repr([seed.get(), events, [vars(record) for record in caplog.records]])
    assert "planted-value" not in texts
    assert not value or value not in texts
    seed.delete()
    eventually(seed.is_gone)


class Later(SystemClock):
    """The time of day, moved forward by a test."""

    ahead = timedelta()

    def now(self):
        return super().now() + self.ahead


@pytest.fixture
def identity(seed, namespace):
    """Its Secret has the token of a workload identity, valid for an hour."""
    text = token(datetime.now(UTC) + timedelta(hours=1))
    seed.client.create(SECRETS, identity_secret(namespace, text, key="value"))
    return Reader()


def test_the_token_of_a_workload_identity_serves_a_deletion_until_it_expires(seed, start, identity):
    clock = Later()
    manager = start(identity, clock=clock)
    create(seed)
    drop_secret(seed)
    clock.ahead = timedelta(minutes=50)
    seed.delete()
    eventually(seed.is_gone)
    assert identity.found[-1] == ("delete", "dmFsdWU=")
    eventually(lambda: len(known(manager)) == 0)


@pytest.mark.usefixtures("short_window")
def test_an_expired_token_is_neither_kept_in_memory_nor_used(seed, start, identity):
    clock = Later()
    manager = start(identity, clock=clock)
    create(seed)
    [secrets] = known(manager)
    [kept] = secrets.values()
    clock.ahead = timedelta(minutes=61)
    eventually(lambda: not kept._raw)  # the object lives, and nothing is called for it
    drop_secret(seed)
    seed.delete()
    condition = eventually(lambda: blocked(seed))
    assert condition["reason"] == "SecretMissing"
    assert identity.found[-1] == ("delete", None)
    seed.client.create(SECRETS, planted(seed.namespace))
    eventually(seed.is_gone)


@pytest.mark.usefixtures("short_window")
def test_a_clock_that_is_wrong_for_a_moment_costs_no_deletion_its_token(
    seed, start, identity, monkeypatch
):
    clock = Later()
    manager = start(identity, clock=clock)
    create(seed)
    drop_secret(seed)
    eventually(lambda: trusted_now(manager._clock))
    monkeypatch.setattr("generic.kube.clock.WINDOW", 60.0)
    clock.ahead = timedelta(days=2)
    seed.delete()
    assert eventually(lambda: blocked(seed))["reason"] == "SecretMissing"
    time.sleep(1.0)  # two ticks of the watchdog
    clock.ahead = timedelta()
    eventually(seed.is_gone)
    assert identity.found[-1] == ("delete", "dmFsdWU=")


def test_content_that_objects_share_is_kept_once():
    shared = SharedSecrets()
    kept = [shared.share(planted("n")) for _ in range(100)]
    kept[0] = shared.share(planted("n", NEWER))
    gc.collect()
    assert len(shared._contents) == 2
    del kept[1:]
    gc.collect()
    assert len(shared._contents) == 1
    newer = kept[0].read(datetime.now(UTC))
    assert newer is not None
    assert newer["data"] == {"key": NEWER}
    assert "planted" not in repr(kept)
