"""A manager whose CRDs were installed a moment ago, and whose Role is removed before it is stopped.

This is the order of an installation and of `helm uninstall`: nothing is wrong, so there is no
warning. Real trouble is one: the tests of informers, leader election, heartbeat and keeper.
"""

import logging
from typing import Any

import pytest

from actuator import ExternalResource, Resource
from actuator.errors import TooManyRequests
from actuator.v1alpha1 import KINDS, Cluster, Infrastructure
from generic.kube.client import connect
from generic.kube.clock import SystemClock
from generic.kube.crds import crd
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.manager.rbac import grant, manifests
from generic.reconciler.orphans import Orphan, OrphanedFrom, OrphanReason
from generic.reconciler.orphans.record import record
from generic.testing.envtest import Environment
from generic.testing.seed import CRDS
from tests.support.cluster.harness import RBAC, Script, eventually, is_allowed, samples

pytestmark = pytest.mark.long

USER = "extension"


@pytest.fixture
def environment():
    with Environment() as environment:
        yield environment


def make_manager(environment):
    options = Options(
        kubeconfig=environment.user_kubeconfig(USER),
        metrics_bind_address="0",
        health_bind_address="0",
        leader_election=True,
        heartbeat_namespace="default",
        heartbeat_renew_interval_seconds=1,
    )
    manager = Manager(options)
    for cls in KINDS:
        manager.add(Script(cls), type="test")
    return manager


def remove_roles(client, manager):
    for manifest in manifests(manager, USER, user=USER):
        meta = manifest["metadata"]
        resource = Resource(RBAC, f"{manifest['kind'].lower()}s", namespaced="namespace" in meta)
        client.delete(resource, meta["name"], meta.get("namespace", ""))


def is_established(manifest):
    """Whether the API server serves it; it refuses the first requests all the same."""
    conditions = manifest["status"]["conditions"] or []
    return any(
        condition["type"] == "Established" and condition["status"] == "True"
        for condition in conditions
    )


def may_renew(client):
    lease = {"namespace": "default", "name": "gardener-actuator-leader-election"}
    return is_allowed(client, USER, "patch", "leases", "coordination.k8s.io", **lease)


def is_recorded(client):
    """Whether there is an Orphan now; the API server refuses the first requests for a new kind."""
    head: dict[str, Any] = {
        "api_version": Infrastructure.KIND.api_version,
        "kind": Infrastructure.KIND.name,
    }
    former = OrphanedFrom(**head, namespace="default", name="infra", uid="1", type="test")
    vpc = ExternalResource(type="VPC", id="vpc-1")
    try:
        record(client, former, vpc, OrphanReason.FORCED, "it may remain", SystemClock().now())
    except TooManyRequests:
        return False
    return True


def logged(caplog, text, level=logging.DEBUG):
    return [
        record
        for record in caplog.records
        if text in record.getMessage() and record.levelno >= level
    ]


def test_a_first_start_and_a_removal_are_no_warnings(environment, caplog):
    client = connect(environment.kubeconfig)
    manager = make_manager(environment)
    grant(client, manager, USER)
    eventually(lambda: may_renew(client))
    caplog.set_level(logging.DEBUG, "generic")
    for cls in (Orphan, Cluster, *KINDS):
        client.create(CRDS, crd(cls))
    eventually(lambda: all(map(is_established, client.list(CRDS))))
    eventually(lambda: is_recorded(client))
    manager.start()
    try:
        assert manager.wait_synced(60)
        eventually(lambda: samples(manager, "actuator_orphans"))  # not refused any more
        remove_roles(client, manager)
        eventually(lambda: logged(caplog, "lease update failed"))
    finally:
        manager.stop()
    assert logged(caplog, "lease not released")
    problems = logged(caplog, "", logging.WARNING)
    assert [(problem.getMessage(), getattr(problem, "fields", "")) for problem in problems] == []
