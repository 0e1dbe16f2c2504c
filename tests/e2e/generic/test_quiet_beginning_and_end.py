"""A manager whose CRDs were installed a moment ago, and whose Role is removed before it is stopped.

This is the order of an installation and of `helm uninstall`: nothing is wrong, so there is no
warning. Real trouble is one: the tests of informers, leader election, heartbeat and keeper.
"""

import logging

import pytest
from harness import RBAC, Script, eventually, is_allowed

from actuator import Resource
from actuator.v1alpha1 import KINDS, Cluster
from generic.kube.client import connect
from generic.kube.crds import crd
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.manager.rbac import grant, manifests
from generic.reconciler.orphans import Orphan
from generic.testing.envtest import Environment
from generic.testing.seed import CRDS

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
        resource = Resource(RBAC, f"{manifest['kind'].lower()}s", "namespace" in meta)
        client.delete(resource, meta["name"], meta.get("namespace", ""))


def is_established(manifest):
    """Whether the API server serves it; it refuses the first requests all the same."""
    conditions = manifest["status"]["conditions"] or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def may_renew(client):
    lease = {"namespace": "default", "name": "gardener-actuator-leader-election"}
    return is_allowed(client, USER, "patch", "leases", "coordination.k8s.io", **lease)


def logged(caplog, text, level=logging.DEBUG):
    return [one for one in caplog.records if text in one.getMessage() and one.levelno >= level]


def test_a_first_start_and_a_removal_are_no_warnings(environment, caplog):
    client = connect(environment.kubeconfig)
    manager = make_manager(environment)
    grant(client, manager, USER)
    eventually(lambda: may_renew(client))
    caplog.set_level(logging.DEBUG, "generic")
    for cls in (Orphan, Cluster, *KINDS):
        client.create(CRDS, crd(cls))
    eventually(lambda: all(map(is_established, client.list(CRDS))))
    manager.start()
    try:
        assert manager.wait_synced(60)
        eventually(lambda: logged(caplog, "leading"))
        remove_roles(client, manager)
        eventually(lambda: logged(caplog, "lease update failed"))
    finally:
        manager.stop()
    assert logged(caplog, "lease not released")
    problems = logged(caplog, "", logging.WARNING)
    assert [(one.getMessage(), getattr(one, "fields", "")) for one in problems] == []
