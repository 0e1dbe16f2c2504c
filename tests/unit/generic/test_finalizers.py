"""The pure half of finalizers: the effect of a patch on any list."""

import copy

from hypothesis import given
from hypothesis import strategies as st

from generic.kube import patches
from generic.kube.finalizers import patch_adding, patch_removing

OURS = "example.org/ours"
FOREIGN = st.lists(st.sampled_from(["a/a", "b/b", "c/c"]), unique=True, max_size=3)
UIDS = st.sampled_from(["one", "other"])


def applied(patch, obj):
    """The object after a patch of finalizers by the API server; None where a test fails."""
    if not patches.tests_hold(patch, obj):
        return None
    after = copy.deepcopy(obj)
    for op in patch:
        if op["op"] in ("add", "replace"):
            after["metadata"]["finalizers"] = op["value"]
        elif op["op"] == "remove":
            del after["metadata"]["finalizers"]
    return after


def obj(uid, finalizers):
    return {"metadata": {"uid": uid, **({"finalizers": finalizers} if finalizers else {})}}


@given(FOREIGN, FOREIGN, UIDS)
def test_adding_our_finalizer_keeps_all_others_or_does_nothing(read, now, uid):
    after = applied(patch_adding(OURS, "one", read), obj(uid, now))
    if after is None:
        assert uid != "one" or read != now
    else:
        assert after["metadata"]["finalizers"] == [*now, OURS]
        assert (uid, read) == ("one", now)


@given(FOREIGN, FOREIGN, UIDS, st.integers(0, 3))
def test_the_patch_removes_our_finalizer_alone_or_does_nothing(read, now, uid, position):
    with_ours = [*read[:position], OURS, *read[position:]]
    there = [*now[:position], OURS, *now[position:]]
    after = applied(patch_removing([OURS], "one", with_ours), obj(uid, there))
    if after is None:
        assert uid != "one" or with_ours != there
    else:
        assert after["metadata"].get("finalizers", []) == now


@given(FOREIGN, st.booleans())
def test_only_the_patch_that_deletes_the_object_clears_its_managed_fields(foreign, deleting):
    patch = patch_removing([OURS], "one", [*foreign, OURS], deleting=deleting)
    cleared = [op for op in patch if op["path"] == "/metadata/managedFields"]
    assert bool(cleared) == (deleting and not foreign)


@given(FOREIGN)
def test_on_and_off_again_is_where_it_was(foreign):
    before = obj("one", foreign)
    on = applied(patch_adding(OURS, "one", foreign), before)
    assert applied(patch_removing([OURS], "one", on["metadata"]["finalizers"]), on) == before


@given(st.text())
def test_a_key_is_one_step_of_a_pointer(key):
    assert "/" not in patches.escape(key)
    pointer = [{"op": "test", "path": f"/{patches.escape(key)}", "value": 1}]
    assert patches.tests_hold(pointer, {key: 1})
