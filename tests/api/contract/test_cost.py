"""The cost of a life, kind by kind: two requests at first sight, one for the deletion."""

from collections import Counter

import pytest

from actuator.interface import Resource, resource_of
from actuator.v1alpha1 import KINDS, BackupBucket, BackupEntry
from generic.kube.clock import SystemClock
from generic.reconciler.orphans import FORCE_DELETIONS, ORPHANS
from tests.support.cluster.harness import OPERATION, TIMESTAMP, Script, eventually
from tests.support.objects.contract import manifest, secret

SECRETS = Resource("v1", "secrets")
GUARDED = {BackupBucket: 4, BackupEntry: 5}  # reads and writes of the Secret


class Slow(SystemClock):
    """A minute is a second: nothing takes so long that Processing has to be shown."""

    def monotonic(self):
        return super().monotonic() / 60


class Counting:
    """A client that counts requests by resource, except those of the keeper."""

    def __init__(self, inner):
        self.inner = inner
        self.counts: Counter[str] = Counter()

    def __getattr__(self, name):
        method = getattr(self.inner, name)

        def counted(resource, *args, **more):
            is_of_keeper = resource == ORPHANS or (name, resource) == ("list", FORCE_DELETIONS)
            if not is_of_keeper:
                self.counts[str(resource)] += 1
            return method(resource, *args, **more)

        return counted


@pytest.mark.parametrize("cls", KINDS, ids=lambda cls: cls.KIND.name)
def test_a_life_costs_three_requests_beyond_the_writes_of_the_kind(of, start, cls):
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
