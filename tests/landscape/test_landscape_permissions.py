"""Gardenlets, programs and users of a real garden have the permissions that Gardener gives them."""

from __future__ import annotations

import http.client
import json
import ssl
from functools import partial
from pathlib import Path

import pytest

from actuator import Resource
from actuator.errors import ApiError, Forbidden, Unavailable
from generic.kube.client import connect
from generic.kube.clusters import NAMESPACES
from generic.testing.landscape.admission import admission_registration
from generic.testing.landscape.garden import SHOOTS
from generic.testing.landscape.gardenobjects import (
    ADMISSION_CONTROLLER,
    APISERVER,
    CONTROLLERS,
    CORE,
    GARDEN,
    credentials,
    project,
    secret,
)
from generic.testing.landscape.programs import find_gardener
from tests.support.cluster.harness import PATIENCE, eventually
from tests.support.objects.garden import SECRETS, SEEDS, seed, shoot

LEASES = Resource("coordination.k8s.io/v1", "leases")
SEED_LEASES = "gardener-system-seed-lease"
BUCKETS = Resource(CORE, "backupbuckets", namespaced=False)
PROJECTS = Resource(CORE, "projects", namespaced=False)
LABELLED = {"metadata": {"labels": {"a": "b"}}}
NO_PATH = "no relationship found"
NOT_YOURS = 'object does not belong to seed "one"'


def lease(name):
    meta = {"name": name, "namespace": SEED_LEASES}
    return {"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": meta}


def bucket(name, seed):
    reference = {"apiVersion": "v1", "kind": "Secret", "name": f"dns-{seed}", "namespace": GARDEN}
    provider = {"type": "local", "region": "here"}
    spec = {"seedName": seed, "provider": provider, "credentialsRef": reference}
    return {"apiVersion": CORE, "kind": "BackupBucket", "metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module")
def seeds(garden, offered):
    """The clients of two gardenlets, by the names of their seeds, which are registered."""
    clients = {name: connect(garden.seed_kubeconfig(name)) for name in ("one", "two")}
    for name, client in clients.items():
        garden.apply([secret(GARDEN, f"dns-{name}", {"key": name}, {})])
        client.create(SEEDS, seed(name))
        client.create(BUCKETS, bucket(f"of-{name}", name))
    for name, client in clients.items():
        eventually_allowed(partial(client.get, SECRETS, f"dns-{name}", GARDEN))
        eventually_allowed(partial(client.patch, BUCKETS, f"of-{name}", "", LABELLED))
    yield clients
    for name in clients:
        garden.client.delete(BUCKETS, f"of-{name}")
        garden.client.delete(SEEDS, name)
    eventually(lambda: garden.client.list(SEEDS) == [])


def eventually_allowed(request, seconds=PATIENCE):
    """The SeedAuthorizer sees a new object a moment later, as it does all after a restart."""

    def answer():
        try:
            return request()
        except ApiError:
            return None

    return eventually(answer, seconds)


@pytest.fixture
def one(seeds):
    return seeds["one"]


def test_a_gardenlet_works_with_objects_of_its_seed(one):
    assert one.patch(SEEDS, "one", "", LABELLED)["metadata"]["labels"]["a"] == "b"
    status = {"status": {"kubernetesVersion": "v1.2.3"}}
    changed = one.patch(SEEDS, "one", "", status, subresource="status")
    assert changed["status"]["kubernetesVersion"] == "v1.2.3"
    one.create(LEASES, lease("one"))
    one.patch(LEASES, "one", SEED_LEASES, {"spec": {"holderIdentity": "one"}})
    assert one.patch(BUCKETS, "of-one", "", LABELLED)["metadata"]["labels"]["a"] == "b"
    assert eventually(lambda: one.list(SECRETS, "seed-one")) is not None
    assert one.list(SHOOTS, label_selector="name.seed.gardener.cloud/one=true") == []


REFUSED = {
    "read-secret": (lambda c: c.get(SECRETS, "dns-two", GARDEN), NO_PATH),
    "list-secrets": (lambda c: c.list(SECRETS, GARDEN), "only the following verbs are allowed"),
    "list-secrets-of-seed": (lambda c: c.list(SECRETS, "seed-two"), "only the following verbs"),
    "list-shoots": (lambda c: c.list(SHOOTS), "must specify field or label selector"),
    "update-seed": (lambda c: c.patch(SEEDS, "two", "", LABELLED), NO_PATH),
    "delete-seed": (lambda c: c.delete(SEEDS, "two"), NO_PATH),
    "create-seed": (lambda c: c.create(SEEDS, seed("three")), NOT_YOURS),
    "create-lease": (lambda c: c.create(LEASES, lease("two")), NOT_YOURS),
    "create-bucket": (lambda c: c.create(BUCKETS, bucket("new", "two")), NOT_YOURS),
    "update-bucket": (lambda c: c.patch(BUCKETS, "of-two", "", LABELLED), NO_PATH),
    "delete-bucket": (lambda c: c.delete(BUCKETS, "of-two"), NO_PATH),
    "create-secret": (lambda c: c.create(SECRETS, secret(GARDEN, "x", {}, {})), NOT_YOURS),
}


@pytest.mark.parametrize("refused", REFUSED)
def test_a_gardenlet_is_refused_objects_of_another_seed(one, refused):
    request, why = REFUSED[refused]
    with pytest.raises(Forbidden, match=why):
        request(one)


def test_answers_of_the_authorizer_are_not_cached(garden, one):
    garden.apply([secret(GARDEN, "late", {}, {})])
    read = partial(one.get, SECRETS, "late", GARDEN)
    with pytest.raises(Forbidden, match=NO_PATH):
        read()
    reference = {"apiVersion": "v1", "kind": "Secret", "name": "late"}
    resources = [{"name": "late", "resourceRef": reference}]
    garden.client.patch(SEEDS, "one", "", {"spec": {"resources": resources}})
    eventually_allowed(read, 15)
    garden.client.patch(SEEDS, "one", "", {"spec": {"resources": None}})
    eventually(lambda: is_refused(read), 15)


def is_refused(request):
    try:
        request()
    except Forbidden:
        return True
    return False


def test_only_the_group_of_gardenlets_makes_one(garden, seeds):
    assert seeds["one"].get(SECRETS, "dns-one", GARDEN)
    client = connect(garden.cluster.user_kubeconfig("gardener.cloud:system:seed:one"))
    with pytest.raises(Forbidden):
        client.get(SECRETS, "dns-one", GARDEN)


def test_without_the_authorizer_a_gardenlet_has_no_permissions(garden, one):
    garden.processes.kill(ADMISSION_CONTROLLER)
    try:
        with pytest.raises(Unavailable, match="/webhooks/auth/seed"):
            one.get(SECRETS, "dns-one", GARDEN)
    finally:
        configuration = garden.directory / f"{ADMISSION_CONTROLLER}.json"
        command = [find_gardener(print), ADMISSION_CONTROLLER, f"--config={configuration}"]
        garden.processes.start(ADMISSION_CONTROLLER, command)
    eventually_allowed(partial(one.get, SECRETS, "dns-one", GARDEN))


def test_an_extension_in_the_namespace_of_its_seed_reads_as_its_gardenlet(garden, seeds):
    user = "system:serviceaccount:seed-one:extension-local"
    groups = ["system:serviceaccounts", "system:serviceaccounts:seed-one"]
    client = connect(garden.cluster.user_kubeconfig(user, groups))
    assert client.get(SECRETS, "dns-one", GARDEN)
    with pytest.raises(Forbidden, match=NO_PATH):
        client.get(SECRETS, "dns-two", GARDEN)


MEMBERS = {"owner": "anna", "admin": "ben", "viewer": "carl"}


@pytest.fixture(scope="module")
def members(garden, offered):
    """The clients of the members of a Project, by their roles, and of another user."""
    owned = project("team", owner="anna")
    owned["spec"]["members"] = [
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name, "role": role}
        for role, name in MEMBERS.items()
        if role != "owner"
    ]
    garden.apply([owned])
    eventually(lambda: garden.client.get(PROJECTS, "team")["status"]["phase"] == "Ready")
    return {
        role: connect(garden.cluster.user_kubeconfig(name))
        for role, name in {**MEMBERS, "none": "dora"}.items()
    }


@pytest.mark.parametrize("role", ["owner", "admin"])
def test_a_member_of_a_project_creates_a_shoot(members, role):
    for resource, manifest in zip(
        (SECRETS, Resource("security.gardener.cloud/v1alpha1", "credentialsbindings")),
        credentials("garden-team", "local", {"token": "none"}),
        strict=True,
    ):
        members[role].apply(resource, manifest)
    wanted = shoot("garden-team")
    wanted["metadata"]["name"] = role
    assert members[role].create(SHOOTS, wanted)["spec"]["region"] == "here"
    assert members["viewer"].get(SHOOTS, role, "garden-team")
    delete_shoot(members[role], role)


def delete_shoot(client, name):
    confirmed = {"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}}
    client.patch(SHOOTS, name, "garden-team", confirmed)
    client.delete(SHOOTS, name, "garden-team")


@pytest.mark.parametrize(
    ("role", "request_"),
    [
        ("viewer", lambda c: c.create(SHOOTS, shoot("garden-team"))),
        ("viewer", lambda c: c.list(SECRETS, "garden-team")),
        ("none", lambda c: c.list(SHOOTS, "garden-team")),
        ("owner", lambda c: c.list(SHOOTS, "garden-dev")),
        ("owner", lambda c: c.create(SEEDS, seed("three"))),
    ],
)
def test_others_are_refused(members, role, request_):
    with pytest.raises(Forbidden, match="cannot"):
        request_(members[role])


KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "users": [{"name": "x", "user": {"exec": {"command": "sh", "apiVersion": "v1"}}}],
    "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    "current-context": "x",
}


@pytest.mark.usefixtures("offered")
def test_admission_refuses_in_gardeners_words(garden):
    with pytest.raises(ApiError, match="validate-namespace-deletion"):
        garden.client.delete(NAMESPACES, "garden-dev")
    hostile = secret("garden-dev", "x", {"kubeconfig": json.dumps(KUBECONFIG)}, {})
    with pytest.raises(ApiError, match="validate-kubeconfig-secrets"):
        garden.client.create(SECRETS, hostile)
    restricted = {"gardener.cloud/update-restriction": "true"}
    with pytest.raises(Forbidden, match="update-restriction"):
        garden.client.create(SECRETS, secret("garden-dev", "x", {}, restricted))


@pytest.mark.usefixtures("offered")
def test_admission_labels_the_credentials_of_a_provider(garden):
    label = "provider.shoot.gardener.cloud/local"
    without = {"metadata": {"labels": {label: None}}}
    changed = garden.client.patch(SECRETS, "account", "garden-dev", without)
    assert changed["metadata"]["labels"][label] == "true"


def test_each_registered_webhook_is_served(garden):
    configuration = json.loads((garden.directory / f"{ADMISSION_CONTROLLER}.json").read_text())
    server = configuration["server"]["webhooks"]
    trusted = ssl.create_default_context(cadata=garden.authority.key_pair.certificate.decode())
    trusted.check_hostname = False
    registrations = admission_registration(b"")[1:]
    webhooks = [webhook for registration in registrations for webhook in registration["webhooks"]]
    paths = [webhook["clientConfig"]["service"]["path"] for webhook in webhooks]
    assert len(set(paths)) == len(paths) == 10
    for path in (*paths, "/webhooks/none"):
        connection = http.client.HTTPSConnection("127.0.0.1", server["port"], context=trusted)
        connection.request("POST", path, b"{}", {"Content-Type": "application/json"})
        assert (connection.getresponse().status == 404) == (path == "/webhooks/none")
        connection.close()


def test_the_scheduler_is_no_administrator(garden):
    configuration = json.loads((garden.directory / "gardener-scheduler.json").read_text())
    client = connect(Path(configuration["clientConnection"]["kubeconfig"]))
    assert client.list(SHOOTS) is not None
    with pytest.raises(Forbidden):
        client.list(SECRETS, GARDEN)


@pytest.mark.usefixtures("seeds")
def test_no_program_lacks_a_permission(garden, members):
    for manifest in credentials("garden-team", "local", {"token": "none"}):
        garden.apply([manifest])
    members["owner"].create(SHOOTS, shoot("garden-team"))
    handled = partial(members["owner"].get, SHOOTS, "mine", "garden-team")
    eventually(lambda: handled()["status"]["lastOperation"]["description"])
    for name in (APISERVER, *CONTROLLERS):
        log = garden.processes.log(name).read_text()
        user = f"system:serviceaccount:kube-system:{name}"
        assert [line for line in log.splitlines() if user in line and "cannot" in line] == []
    delete_shoot(members["owner"], "mine")
