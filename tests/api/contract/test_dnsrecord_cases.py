"""The Gardener contract: a DNSRecord that was never created, and its deletion."""

import pytest

from actuator import ActuatorError, RequeueAfter
from actuator.v1alpha1 import DNSRecord
from tests.support.cluster.harness import Script, eventually
from tests.support.objects.builders import cluster
from tests.support.objects.contract import manifest


def created(seed):
    conditions = seed.status().get("conditions") or []
    return next((c["status"] for c in conditions if c["type"] == "Created"), None)


@pytest.mark.parametrize(
    ("before", "works", "after"),
    [
        (None, False, "False"),
        (None, True, "True"),
        ("True", False, "True"),
        ("False", True, "True"),
        ("False", False, "False"),
    ],
)
def test_created_remembers_whether_it_ever_worked(of, start, before, works, after):
    seed = of(DNSRecord)
    outcomes = [works] if before is None else [before == "True", works]

    def reconcile(ctx, obj, cluster):
        if not outcomes.pop(0):
            raise RequeueAfter(3600, cause=ActuatorError("no zone"))

    script = Script(DNSRecord, reconcile=reconcile)
    start(script)
    seed.create(manifest(DNSRecord, seed.namespace))
    if before is not None:
        eventually(lambda: created(seed) == before)
        seed.ask("reconcile")
    eventually(lambda: not outcomes)
    eventually(lambda: created(seed) == after)


@pytest.mark.parametrize("forced", [None, "true"])
def test_a_record_that_was_never_created_is_deleted_without_its_actuator(of, start, forced):
    seed = of(DNSRecord)

    def reconcile(ctx, obj, cluster):
        raise ActuatorError("bad credentials")

    script = Script(DNSRecord, reconcile=reconcile, delete=reconcile)
    start(script)
    seed.create(manifest(DNSRecord, seed.namespace))
    eventually(lambda: created(seed) == "False")
    if forced:
        seed.update_cluster(cluster(seed.namespace, force=forced))
    seed.delete()
    eventually(seed.is_gone)
    assert "delete" not in script.operations()
    assert seed.events("OrphansRecorded") == []


def test_the_condition_is_unknown_while_a_record_is_retried(of, start):
    """A crash after a call that worked must not make a deletion forget the record."""
    seed = of(DNSRecord)
    seen = []

    def reconcile(ctx, obj, cluster):
        seen.append(created(seed))
        if len(seen) == 1:
            raise ActuatorError("no")

    start(Script(DNSRecord, reconcile=reconcile))
    seed.create(manifest(DNSRecord, seed.namespace))
    eventually(seed.is_ready)
    assert seen == [None, "Unknown"]
    assert created(seed) == "True"
