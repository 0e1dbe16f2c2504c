"""Watched: a Mirror's copy in another namespace follows a ConfigMap of another owner."""

from __future__ import annotations

import pytest

from extensions.relations.kinds import Mirror
from tests.support.cluster.harness import eventually
from tests.support.samples.relations import HELD, ConfigMaps


@pytest.fixture
def sources(admin, namespace) -> ConfigMaps:
    return ConfigMaps(admin, namespace)


@pytest.fixture
def copies(admin, elsewhere) -> ConfigMaps:
    return ConfigMaps(admin, elsewhere)


@pytest.fixture
def copy(namespace) -> str:
    """The name of the copy."""
    return f"{namespace}.x"


@pytest.fixture
def mirror(serve, make, foreign, namespace, elsewhere):
    """A Mirror that is ready, of a ConfigMap that says a."""
    serve(Mirror)
    foreign(namespace, "x", says="a")
    made = make(Mirror, to=elsewhere)
    made.is_ready()
    return made


def test_the_copy_follows_each_change_of_the_source(mirror, sources, copies, copy):
    assert copies.data(copy) == {"says": "a"}
    sources.patch("x", {"data": {"says": "b", "more": "c"}})
    eventually(lambda: copies.data(copy) == {"says": "b", "more": "c"})
    sources.patch("x", {"data": {"more": None}})
    eventually(lambda: copies.data(copy) == {"says": "b"})


def test_external_changes_to_the_copy_are_reverted(mirror, copies, copy):
    copies.patch(copy, {"data": {"says": "else"}})
    eventually(lambda: copies.data(copy) == {"says": "a"})
    copies.delete(copy)
    eventually(lambda: copies.data(copy) == {"says": "a"})


def test_the_copy_carries_no_owner_reference(mirror, copies, copy):
    """The collector would delete it: its owner is in another namespace."""
    assert copies.owners(copy) == {}


def test_a_source_that_comes_late_is_waited_for(serve, make, foreign, namespace, copies, copy):
    serve(Mirror)
    waiting = make(Mirror, to=copies.namespace)
    waiting.says(f"Waiting for ConfigMap {namespace}/x")
    foreign(namespace, "x", says="late")
    waiting.is_ready()
    assert copies.data(copy) == {"says": "late"}


def test_deleted_it_takes_the_copy_and_leaves_the_source(mirror, sources, copies, copy):
    mirror.delete()
    mirror.is_gone()
    assert (sources.data("x"), copies.data(copy)) == ({"says": "a"}, None)


def test_a_copy_that_is_held_keeps_a_deletion_waiting_and_is_named(mirror, copies, copy):
    copies.patch(copy, {"metadata": {"finalizers": [HELD]}})
    mirror.delete()
    mirror.says(f"Waiting for the deletion of configmaps {copy} (held by {HELD})")
    copies.patch(copy, {"metadata": {"finalizers": None}})
    mirror.is_gone()


def test_a_forced_deletion_does_not_wait_for_a_copy_that_is_held(mirror, copies, copy):
    copies.patch(copy, {"metadata": {"finalizers": [HELD]}})
    mirror.force()
    mirror.is_gone()
    assert copies.data(copy) == {"says": "a"}, "somebody else holds it"
    copies.patch(copy, {"metadata": {"finalizers": None}})
    copies.goes(copy)


def test_a_config_map_of_another_owner_is_neither_adopted_nor_deleted(
    serve, make, foreign, namespace, copies, copy
):
    foreign(namespace, "x", says="a")
    foreign(copies.namespace, copy, whose="mine")
    serve(Mirror)
    made = make(Mirror, to=copies.namespace)
    said = made.says(f"configmaps {copies.namespace}/{copy} exists without our label")
    assert said["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
    made.delete()
    made.is_gone()
    assert copies.data(copy) == {"whose": "mine"}


def test_a_mirror_into_its_own_namespace_is_refused(serve, make, namespace):
    serve(Mirror)
    said = make(Mirror, to=namespace).says("spec.to: is the Mirror's own; name another one")
    assert said["codes"] == ["ERR_CONFIGURATION_PROBLEM"]


def test_a_missing_namespace_of_copies_blocks_no_deletion(serve, make, foreign, namespace):
    foreign(namespace, "x", says="a")
    serve(Mirror)
    made = make(Mirror, to=f"{namespace}-never-was")
    made.says("not found")
    made.delete()
    made.is_gone()
