"""Which error each answer of an API server becomes: only one that names the object is about it."""

import pytest

from actuator.errors import AlreadyExists, ApiError, Conflict, NotFound
from generic.kube import client
from tests.support.objects.not_found import DENIED, NAMED, NOT_FOUND, status

PLACE = "/apis/extensions.gardener.cloud/v1alpha1/namespaces/a/infrastructures"
PATHS = [f"{PLACE}/infra", f"{PLACE}/infra/status", PLACE]


def error(path: str, code: int, body: bytes) -> ApiError:
    return client._error("GET", path, code, body, {})


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("form", NOT_FOUND)
def test_a_404_about_something_else_is_no_missing_object(path, form):
    found = error(path, 404, NOT_FOUND[form])
    assert (type(found), found.status) == (ApiError, 404)
    assert len(found.about) < 600


def test_the_law_finds_a_client_that_believes_each_404(monkeypatch):
    """Planted: the status alone decides."""
    monkeypatch.setattr(client, "_requested", lambda _path: None)
    assert all(isinstance(error(PATHS[0], 404, body), NotFound) for body in NOT_FOUND.values())


@pytest.mark.parametrize(
    ("path", "details"),
    [
        (PATHS[0], NAMED),
        (PATHS[1], NAMED),
        ("/apis/extensions.gardener.cloud/v1alpha1/clusters/a", {**NAMED, "kind": "clusters"}),
        ("/api/v1/namespaces/a", {"kind": "namespaces"}),
        ("/api/v1/namespaces/a/status", {"kind": "namespaces"}),
        ("/api/v1/namespaces/a/finalize", {"kind": "namespaces"}),
        ("/api/v1/namespaces/status", {"kind": "namespaces", "name": "status"}),
        ("/api/v1/namespaces/a/secrets/status", {"kind": "secrets", "name": "status"}),
        ("/api/v1/namespaces/a/secrets/a%3Ab", {"kind": "secrets", "name": "a:b"}),
        ("/apis/apps/v1/namespaces/b/deployments/a", {"group": "apps", "kind": "deployments"}),
        ("/api/v1/namespaces/namespaces/events/a", {"kind": "events"}),
    ],
)
def test_a_404_that_names_the_requested_object_is_a_missing_object(path, details):
    name = details.get("name") or "a"
    if path.endswith("/clusters/a"):
        name = "a"
    found = error(path, 404, status({**details, "name": name}))
    assert type(found) is NotFound
    assert found.about.endswith(f"/{name}")


def test_an_object_counts_as_created_if_the_answer_names_it():
    assert type(error(PLACE, 409, status(NAMED, reason="AlreadyExists"))) is AlreadyExists


@pytest.mark.parametrize(
    ("details", "message"),
    [
        ({**NAMED, "kind": "workers"}, "exists"),
        ({"kind": "resourcequotas", "name": "infra"}, "exists"),
        ({}, "exists"),
        (NAMED, DENIED),
    ],
)
def test_an_object_does_not_count_as_created_if_the_answer_is_about_another(details, message):
    found = error(PLACE, 409, status(details, message, "AlreadyExists"))
    assert type(found) is Conflict
