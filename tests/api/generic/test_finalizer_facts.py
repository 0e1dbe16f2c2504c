"""Finalizers in Kubernetes' documentation ("Finalizers"), and the behaviour of the server.

On a core object and on a custom resource. docs/finalizers.md names each difference.
"""

from __future__ import annotations

import pytest

from generic.kube.finalizers import patch_removing
from tests.support.cluster.answers import CONFIG_MAPS, HELD, INFRASTRUCTURES, Answer, Server
from tests.support.cluster.harness import eventually

OTHER = "example.org/other"
FINALIZERS = "/metadata/finalizers"


@pytest.fixture(params=[CONFIG_MAPS, INFRASTRUCTURES], ids=["core", "custom"])
def server(request, environment, admin, namespace) -> Server:
    return Server(environment, request.param, namespace)


@pytest.fixture
def core(environment, namespace) -> Server:
    return Server(environment, CONFIG_MAPS, namespace)


@pytest.fixture
def custom(environment, admin, namespace) -> Server:
    return Server(environment, INFRASTRUCTURES, namespace)


@pytest.fixture
def held(server):
    """An object under deletion, which two finalizers hold; it goes with the test."""
    server.create("held", finalizers=[HELD, OTHER])
    yield server.delete("held")
    server.release("held")


def refused(answer: Answer) -> str:
    """Why the object, as it would have become, is invalid."""
    assert answer.status == 422
    return str(answer.body["message"])


def test_a_deletion_that_is_held_sets_the_timestamp_and_keeps_the_object(server, held):
    assert held.deleted_at
    now = server.get("held")
    assert (now.status, now.deleted_at) == (200, held.deleted_at)
    assert now.finalizers == [HELD, OTHER]


def test_a_deletion_that_is_held_is_answered_with_200(server, held):
    """Documented: 202."""
    assert held.status == 200
    assert held.body["kind"] != "Status", "it is the object that comes back"


def test_only_orphan_dependents_false_is_answered_with_202(server):
    """Documented: always."""
    for option, status in ((False, 202), (True, 200)):
        name = f"orphans-{option}".lower()
        server.create(name, finalizers=[HELD])
        assert server.delete(name, orphanDependents=option).status == status
        server.release(name)


def test_a_deletion_that_nothing_holds_is_done_at_once(server):
    server.create("free")
    answer = server.delete("free")
    assert (answer.status, answer.body["kind"], answer.body["status"]) == (200, "Status", "Success")
    assert server.get("free").status == 404


def test_a_forced_deletion_of_kubectl_waits_for_finalizers_too(server):
    """`kubectl delete --force` asks for a grace period of 0 seconds, and for nothing else."""
    server.create("forced", finalizers=[HELD])
    answer = server.delete("forced", gracePeriodSeconds=0)
    assert (answer.status, answer.finalizers) == (200, [HELD])
    assert answer.deleted_at
    assert server.get("forced").finalizers == [HELD]
    server.release("forced")
    assert server.get("forced").status == 404


def test_the_object_goes_with_its_last_finalizer(server, held):
    assert server.patch("held", [{"op": "remove", "path": f"{FINALIZERS}/0"}]).finalizers == [OTHER]
    assert server.get("held").status == 200
    assert server.patch("held", [{"op": "remove", "path": f"{FINALIZERS}/0"}]).status == 200
    assert server.get("held").status == 404


@pytest.mark.parametrize("cleared_before", [False, True])
def test_the_patch_of_the_last_finalizer_may_clear_the_managed_fields(server, cleared_before):
    """The object that the patch answers, and the watch events, then have none."""
    server.create("held", finalizers=[HELD])
    clear = {"op": "add", "path": "/metadata/managedFields", "value": [{}]}
    if cleared_before:
        assert "managedFields" not in server.patch("held", [clear]).body["metadata"]
    server.delete("held")
    uid = server.get("held").body["metadata"]["uid"]
    answer = server.patch("held", patch_removing([HELD], uid, [HELD], deleting=True))
    assert (answer.status, "managedFields" in answer.body["metadata"]) == (200, False)
    assert server.get("held").status == 404


def test_no_finalizer_is_added_after_the_deletion(server, held):
    for path in (f"{FINALIZERS}/-", f"{FINALIZERS}/0"):
        patch = [{"op": "add", "path": path, "value": "example.org/new"}]
        assert "no new finalizers can be added" in refused(server.patch("held", patch))
    patch = [{"op": "replace", "path": f"{FINALIZERS}/0", "value": "example.org/new"}]
    assert "no new finalizers can be added" in refused(server.patch("held", patch))
    assert server.get("held").finalizers == [HELD, OTHER]


def test_a_removed_finalizer_cannot_be_added_again(server, held):
    server.patch("held", [{"op": "remove", "path": f"{FINALIZERS}/0"}])
    patch = [{"op": "add", "path": f"{FINALIZERS}/-", "value": HELD}]
    assert "no new finalizers can be added" in refused(server.patch("held", patch))


def test_one_that_is_there_may_be_added_twice(server, held):
    """Not documented: the server compares sets."""
    patch = [{"op": "add", "path": f"{FINALIZERS}/-", "value": HELD}]
    assert server.patch("held", patch).finalizers == [HELD, OTHER, HELD]


def test_the_server_itself_adds_a_finalizer_to_a_deleting_object(server, held):
    """Documented: no client can. A foreground deletion adds its own, but none that we removed."""
    server.patch("held", [{"op": "remove", "path": f"{FINALIZERS}/0"}])
    again = server.delete("held", propagationPolicy="Foreground")
    assert again.finalizers == [OTHER, "foregroundDeletion"]


@pytest.mark.parametrize("value", ["2001-01-01T00:00:00Z", "2101-01-01T00:00:00Z", None])
def test_a_changed_deletion_timestamp_is_ignored(server, held, value):
    """Documented: it cannot be modified. The request succeeds, and nothing happens."""
    answer = server.patch("held", {"metadata": {"deletionTimestamp": value}})
    assert (answer.status, answer.warning) == (200, "")
    assert answer.deleted_at == held.deleted_at
    assert server.get("held").deleted_at == held.deleted_at


def test_no_client_sets_a_deletion_timestamp_but_by_a_deletion(server):
    made = server.create("new", deletionTimestamp="2001-01-01T00:00:00Z")
    assert (made.status, made.deleted_at) == (201, None)
    patch = {"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}}
    assert server.patch("new", patch).deleted_at is None


def test_a_second_deletion_changes_nothing(server, held):
    version = held.body["metadata"]["resourceVersion"]
    again = server.delete("held")
    assert (again.status, again.deleted_at) == (200, held.deleted_at)
    assert again.body["metadata"]["resourceVersion"] == version


def test_an_object_under_deletion_is_not_resurrected(server, held):
    again = server.create("held")
    assert (again.status, again.body["reason"]) == (409, "AlreadyExists")
    assert "object is being deleted" in again.body["message"]
    server.release("held")
    eventually(lambda: server.get("held").status == 404)
    made = server.create("held")
    assert made.status == 201
    assert made.body["metadata"]["uid"] != held.body["metadata"]["uid"]


def test_everything_else_of_a_deleting_object_may_change(server, held):
    labelled = server.patch("held", {"metadata": {"labels": {"still": "alive"}}})
    assert (labelled.status, labelled.body["metadata"]["labels"]) == (200, {"still": "alive"})


def test_the_spec_of_a_deleting_object_may_change(custom):
    custom.create("held", finalizers=[HELD])
    custom.delete("held")
    changed = custom.patch("held", {"spec": {"region": "us"}})
    assert (changed.status, changed.body["spec"]["region"]) == (200, "us")
    custom.release("held")


def test_a_core_object_refuses_an_unqualified_finalizer(core):
    wanted = "neither a standard finalizer name nor is it fully qualified"
    assert wanted in refused(core.create("made", finalizers=["unqualified"]))
    core.create("changed")
    patch = {"metadata": {"finalizers": ["unqualified"]}}
    assert wanted in refused(core.patch("changed", patch))


def test_a_custom_resource_takes_an_unqualified_finalizer_with_a_warning(custom):
    """Documented: the API server rejects it."""
    made = custom.create("made", finalizers=["unqualified"])
    assert (made.status, made.finalizers) == (201, ["unqualified"])
    assert "prefer a domain-qualified finalizer name" in made.warning
    custom.create("changed")
    changed = custom.patch("changed", {"metadata": {"finalizers": ["unqualified"]}})
    assert (changed.status, changed.finalizers) == (200, ["unqualified"])
    assert "prefer a domain-qualified finalizer name" in changed.warning
    custom.release("made")
    custom.release("changed")


@pytest.mark.parametrize("name", ["a/b/c", "EXAMPLE.org/x", "example.org/", ""])
def test_an_invalid_finalizer_name_is_refused_everywhere(server, name):
    assert "metadata.finalizers" in refused(server.create("made", finalizers=[name]))


@pytest.mark.parametrize("name", ["kubernetes", "orphan", "foregroundDeletion"])
def test_the_names_of_kubernetes_itself_need_no_domain(server, name):
    made = server.create("standard", finalizers=[name])
    assert (made.status, made.warning, made.finalizers) == (201, "", [name])
    server.release("standard")
