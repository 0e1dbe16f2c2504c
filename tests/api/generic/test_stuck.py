"""`actuator stuck` against the API server: all that is under deletion, and nothing else."""

import json
import re
import secrets

import attrs
import pytest

from actuator.errors import ActuatorError, NotFound
from actuator.interface import Resource, resource_of
from actuator.meta import Raw, format_time
from actuator.v1alpha1 import BackupBucket, Infrastructure
from generic.kube.clock import SystemClock
from generic.kube.clusters import NAMESPACES
from generic.tools.explain.stuck import stuck
from tests.support.cluster.harness import FINALIZER, eventually
from tests.support.objects.builders import infrastructure
from tests.support.objects.stand_ins import StandIn

FOREIGN = "external-attacher/csi"
ROLES = "rbac.authorization.k8s.io/v1"
OTHERS = {
    "ConfigMap": Resource("v1", "configmaps"),
    "ServiceAccount": Resource("v1", "serviceaccounts"),
    "Role": Resource(ROLES, "roles"),
    "Lease": Resource("coordination.k8s.io/v1", "leases"),
    "ClusterRole": Resource(ROLES, "clusterroles", namespaced=False),
    "PriorityClass": Resource("scheduling.k8s.io/v1", "priorityclasses", namespaced=False),
    "BackupBucket": resource_of(BackupBucket.KIND),
}
"""Kinds of several groups and scopes; the law holds for each, and for those not listed."""
MORE: dict[str, Raw] = {
    "PriorityClass": {"value": 5},
    "BackupBucket": {"spec": {"type": "t", "region": "r", "secretRef": {"name": "s"}}},
}


@pytest.fixture
def keep(admin, namespace):
    """Creates an object of a kind with a finalizer, deletes it if asked; all end with the test."""
    made = []

    def keep(kind, name, *, deleting, finalizer=FOREIGN):
        resource = OTHERS[kind]
        meta = {"name": name, "finalizers": [finalizer]}
        where = namespace if resource.namespaced else ""
        meta |= {"namespace": where} if where else {}
        head = {"apiVersion": resource.api_version, "kind": kind, "metadata": meta}
        admin.create(resource, {**head, **MORE.get(kind, {})})
        made.append((resource, name, where))
        if deleting:
            admin.delete(resource, name, where)

    yield keep
    for resource, name, where in made:
        admin.patch(resource, name, where, {"metadata": {"finalizers": None}})
        try:
            admin.delete(resource, name, where)
        except NotFound:
            continue


@pytest.fixture
def run(environment, command):
    def run(*arguments, kubeconfig=environment.kubeconfig):
        return command("stuck", "--kubeconfig", kubeconfig, *arguments)

    return run


def of(answer, prefix):
    """The objects with this prefix in namespace or name; other tests delete theirs."""
    return {
        object_["kind"]: object_
        for object_ in json.loads(answer.stdout)["objects"]
        if object_["namespace"].startswith(prefix) or object_["name"].startswith(prefix)
    }


def test_all_kinds_that_are_under_deletion_are_listed_and_no_others(keep, run, namespace):
    chosen = {kind: secrets.randbelow(2) == 1 for kind in OTHERS} | {"ConfigMap": True}
    for kind, deleting in chosen.items():
        keep(kind, f"{namespace}-x", deleting=deleting)
    found = of(run("-o", "json"), namespace)
    assert set(found) == {kind for kind, deleting in chosen.items() if deleting}
    for kind, item in found.items():
        assert item["namespace"] == (namespace if OTHERS[kind].namespaced else "")
        assert item["since"] <= format_time(SystemClock().now())
        assert item["turn"] == "the CSI attacher"
        assert any(FOREIGN in blocker for blocker in item["blockers"])


def test_an_extension_object_has_its_turn_and_its_blockers(seed, run):
    seed.create(infrastructure(seed.namespace, "net", finalizers=[FINALIZER, "acme.org/x"]))
    status = {"lastError": {"description": "the key is revoked"}}
    seed.patch({"status": status}, subresource="status")
    seed.delete()
    one = of(run("-o", "json"), seed.namespace)["Infrastructure"]
    assert one["turn"] == "the extension for Infrastructure net, unknown: a controller of acme.org"
    assert "the key is revoked" in one["blockers"]
    wide = run("-o", "wide").stdout
    table = run().stdout
    for text in (wide, table):
        (line,) = (line for line in text.splitlines() if line.startswith(f"{seed.namespace} "))
        assert line.split()[1:3] == ["Infrastructure", "infra"]
        assert ("acme.org/x" in line) is (text is wide)
    assert re.match(r"\d+ objects? under deletion in ", table.splitlines()[-1])
    target = f"{seed.namespace}/Infrastructure/infra"
    assert target in run("-o", "name").stdout.splitlines()
    seed.patch({"metadata": {"finalizers": None}})


class Racing(StandIn):
    """A client of the test, in whose namespace the first object ends before it is read."""

    def __init__(self, seed):
        self._seed = seed
        self.metadata_only = seed.client.metadata_only
        self.send = seed.client.send

    def get(self, resource, name, namespace=""):
        if (name, namespace) == ("infra", self._seed.namespace):
            self._seed.patch({"metadata": {"finalizers": None}})
        return self._seed.client.get(resource, name, namespace)


def test_an_object_that_ends_before_it_is_read_hides_no_other_of_its_kind(seed):
    for name in ("infra", "next"):
        seed.create(infrastructure(seed.namespace, seed.namespace, name, finalizers=[FINALIZER]))
        seed.delete(name)
    found, _ = stuck(Racing(seed), [Infrastructure.KIND], SystemClock().now())
    assert [item.name for item in found if item.namespace == seed.namespace] == ["next"]
    seed.patch({"metadata": {"finalizers": None}}, "next")


def test_a_cluster_that_is_no_seed_is_refused_and_not_reported_as_free_of_stuck_objects(admin):
    unserved = attrs.evolve(Infrastructure.KIND, plural="unserved")
    with pytest.raises(ActuatorError, match=r"serves no extension kind; select a seed"):
        stuck(admin, [unserved], SystemClock().now())


def test_a_namespace_names_the_objects_that_remain_in_it(keep, run, admin, namespace):
    other = f"{namespace}-ending"
    admin.create(NAMESPACES, {"metadata": {"name": other}})
    config = {"name": "held", "namespace": other, "finalizers": [FOREIGN]}
    admin.create(OTHERS["ConfigMap"], {"metadata": config})
    admin.delete(NAMESPACES, other)
    one = eventually(
        lambda: (
            (found := of(run("-o", "json"), other)).get("Namespace", {}).get("blockers")
            and found["Namespace"]
        )
    )
    assert one["turn"] == "the namespace controller of Kubernetes"
    assert any("configmaps. has 1" in text for text in one["blockers"])
    admin.patch(OTHERS["ConfigMap"], "held", other, {"metadata": {"finalizers": None}})


@pytest.mark.parametrize("output", ["table", "name", "json"])
def test_a_user_who_may_read_nothing_does_not_learn_that_nothing_is_stuck(
    command, environment, admin, output
):
    kubeconfig = environment.user_kubeconfig(f"stranger-{secrets.token_hex(3)}")
    done = command("stuck", "--kubeconfig", kubeconfig, "-o", output, status=1)
    assert re.search(r"found no object under deletion, but could not do \d+ reads", done.stderr)
    assert "nothing" not in done.stdout
    forbidden = done.stdout if output == "json" else done.stderr
    assert "forbidden (403)" in forbidden


def test_a_resource_that_may_not_be_read_is_named_and_the_rest_is_listed(
    keep, run, environment, admin
):
    name = f"reader-{secrets.token_hex(3)}"
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]
    bindings = Resource(ROLES, "clusterrolebindings", namespaced=False)
    admin.create(OTHERS["ClusterRole"], {"metadata": {"name": name}, "rules": rules})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}
    binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
    admin.create(bindings, binding)
    keep("ConfigMap", name, deleting=True)
    done = eventually(
        lambda: (
            name in (found := run(kubeconfig=environment.user_kubeconfig(name))).stdout and found
        )
    )
    assert "cannot list secrets: forbidden (403)" in done.stderr
    assert "kubectl create clusterrole actuator-explain" in done.stderr
    admin.delete(OTHERS["ClusterRole"], name)
    admin.delete(bindings, name)
