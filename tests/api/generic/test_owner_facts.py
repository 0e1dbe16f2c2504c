"""Owners in Kubernetes' documentation, and the behaviour of server and garbage collector.

"Owners and Dependents", "Garbage Collection", "Use Cascading Deletion in a Cluster".
docs/finalizers.md names each difference.
"""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from actuator.errors import Forbidden
from actuator.meta import Raw
from generic.kube.client import connect
from generic.manager.rbac import role_binding
from generic.testing.garden import NAMESPACES
from tests.support.cluster.answers import CONFIG_MAPS, HELD, Answer, Server
from tests.support.cluster.harness import BINDINGS, EVENTS, RBAC, ROLES, eventually

INVALID = "OwnerRefInvalidNamespace"
COLLECTED = 120.0


class Family(Server):
    """Objects that are each other's owners; core kinds, which the collector knows at once."""

    def owned(self, name: str, *owners: Raw, **meta: Any) -> Answer:
        return self.create(name, ownerReferences=list(owners), **meta)

    def owners(self, name: str) -> list[str]:
        meta = self.get(name).body["metadata"]
        return [owner["name"] for owner in meta.get("ownerReferences") or []]

    def is_gone(self, name: str) -> bool:
        return self.get(name).status == 404

    def goes(self, name: str) -> None:
        eventually(lambda: self.is_gone(name), COLLECTED)

    def is_deleting(self, name: str) -> bool:
        answer = self.get(name)
        return answer.status == 200 and answer.deleted_at is not None

    def collects(self) -> None:
        """Afterwards the collector knows all there was before: it took a child made just now."""
        parent = self.create()
        child = self.owned("", reference(parent))
        self.delete(parent.body["metadata"]["name"])
        self.goes(child.body["metadata"]["name"])


def reference(owner: Answer, kind: str = "ConfigMap", version: str = "v1", **more: Any) -> Raw:
    meta = owner.body["metadata"]
    return {"apiVersion": version, "kind": kind, "name": meta["name"], "uid": meta["uid"], **more}


@pytest.fixture
def family(environment, namespace) -> Family:
    return Family(environment, CONFIG_MAPS, namespace)


@pytest.fixture
def elsewhere(environment, admin, namespace) -> Family:
    """Another namespace."""
    name = f"{namespace}-b"
    meta = {"metadata": {"name": name}}
    admin.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", **meta})
    return Family(environment, CONFIG_MAPS, name)


@pytest.fixture
def clusterwide(environment) -> Family:
    """Objects without a namespace."""
    return Family(environment, ROLES, "")


def warned(admin: Any, namespace: str, child: str) -> bool:
    events = admin.list(EVENTS, namespace)
    return any(e["reason"] == INVALID and e["involvedObject"]["name"] == child for e in events)


def test_a_child_goes_after_its_owner_by_default(family):
    family.owned("child", reference(family.create("parent")))
    assert family.delete("parent").body["status"] == "Success", "the owner is gone at once"
    family.goes("child")


def test_an_owner_in_another_namespace_is_accepted_and_its_child_collected(
    admin, family, elsewhere
):
    """Documented: disallowed by design. The child goes although its owner is alive."""
    assert elsewhere.owned("child", reference(family.create("parent"))).status == 201
    elsewhere.goes("child")
    assert family.get("parent").status == 200
    eventually(lambda: warned(admin, elsewhere.namespace, "child"), COLLECTED)


def test_a_child_without_namespace_of_an_owner_with_one_is_never_collected(
    admin, family, clusterwide
):
    name = f"child-of-{family.namespace}"
    assert clusterwide.owned(name, reference(family.create("parent"))).status == 201
    eventually(lambda: warned(admin, "default", name), COLLECTED)
    family.delete("parent")
    family.collects()
    assert clusterwide.get(name).deleted_at is None
    clusterwide.delete(name)


def test_an_owner_without_namespace_may_own_a_namespaced_child(family, elsewhere, clusterwide):
    name = f"parent-of-{family.namespace}"
    owner = reference(clusterwide.create(name), "ClusterRole", RBAC)
    family.owned("child", owner)
    elsewhere.owned("child", owner)
    clusterwide.delete(name)
    family.goes("child")
    elsewhere.goes("child")


def test_an_owner_is_found_by_its_uid_not_by_its_name(family):
    """A parent that was made anew is another one; so is one of another kind."""
    parent = family.create("parent")
    family.owned("of-an-other", {**reference(parent), "uid": secrets.token_hex(16)})
    family.owned("of-a-secret", reference(parent, "Secret"))
    family.goes("of-an-other")
    family.goes("of-a-secret")
    assert family.get("parent").status == 200


def test_a_child_has_one_controller_at_most(family):
    one = family.create("one")
    other = family.create("other")
    owners = [reference(owner, controller=True) for owner in (one, other)]
    refused = family.owned("child", *owners)
    assert refused.status == 422
    assert "Only one reference can have Controller set to true" in refused.body["message"]
    assert family.owned("child", owners[0], reference(other)).status == 201


def test_a_child_goes_with_the_last_of_its_owners(family):
    for name in ("one", "other"):
        family.create(name)
    family.owned("child", *(reference(family.get(name)) for name in ("one", "other")))
    family.delete("one")
    eventually(lambda: family.owners("child") == ["other"], COLLECTED)
    assert not family.is_deleting("child")
    family.delete("other")
    family.goes("child")


def test_a_background_deletion_leaves_a_held_child_behind_its_owner(family):
    owner = reference(family.create("parent"), controller=True, blockOwnerDeletion=True)
    family.owned("child", owner, finalizers=[HELD])
    family.delete("parent", propagationPolicy="Background")
    assert family.is_gone("parent")
    eventually(lambda: family.is_deleting("child"), COLLECTED)
    family.release("child")


def test_children_stay_as_long_as_a_finalizer_holds_their_owner(family):
    family.owned("child", reference(family.create("parent", finalizers=[HELD])))
    assert family.delete("parent").deleted_at
    family.collects()
    assert family.get("child").deleted_at is None
    family.release("parent")
    family.goes("child")


def test_a_foreground_deletion_takes_the_children_first(family):
    """Also while another finalizer holds the owner."""
    owner = family.create("parent", finalizers=[HELD])
    family.owned("child", reference(owner, blockOwnerDeletion=True))
    family.collects()
    answer = family.delete("parent", propagationPolicy="Foreground")
    assert (answer.status, answer.finalizers) == (200, [HELD, "foregroundDeletion"])
    family.goes("child")
    eventually(lambda: family.get("parent").finalizers == [HELD], COLLECTED)
    family.release("parent")
    assert family.is_gone("parent")


def test_a_child_that_blocks_keeps_its_owner_in_a_foreground_deletion(family):
    owner = reference(family.create("parent"), blockOwnerDeletion=True)
    family.owned("child", owner, finalizers=[HELD])
    family.collects()
    family.delete("parent", propagationPolicy="Foreground")
    eventually(lambda: family.is_deleting("child"), COLLECTED)
    family.collects()
    assert family.get("parent").finalizers == ["foregroundDeletion"]
    family.release("child")
    family.goes("parent")


@pytest.mark.parametrize("more", [{"blockOwnerDeletion": False}, {}], ids=["false", "absent"])
def test_a_child_that_does_not_block_keeps_no_owner(family, more):
    owner = reference(family.create("parent"), **more)
    family.owned("child", owner, finalizers=[HELD])
    family.collects()
    family.delete("parent", propagationPolicy="Foreground")
    family.goes("parent")
    eventually(lambda: family.is_deleting("child"), COLLECTED)  # it may go after its owner
    family.release("child")


def test_an_orphaning_deletion_keeps_the_children_and_takes_their_reference(family):
    owner = reference(family.create("parent"), controller=True, blockOwnerDeletion=True)
    family.owned("child", owner)
    family.collects()
    answer = family.delete("parent", propagationPolicy="Orphan")
    assert (answer.status, answer.finalizers) == (200, ["orphan"])
    family.goes("parent")
    family.collects()
    assert (family.owners("child"), family.get("child").deleted_at) == ([], None)


def test_the_finalizer_orphan_orphans_whatever_the_deletion_asks_for_by_default(family):
    family.owned("child", reference(family.create("parent", finalizers=["orphan"])))
    family.delete("parent")
    family.goes("parent")
    family.collects()
    assert (family.owners("child"), family.get("child").deleted_at) == ([], None)


def test_a_user_who_may_not_delete_an_owner_may_block_its_deletion(environment, admin, family):
    """Documented: an admission controller prevents it. By default that one is disabled."""
    user = f"creator-{family.namespace}"
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}
    role = {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": user}, "rules": [rule]}
    admin.create(ROLES, role)
    admin.create(BINDINGS, role_binding(role, user))
    client = connect(environment.user_kubeconfig(user))
    owner = reference(family.create("parent"), blockOwnerDeletion=True)
    meta = {"name": "child", "namespace": family.namespace, "ownerReferences": [owner]}
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    made = eventually(lambda: created(client, child))
    assert made["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] is True
    with pytest.raises(Forbidden):
        client.delete(CONFIG_MAPS, "parent", family.namespace)
    admin.delete(BINDINGS, user)
    admin.delete(ROLES, user)


def created(client: Any, child: Raw) -> Raw | None:
    """The child, once the server knows the permissions of the user."""
    try:
        return client.create(CONFIG_MAPS, child)
    except Forbidden:
        return None
