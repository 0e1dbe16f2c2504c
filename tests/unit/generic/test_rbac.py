"""The Role allows the permissions of the added parts, and nothing more."""

import pytest

from actuator import Resource
from actuator.interface import SHOOT_ACCESS
from actuator.v1alpha1 import Infrastructure
from generic.controller.watch import owns
from generic.library.healthchecks import Check, HealthChecks, HealthResult
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.manager.rbac import manifests
from tests.support.cluster.harness import Script, cluster_rules


@pytest.fixture
def manager():
    return Manager()


def rules(manager):
    """The allowed verbs, by group and resource."""
    return {
        (group, resource): set(rule["verbs"])
        for rule in cluster_rules(manager)
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def test_a_manager_without_controllers_may_write_events_alone(manager):
    assert rules(manager) == {("", "events"): {"create", "patch"}}


def test_a_watched_resource_may_be_listed_and_watched_but_not_read_one_by_one(manager):
    manager.add(Script(), type="x", watches=[owns(Resource("apps/v1", "deployments"))])
    assert rules(manager)["apps", "deployments"] == {"list", "watch"}


@pytest.mark.parametrize("ignore", [True, False])
def test_gardeners_own_watches_are_in_it_where_they_are_made(ignore):
    from actuator.v1alpha1 import BackupEntry

    manager = Manager(Options(ignore_operation_annotation=ignore))
    manager.add(Script(BackupEntry), type="x")
    allowed = rules(manager)
    watching = {"list", "watch"}
    assert (watching <= allowed.get(("", "namespaces"), set())) is ignore
    assert (watching <= allowed.get(("", "secrets"), set())) is ignore


def test_a_runnable_has_its_declared_permissions(manager):
    leases = Resource("coordination.k8s.io/v1", "leases").permission("create")
    manager.add_runnable("beats", lambda client, stop: None, permissions=[leases])
    assert rules(manager)["coordination.k8s.io", "leases"] == {"create"}


def test_a_permission_for_one_namespace_becomes_a_role_there(manager):
    maps = Resource("v1", "configmaps").permission("get", namespace="mine")
    manager.add_runnable("reads", lambda client, stop: None, permissions=[maps])
    made = [*manifests(manager, "name", "account", "ext")]
    cluster, cluster_binding = made[:2]
    role, binding = (obj for obj in made if obj["metadata"].get("namespace") == "mine")
    assert not any("configmaps" in rule["resources"] for rule in cluster["rules"])
    assert role["metadata"] == binding["metadata"] == {"name": "name", "namespace": "mine"}
    assert role["rules"] == [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
    assert (role["kind"], binding["kind"]) == ("Role", "RoleBinding")
    assert (cluster["kind"], cluster_binding["kind"]) == ("ClusterRole", "ClusterRoleBinding")
    assert binding["subjects"] == cluster_binding["subjects"]


def test_a_manager_may_read_the_identity_of_the_seed_and_no_other_config_map(manager):
    manager.add(Script(), type="x")
    cluster, *roles = manifests(manager, "name")
    assert not any("configmaps" in rule["resources"] for rule in cluster["rules"])
    head = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
    assert [(role["metadata"]["namespace"], role["rules"]) for role in roles] == [
        ("kube-system", [{**head, "resourceNames": ["cluster-identity"]}])
    ]


def test_a_permission_for_names_does_not_widen_or_narrow_another(manager):
    wider = Resource("v1", "secrets").permission("list")
    for number, permissions in enumerate(([SHOOT_ACCESS], [wider])):
        manager.add_runnable(f"r{number}", lambda client, stop: None, permissions=permissions)
    head = {"apiGroups": [""], "resources": ["secrets"]}
    assert [rule for rule in cluster_rules(manager) if rule["resources"] == ["secrets"]] == [
        {**head, "verbs": ["list"]},
        {**head, "verbs": ["get"], "resourceNames": ["gardener-internal", "gardener"]},
    ]


def test_leases_are_granted_in_the_namespaces_of_the_leases_alone():
    options = Options(
        leader_election=True, leader_election_namespace="lead", heartbeat_namespace="beat"
    )
    cluster, *roles = manifests(Manager(options), "name")
    assert not any("leases" in rule["resources"] for rule in cluster["rules"])
    rules = {
        role["metadata"]["namespace"]: [
            (rule["verbs"], rule.get("resourceNames")) for rule in role["rules"]
        ]
        for role in roles
    }
    assert rules == {
        "beat": [(["create"], None), (["patch"], ["gardener-extension-heartbeat"])],
        "lead": [(["create"], None), (["get", "patch"], ["gardener-actuator-leader-election"])],
    }


def test_health_checks_may_read_checked_resources_and_write_the_status(manager):
    pods = Resource("v1", "pods").permission("list")
    check = Check("Healthy", lambda ctx: HealthResult.healthy(), permissions=[pods])
    manager.add_health_checks(HealthChecks(cls=Infrastructure, types=("x",), checks=(check,)))
    allowed = rules(manager)
    group = "extensions.gardener.cloud"
    assert allowed["", "pods"] == {"list"}
    assert allowed[group, "infrastructures/status"] == {"patch"}
    assert allowed[group, "clusters"] == {"get", "list", "watch"}
