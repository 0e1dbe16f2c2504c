"""Owner references and finalizers of ours: values that Kubernetes forbids are refused unsent."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actuator.meta import ObjectMeta, Raw
from actuator.ownership import CannotOwn, is_owned_by, with_owner
from actuator.qualified import require_qualified
from actuator.v1alpha1 import KINDS, BackupBucket, Infrastructure

NAMESPACES = st.sampled_from(["", "a", "b"])
UIDS = st.sampled_from(["", "one", "two"])
_ALL: st.SearchStrategy[list[Raw]] = st.lists(
    st.fixed_dictionaries(
        {"kind": st.just("Deployment"), "name": st.just("d"), "uid": st.sampled_from("xyz")},
        optional={"controller": st.booleans()},
    ),
    unique_by=lambda item: item["uid"],
    max_size=2,
)
REFERENCES = _ALL.filter(lambda found: sum(item.get("controller", False) for item in found) < 2)


def owner(namespace, uid="one"):
    cls = Infrastructure if namespace else BackupBucket
    return cls(metadata=ObjectMeta(name="parent", namespace=namespace, uid=uid))


def child(namespace, references=()):
    meta = {"name": "child", "namespace": namespace, "ownerReferences": list(references)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "b"}}


@given(NAMESPACES, NAMESPACES, UIDS, REFERENCES, st.booleans())
def test_an_owner_is_added_if_kubernetes_allows_it_and_other_owners_stay(
    mine, its, uid, references, controller
):
    parent = owner(mine, uid)
    given_child = child(its, references)
    controlled = any(reference.get("controller") for reference in references)
    allowed = bool(uid) and mine in ("", its) and not (controller and controlled)
    if not allowed:
        with pytest.raises(CannotOwn) as refused:
            with_owner(given_child, parent, controller=controller)
        assert "\n" not in str(refused.value)
        assert parent.KIND.name in str(refused.value)
        return
    owned = with_owner(given_child, parent, controller=controller)
    *others, ours = owned["metadata"]["ownerReferences"]
    assert others == references
    assert (ours["uid"], ours.get("controller", False)) == (uid, controller)
    assert (ours["apiVersion"], ours["kind"]) == (parent.KIND.api_version, parent.KIND.name)
    assert is_owned_by(owned, parent)
    assert with_owner(owned, parent, controller=controller) == owned, "once is enough"
    assert {**owned, "metadata": given_child["metadata"]} == given_child


@given(REFERENCES)
def test_another_object_of_the_name_owns_nothing(references):
    owned = with_owner(child("a", references), owner("a"), controller=False)
    assert is_owned_by(owned, owner("a"))
    assert not is_owned_by(owned, owner("a", "two"))


def test_a_controller_blocks_its_foreground_deletion_and_a_plain_owner_does_not():
    for controller, more in ((True, {"controller": True, "blockOwnerDeletion": True}), (False, {})):
        owned = with_owner(child("a"), owner("a"), controller=controller)
        [reference] = owned["metadata"]["ownerReferences"]
        assert reference == {
            "apiVersion": "extensions.gardener.cloud/v1alpha1",
            "kind": "Infrastructure",
            "name": "parent",
            "uid": "one",
            **more,
        }


@pytest.mark.parametrize(
    ("its", "mine", "said"),
    [
        ("b", "a", "ConfigMap b/child is not in the namespace of Infrastructure a/parent"),
        ("", "a", "ConfigMap child is cluster-scoped, and the namespaced Infrastructure a/parent"),
    ],
)
def test_the_refusal_names_child_owner_and_way_out(its, mine, said):
    with pytest.raises(CannotOwn, match=f"^{re.escape(said)}.*label it") as refused:
        with_owner(child(its), owner(mine))
    assert "delete it in your code" in str(refused.value)


LABEL = st.from_regex("[a-z0-9]([-a-z0-9]{0,5}[a-z0-9])?", fullmatch=True)
NAME = st.from_regex("[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", fullmatch=True)


@given(st.lists(LABEL, min_size=1, max_size=4).map(".".join), NAME)
def test_a_domain_and_a_name_make_a_finalizer(domain, name):
    assert require_qualified(f"{domain}/{name}") == f"{domain}/{name}"


@given(st.text().filter(lambda text: "/" not in text) | st.sampled_from(["orphan", "kubernetes"]))
def test_a_finalizer_without_a_domain_is_refused_in_one_sentence(name):
    with pytest.raises(ValueError, match="is not qualified; use") as refused:
        require_qualified(name)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("cls", KINDS)
def test_the_kinds_of_gardener_have_finalizers_that_are_qualified(cls):
    assert require_qualified(cls.KIND.finalizer) == cls.KIND.finalizer
