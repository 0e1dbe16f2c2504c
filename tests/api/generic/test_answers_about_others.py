"""404: only an answer that names the object says that it does not exist."""

import pytest

from actuator import Resource, SeedObjects
from actuator.errors import ApiError, NotFound, NotServed
from actuator.meta import Raw
from generic.kube.client import connect
from generic.kube.finalizers import finalizer
from generic.library.lookup import find, find_all
from generic.manager.orphans.ledger import read_orphans
from generic.reconciler.stripping import delete_seed_objects
from generic.testing.seed import install_crds
from tests.support.cluster.fault_proxy import Answer, HttpProxy, kubeconfig
from tests.support.cluster.harness import FINALIZER, INFRASTRUCTURES
from tests.support.objects.builders import infrastructure
from tests.support.objects.not_found import NOT_FOUND

SOME = ("namespace", "webhook", "page", "html")
"""The others differ only in details; `tests/unit/generic/test_answers.py` has all."""
PATCH: list[Raw] = [{"op": "test", "path": "/metadata/labels", "value": None}]


@pytest.fixture
def http(environment, admin):
    proxy = HttpProxy(environment)
    yield proxy
    proxy.close()


@pytest.fixture
def through(http, tmp_path):
    return connect(kubeconfig(tmp_path / "http", http.url))


def requests(client, namespace, obj):
    where = INFRASTRUCTURES, "infra", namespace
    yield lambda: client.get(*where)
    yield lambda: client.patch(*where, PATCH)
    yield lambda: client.patch(*where, PATCH, subresource="status")
    yield lambda: client.delete(*where)
    yield lambda: client.apply(INFRASTRUCTURES, obj)
    yield lambda: client.create(INFRASTRUCTURES, obj)
    yield lambda: client.list(INFRASTRUCTURES, namespace)


def consumers(client, namespace, obj):
    """Calls that delete, release or look up an object, and treat a deleted one as a success."""
    group = SeedObjects(INFRASTRUCTURES, [FINALIZER])
    meta = {**obj["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    deleted = {**obj, "metadata": {**meta, "finalizers": [FINALIZER]}}
    yield lambda: finalizer(
        client, INFRASTRUCTURES, deleted, FINALIZER, apply=repr, cleanup=lambda _: None
    )
    yield lambda: delete_seed_objects(client, namespace, [group], print)
    yield lambda: find(client, INFRASTRUCTURES, "infra", namespace)
    yield lambda: find_all(client, INFRASTRUCTURES, namespace)


@pytest.mark.parametrize(
    ("form", "hit"),
    [("namespace", "/infrastructures"), ("page", "/infrastructures"), ("page", "")],
    ids=["namespace", "page", "page for every request"],
)
def test_a_404_about_something_else_is_never_taken_for_the_object(
    through, http, admin, namespace, form, hit
):
    obj = admin.create(INFRASTRUCTURES, infrastructure(namespace, "a", finalizers=[FINALIZER]))
    http.rule = lambda _method, target: answer(form) if hit in target else target
    calls = [*requests(through, namespace, obj), *consumers(through, namespace, obj)]
    for number, call in enumerate(calls):
        with pytest.raises(ApiError) as raised:
            call()
        assert not isinstance(raised.value, NotFound), number
        assert raised.value.status == 404
    assert admin.get(INFRASTRUCTURES, "infra", namespace)["metadata"]["finalizers"] == [FINALIZER]


@pytest.mark.parametrize("name", ["infra", "a.b-c.d"])
def test_a_404_that_names_the_object_says_that_it_does_not_exist(admin, namespace, name):
    obj = infrastructure(namespace, "a", name=name)
    for number, call in enumerate(requests_for_nothing(admin, namespace, obj)):
        with pytest.raises(NotFound) as raised:
            call()
        assert type(raised.value) is NotFound, number
        assert raised.value.about.endswith(f"/{name}")
    assert find(admin, INFRASTRUCTURES, name, namespace) is None
    assert find_all(admin, INFRASTRUCTURES, namespace) == []


def requests_for_nothing(client, namespace, obj):
    for resource in (
        INFRASTRUCTURES,
        Resource("v1", "secrets"),
        Resource("apps/v1", "deployments"),
    ):
        where = resource, obj["metadata"]["name"], namespace
        yield lambda where=where: client.get(*where)
        yield lambda where=where: client.patch(*where, PATCH)
        yield lambda where=where: client.delete(*where)
        if resource.plural != "secrets":  # they have no status
            yield lambda where=where: client.patch(*where, PATCH, subresource="status")
    yield lambda: client.get(
        Resource("v1", "namespaces", namespaced=False), obj["metadata"]["name"]
    )


def test_a_crd_without_the_subresource_status_does_not_make_its_objects_disappear(admin, namespace):
    """The API server's answer names the object, which exists."""
    group = f"{namespace}.example.org"
    things = Resource(f"{group}/v1", "things")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {
        "group": group,
        "names": {"plural": "things", "kind": "Thing"},
        "scope": "Namespaced",
        "versions": [version, {**version, "name": "v2", "storage": False}],
    }
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": spec,
    }
    install_crds(admin, [crd])
    thing = {"apiVersion": things.api_version, "kind": "Thing"}
    admin.create(things, {**thing, "metadata": {"name": "a", "namespace": namespace}})
    with pytest.raises(ApiError, match="exists, but not its subresource status") as raised:
        admin.patch(things, "a", namespace, {"status": {}}, subresource="status")
    assert not isinstance(raised.value, NotFound)

    unserved = Resource(f"{group}/v3", "things")  # its objects exist in other versions
    for call in (lambda: admin.list(unserved), lambda: admin.get(unserved, "a", namespace)):
        with pytest.raises(ApiError) as raised:
            call()
        assert not isinstance(raised.value, NotFound)
    with pytest.raises(NotServed):
        admin.list(Resource(f"{group}/v1", "others"))
    admin.delete(
        Resource("apiextensions.k8s.io/v1", "customresourcedefinitions", namespaced=False),
        f"things.{group}",
    )


@pytest.mark.parametrize("form", SOME)
def test_orphans_are_only_absent_if_their_kind_is_not_served(through, http, form):
    http.rule = lambda _method, target: answer(form) if "/orphans" in target else target
    with pytest.raises(ApiError):
        read_orphans(through)


def answer(form):
    return Answer(404, NOT_FOUND[form])
