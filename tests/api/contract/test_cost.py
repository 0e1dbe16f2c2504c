"""What a life costs, kind by kind: two requests at first sight, one for the deletion."""

from collections import Counter

import pytest
from contract_objects import manifest, secret
from harness import OPERATION, TIMESTAMP, Script, eventually

from actuator.interface import Resource, resource_of
from actuator.v1alpha1 import KINDS, BackupBucket, BackupEntry
from generic.kube.clock import SystemClock
from generic.reconciler.orphans import ORPHANS

SECRETS = Resource("v1", "secrets")
GUARDED = {BackupBucket: 4, BackupEntry: 5}  # reads and writes of the Secret


class Slow(SystemClock):
    """A minute is a second: nothing takes so long that Processing has to be shown."""

    def monotonic(self):
        return super().monotonic() / 60


class Counting:
    """A client that counts requests by resource; events are told, not asked for."""

    def __init__(self, inner):
        self.inner = inner
        self.counts = Counter()

    def __getattr__(self, name):
        method = getattr(self.inner, name)

        def counted(resource, *args, **more):
            if resource != ORPHANS:  # the keeper's look, once in five minutes
                self.counts[str(resource)] += 1
            return method(resource, *args, **more)

        return counted


@pytest.mark.parametrize("cls", KINDS, ids=lambda cls: cls.KIND.name)
def test_a_life_costs_three_requests_beyond_what_the_kind_must_write(of, start, cls):
    seed = of(cls, "infra" if cls.KIND.namespaced else f"cost-{cls.KIND.name.lower()}--uid")
    clients = []

    def intercept(client):
        clients.append(Counting(client))
        return clients[0]

    start(Script(cls), intercept=intercept, clock=Slow())
    if cls in GUARDED:
        seed.client.create(SECRETS, secret(seed.namespace))
    asked = {OPERATION: "reconcile", TIMESTAMP: "2026-01-01T00:00:00Z"}
    seed.create(manifest(cls, seed.namespace, seed.name, annotations=asked))
    eventually(seed.is_ready)
    counts = clients[0].counts
    assert counts[str(resource_of(cls.KIND))] == 2
    seed.delete()
    eventually(seed.is_gone)
    assert counts[str(resource_of(cls.KIND))] == 3
    others = {name: n for name, n in counts.items() if name not in (str(seed.resource), "events")}
    assert others == ({"secrets": GUARDED[cls]} if cls in GUARDED else {})
