"""Of objects that no part of a manager serves, the store keeps the header alone."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from actuator.interface import resource_of
from actuator.v1alpha1 import Infrastructure
from generic.kube.clock import SystemClock
from generic.kube.clusters import CLUSTERS
from generic.kube.headers import Request, cluster_header
from generic.kube.store import Store
from generic.library.healthchecks import Check, HealthChecks, HealthResult
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.manager.wiring import Shared, Wiring
from generic.serving.metrics import Metrics
from generic.testing.recording import RecordingClient
from tests.support.cluster.harness import Script

NAMES = ("ours", "checked", "other", "other-class")


def found(name: str) -> dict[str, Any]:
    spec = {"type": name, "region": "r"}
    if name == "other-class":
        spec = {"type": "ours", "class": "garden"}
    meta = {"name": name, "namespace": "n", "uid": name, "resourceVersion": "7"}
    return {"kind": "Infrastructure", "metadata": meta, "spec": spec}


class Connection(RecordingClient):
    def within(self, _seconds: float) -> Connection:
        return self


@pytest.fixture
def store():
    manager = Manager(Options(leader_election=False, extension_classes=("shoot",)))
    manager.add(Script(Infrastructure), type="ours")
    check = Check("Healthy", lambda ctx: HealthResult.healthy())
    manager.add_health_checks(HealthChecks(cls=Infrastructure, types=("checked",), checks=(check,)))
    client: Any = Connection()
    shared = Shared(
        connection=client,
        intercept=lambda item: item,
        cluster_store=Store(CLUSTERS, cluster_header),
        metrics=Metrics(),
        clock=SystemClock(),
        stop=threading.Event(),
    )
    wiring = Wiring(shared, manager, client, lambda: None)
    return wiring.routes.ours[str(resource_of(Infrastructure.KIND))].store


def test_bytes_are_kept_of_the_objects_that_are_served_or_checked(store):
    for name in NAMES:
        store.observe(found(name))
    kept = {name for name in NAMES if store.get(Request("n", name)).raw}
    assert kept == {"ours", "checked"}
    assert len(store) == len(NAMES)


def test_an_object_that_becomes_ours_is_kept_from_then_on(store):
    theirs = found("other")
    store.observe(theirs)
    meta = {**theirs["metadata"], "resourceVersion": "8"}
    store.observe({**theirs, "metadata": meta, "spec": {"type": "ours", "region": "r"}})
    assert b'"ours"' in store.get(Request("n", "other")).raw
