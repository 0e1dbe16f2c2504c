"""After deploy(A), deploy(B) an object equals deploy(B) on an empty cluster, for every helper.

Also if the Go library wrote A, or an earlier version of this library, which created by POST. Every
finalizer of another controller is still there after the creation and two updates.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from datetime import UTC, datetime
from random import Random
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from actuator import Actuator
from actuator.codec import decode
from actuator.errors import Forbidden, NotFound
from actuator.interface import (
    Client,
    ExternalResource,
    Provisioned,
    Resource,
    SeedObjects,
    resource_of,
)
from actuator.meta import Base64, Raw
from actuator.v1alpha1 import BackupEntry, Cluster, OperatingSystemConfig, Worker, WorkerPool
from extensions.externaldatabase.connection import ensure_connection
from extensions.externaldatabase.endpoint import DatabaseEndpoint
from extensions.externaldatabase.kind import ExternalDatabase
from extensions.externaldatabase.server import Claim
from extensions.relations.kinds import Team
from extensions.relations.owned import Teams
from generic.kube.client import HttpClient, path_of
from generic.kube.crds import crd
from generic.kube.delegating import DelegatingClient
from generic.library import managedresources, seedobjects
from generic.library.backupentry import GenericBackupEntry
from generic.library.lookup import find
from generic.library.machines import MACHINE_CLASSES, MACHINE_DEPLOYMENTS, MACHINE_KINDS
from generic.library.managedresources import ManagedResource
from generic.library.managedresources.kind import MANAGED_RESOURCES
from generic.library.manifests import manifest, manifest_of
from generic.library.secrets import ShootAccess
from generic.library.webhooks.publishing import publish
from generic.library.worker.group import MachineGroup
from generic.library.worker.objects import look
from generic.library.worker.rollout import apply_classes, apply_deployments
from generic.library.worker.state import DeploymentState, recreate
from generic.reconciler.behaviours.user_data import WritesUserData
from generic.reconciler.orphans import ORPHANS, OrphanedFrom, OrphanReason
from generic.reconciler.orphans.kind import SHOOT_LABEL
from generic.reconciler.orphans.record import record
from generic.testing.seed import install, install_crds
from tests.support.objects.stand_ins import UNUSED

SECRETS = Resource("v1", "secrets")
CONFIG_MAPS = Resource("v1", "configmaps")
ADMISSION = "admissionregistration.k8s.io/v1"
WEBHOOKS = Resource(ADMISSION, "validatingwebhookconfigurations", namespaced=False)
POLICIES = Resource(ADMISSION, "validatingadmissionpolicies", namespaced=False)
BINDINGS = Resource(ADMISSION, "validatingadmissionpolicybindings", namespaced=False)
FOREIGN = "example.org/held"
GUARD = "machine.sapcloud.io/machine-controller-manager"
OWN = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields")
GO = "gardener-extension-provider-x"
EARLIER = "actuator"
CLASSES = SeedObjects(MACHINE_CLASSES, finalizers=[GUARD])
MANAGED = SeedObjects(MANAGED_RESOURCES, label_selector="app=whole")
MAPS = SeedObjects(Resource("v1", "configmaps"), label_selector="app=whole")

Content = dict[str, str]
"""The data that the author wants this time: some names with values."""
Deploy = Callable[[Client, str, Content], None]


def encoded(content: Content) -> Content:
    return {key: str(Base64.encode_bytes(text.encode())) for key, text in content.items()}


def marked(content: Content) -> Raw:
    return {f"example.org/{key}": text for key, text in content.items()}


def seed_object(client: Client, namespace: str, content: Content) -> None:
    wanted = manifest(
        MACHINE_CLASSES.api_version,
        "MachineClass",
        "whole",
        namespace,
        marked(content),
        provider="x",
        providerSpec={"settings": content, "list": sorted(content)},
        secretRef={"name": "whole", "namespace": namespace},
    )
    if len(content) % 2:
        wanted["nodeTemplate"] = {"capacity": content}
    seedobjects.ensure(client, CLASSES, wanted)


def strict(client: Client, namespace: str, content: Content) -> None:
    """A kind whose schema accepts no null in place of a map."""
    spec = {"injectLabels": content, "secretRefs": []}
    wanted = manifest(MANAGED_RESOURCES.api_version, "ManagedResource", "strict", namespace)
    seedobjects.ensure(client, MANAGED, {**wanted, "spec": spec})


def unguarded(client: Client, namespace: str, content: Content) -> None:
    wanted = manifest("v1", "ConfigMap", "whole", namespace, marked(content), data=content)
    wanted["metadata"]["annotations"] = marked(content)
    seedobjects.ensure(client, MAPS, wanted)


def group(content: Content) -> MachineGroup:
    pool = decode(WorkerPool, {"name": "pool", "minimum": 1, "maximum": 1})
    return MachineGroup(
        name="whole",
        class_name="whole",
        pool=pool,
        minimum=1,
        maximum=1,
        max_surge=1,
        max_unavailable=0,
        provider="x",
        provider_spec={"tags": content, **content},
        secret_data={key: text.encode() for key, text in content.items()},
        labels=content,
        annotations=content,
        node_template={"capacity": content} if len(content) % 2 else None,
        autoscaler_annotations={f"example.org/{key}": content.get(key, "") for key in NAMES},
    )


def machine_class(client: Client, namespace: str, content: Content) -> None:
    apply_classes(client, namespace, [group(content)])


def deployment(client: Client, namespace: str, content: Content) -> None:
    worker = decode(Worker, {"metadata": {"name": "worker", "namespace": namespace}})
    found = look(client, namespace)
    apply_deployments(client, worker, Cluster(), [group(content)], found, {})


def managed(client: Client, namespace: str, content: Content) -> None:
    objects = [manifest("v1", "ConfigMap", "one", "kube-system", data=content)]
    managedresources.deploy_for_shoot(client, "whole", namespace, objects)


def access(client: Client, namespace: str, content: Content) -> None:
    ShootAccess(name="whole").ensure(client, namespace)


class Backups(GenericBackupEntry):
    def etcd_secret_data(self, ctx: Any, entry: Any, data: dict[str, bytes]) -> dict[str, bytes]:
        return data

    def delete_entry(self, ctx: Any, entry: Any) -> None: ...


def backup(client: Client, namespace: str, content: Content) -> None:
    name = "-".join(["given", *content.values(), *content])
    there(client, SECRETS, manifest("v1", "Secret", name, namespace, data=encoded(content)))
    spec = {"bucketName": "b", "secretRef": {"name": name, "namespace": namespace}}
    entry = decode(BackupEntry, {"metadata": {"name": f"{namespace}--uid"}, "spec": spec})
    Backups().reconcile(SimpleNamespace(client=client), entry, UNUSED)


def owner(client: Client, cls: Any, namespace: str, name: str, spec: Raw) -> Any:
    """A real one: else the garbage collector deletes the object."""
    return decode(
        cls, there(client, resource_of(cls.KIND), manifest_of(cls, name, namespace, spec=spec))
    )


def there(client: Client, resource: Resource, wanted: Raw) -> Raw:
    meta = wanted["metadata"]
    found = find(client, resource, meta["name"], meta.get("namespace", ""))
    return found or client.create(resource, wanted)


def user_data(client: Client, namespace: str, content: Content) -> None:
    class Data(Actuator[OperatingSystemConfig]):
        def delete(self, ctx: Any, obj: Any, cluster: Any) -> None: ...

        def reconcile(self, ctx: Any, obj: Any, cluster: Any) -> Provisioned:
            return Provisioned(user_data=json.dumps(content).encode())

    spec = {"type": "x", "purpose": "provision", "units": [], "files": []}
    config = owner(client, OperatingSystemConfig, namespace, "whole", spec)
    WritesUserData(Data()).reconcile(SimpleNamespace(client=client), config, UNUSED)


def connection(client: Client, namespace: str, content: Content) -> None:
    spec = {"name": "data", "engine": "postgres"}
    obj = owner(client, ExternalDatabase, namespace, "whole", spec)
    end = DatabaseEndpoint(host="h", port=1, user="u", password="p", ca=content.get("a", ""))
    server = SimpleNamespace(endpoint=end, scheme="postgres")
    claim = Claim(database=content.get("b", "none"), login="l", owner="o")
    ensure_connection(SimpleNamespace(client=client), obj, claim, server)


def webhooks(client: Client, namespace: str, content: Content) -> None:
    webhook = {
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [],
        "namespaceSelector": {"matchLabels": content} if "a" in content else {},
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    entries = [{"name": f"{key}.x.example.org", **webhook} for key in ["always", *content]]
    kind = "ValidatingWebhookConfiguration"
    meta = {"name": "whole", "labels": {"a": "b"}}
    wanted = {"apiVersion": ADMISSION, "kind": kind, "metadata": meta, "webhooks": entries}
    publish(client, WEBHOOKS, wanted)


@attrs.frozen
class Helper:
    """A function that writes objects, and the objects."""

    deploy: Deploy
    objects: tuple[tuple[Resource, str], ...]


HELPERS = [
    Helper(seed_object, ((MACHINE_CLASSES, "whole"),)),
    Helper(strict, ((MANAGED_RESOURCES, "strict"),)),
    Helper(unguarded, ((CONFIG_MAPS, "whole"),)),
    Helper(machine_class, ((SECRETS, "whole"), (MACHINE_CLASSES, "whole"))),
    Helper(deployment, ((MACHINE_DEPLOYMENTS, "whole"),)),
    Helper(managed, ((MANAGED_RESOURCES, "whole"),)),
    Helper(access, ((SECRETS, "shoot-access-whole"),)),
    Helper(backup, ((SECRETS, "etcd-backup"),)),
    Helper(user_data, ((SECRETS, "osc-result-whole"),)),
    Helper(webhooks, ((WEBHOOKS, "whole"),)),
    Helper(connection, ((SECRETS, "whole-connection"),)),
]
EACH = pytest.mark.parametrize("helper", HELPERS, ids=lambda item: item.deploy.__name__)
NAMES = ("a", "b", "c", "d")


def generated(rng: Random) -> Content:
    return {name: rng.choice("xyz") for name in NAMES if rng.random() < 0.5}


@pytest.fixture(scope="session")
def kinds(admin, environment):
    install(environment, [ManagedResource, ExternalDatabase, Team])
    install_crds(admin, [crd(cls) for cls in MACHINE_KINDS])


@pytest.fixture
def client(admin, kinds) -> HttpClient:
    return admin


def read(client: Client, namespace: str, helper: Helper) -> list[Raw]:
    return [client.get(resource, name, namespace) for resource, name in helper.objects]


def plain(obj: Raw) -> Raw:
    """The object without fields of the API server, and without a generated password."""
    found = deepcopy(obj)
    meta = {key: item for key, item in found["metadata"].items() if key not in OWN}
    for key in ("password", "uri"):
        (found.get("data") or {}).pop(key, None)
    return {**found, "metadata": meta}


def remove(client: Client, namespace: str, helper: Helper) -> list[Raw]:
    """Remove the objects; return them as they were."""
    found = read(client, namespace, helper)
    for (resource, name), obj in zip(helper.objects, found, strict=True):
        client.delete(resource, name, namespace)
        if obj["metadata"].get("finalizers"):
            client.patch(resource, name, namespace, {"metadata": {"finalizers": None}})
    return found


def on_an_empty_cluster(client: Client, namespace: str, helper: Helper, content: Content):
    helper.deploy(client, namespace, content)
    return [plain(obj) for obj in remove(client, namespace, helper)]


def write_as(
    manager: str, client: HttpClient, namespace: str, helper: Helper, content: Content
) -> None:
    """Create the objects by POST, as a former writer left them: with more than anyone wants."""
    for (resource, _), obj in zip(
        helper.objects, on_an_empty_cluster(client, namespace, helper, content), strict=True
    ):
        meta = obj["metadata"]
        for part in ("annotations", "labels") if resource != MANAGED_RESOURCES else ():
            if helper.deploy not in (deployment, user_data, webhooks):
                meta[part] = {**(meta.get(part) or {}), f"{ACCOUNT}/old": "yes"}
        if obj["kind"] == "Secret" and helper.deploy is not access:
            obj["data"] = {**(obj.get("data") or {}), "old": "eA=="}
        if obj["kind"] == "MachineClass":
            obj["credentialsSecretRef"] = {"name": "old", "namespace": namespace}
        if obj.get("webhooks"):
            obj["webhooks"].append({**obj["webhooks"][0], "name": "old.x.example.org"})
        path = path_of(resource, namespace)
        query = {"fieldManager": manager}
        client.send("POST", path, query=query, body=json.dumps(obj).encode())


ACCOUNT = "serviceaccount.resources.gardener.cloud"


@EACH
@pytest.mark.parametrize("writer", ["", GO, EARLIER], ids=["ours", "go", "post"])
def test_an_object_is_as_if_it_had_been_written_once(client, namespace, helper, writer):
    rng = Random(f"{helper.deploy.__name__} {writer}")
    for _ in range(3):
        first = generated(rng)
        second = generated(rng)
        third = generated(rng)
        wanted = on_an_empty_cluster(client, namespace, helper, third)
        if writer:
            write_as(writer, client, namespace, helper, first)
        else:
            helper.deploy(client, namespace, first)
        if rng.random() < 0.5:
            helper.deploy(client, namespace, second)
        helper.deploy(client, namespace, third)
        found = [plain(obj) for obj in remove(client, namespace, helper)]
        assert found == wanted, f"after {first}, {second}"


@EACH
def test_finalizers_and_fields_of_other_controllers_stay(client, namespace, helper):
    """The fields of the creation too, which a controller found there."""
    helper.deploy(client, namespace, {"a": "x"})
    for (resource, name), obj in zip(helper.objects, read(client, namespace, helper), strict=True):
        before = obj["metadata"].get("finalizers") or []
        patch = json.dumps({"metadata": {"finalizers": [*before, FOREIGN]}}).encode()
        where = path_of(resource, namespace, name)
        query = {"fieldManager": "mcm"}
        kind = "application/merge-patch+json"
        client.send("PATCH", where, query=query, body=patch, content_type=kind)
    guarded = [obj["metadata"]["finalizers"] for obj in read(client, namespace, helper)]
    for content in ({"b": "y"}, {"c": "z"}):
        helper.deploy(client, namespace, content)
        found = [obj["metadata"]["finalizers"] for obj in read(client, namespace, helper)]
        assert found == guarded
    remove(client, namespace, helper)


def test_a_finalizer_that_its_controller_removed_does_not_come_back(client, namespace):
    helper = HELPERS[0]
    seed_object(client, namespace, {"a": "x"})
    assert read(client, namespace, helper)[0]["metadata"]["finalizers"] == [GUARD]
    client.patch(MACHINE_CLASSES, "whole", namespace, {"metadata": {"finalizers": None}})
    for value in ("y", "z"):
        seed_object(client, namespace, {"a": value})
        assert "finalizers" not in read(client, namespace, helper)[0]["metadata"]


@pytest.mark.parametrize("deploy", [seed_object, strict])
def test_a_map_becomes_empty_and_keeps_entries_of_others(client, namespace, deploy):
    [(resource, name)] = next(helper.objects for helper in HELPERS if helper.deploy is deploy)
    deploy(client, namespace, {"a": "x"})
    deploy(client, namespace, {})
    part, field = (
        ("providerSpec", "settings") if deploy is seed_object else ("spec", "injectLabels")
    )
    assert client.get(resource, name, namespace)[part][field] == {}
    added = json.dumps({part: {field: {"theirs": "1"}}}).encode()
    where = path_of(resource, namespace, name)
    kind = "application/merge-patch+json"
    for _ in range(2):
        deploy(client, namespace, {})
        client.send("PATCH", where, query={"fieldManager": "o"}, body=added, content_type=kind)
        deploy(client, namespace, {})
        assert client.get(resource, name, namespace)[part][field] == {"theirs": "1"}


def test_a_token_that_another_controller_wrote_stays(client, namespace):
    """gardener-resource-manager's, also while the request changes."""
    write_as(GO, client, namespace, HELPERS[6], {})
    name = "shoot-access-whole"
    renewed = {f"{ACCOUNT}/token-renew-timestamp": "2026-01-01T00:00:00Z"}
    patch = {"metadata": {"annotations": renewed}, "data": {"token": "eA=="}}
    client.send(
        "PATCH",
        path_of(SECRETS, namespace, name),
        query={"fieldManager": "gardener-resource-manager"},
        body=json.dumps(patch).encode(),
        content_type="application/merge-patch+json",
    )
    for _ in range(2):
        access(client, namespace, {})
        found = client.get(SECRETS, name, namespace)
        assert found["data"] == {"token": "eA=="}
        assert f"{ACCOUNT}/old" not in found["metadata"]["annotations"]
        assert renewed.items() <= found["metadata"]["annotations"].items()


class Late(DelegatingClient):
    """The API server, where the object is deleted just after it was read."""

    def get(self, resource: Any, name: str, namespace: str = "") -> Any:
        found = self._inner.get(resource, name, namespace)
        self._inner.patch(resource, name, namespace, {"metadata": {"finalizers": None}})
        self._inner.delete(resource, name, namespace)
        return found


def test_an_object_that_was_deleted_meanwhile_is_not_created_without_its_finalizers(
    client, namespace
):
    seed_object(client, namespace, {"a": "x"})
    seed_object(client, namespace, {"a": "y"})
    with pytest.raises(Exception, match="uid"):
        seed_object(Late(client), namespace, {"a": "z"})
    with pytest.raises(NotFound):
        client.get(MACHINE_CLASSES, "whole", namespace)


@pytest.fixture
def nothing_is_created(client, namespace) -> Iterator[Callable[[], None]]:
    """Makes a policy refuse every creation in the namespace, as in one that is terminating."""
    in_it = f"object.metadata.?namespace.orValue('') == '{namespace}'"
    ours = f"{in_it} || object.metadata.?name.orValue('').startsWith('{namespace}')"
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "failurePolicy": "Ignore",
        "matchConditions": [{"name": "ours", "expression": ours}],
        "validations": [{"expression": "false", "reason": "Forbidden", "message": "no creates"}],
    }
    bound = {"policyName": namespace, "validationActions": ["Deny"]}

    def refuse() -> None:
        client.create(POLICIES, {"metadata": {"name": namespace}, "spec": spec})
        client.create(BINDINGS, {"metadata": {"name": namespace}, "spec": bound})
        path = path_of(CONFIG_MAPS, namespace)
        query = {"dryRun": "All"}
        probe = json.dumps({"metadata": {"generateName": "probe-"}}).encode()
        with suppress(Forbidden):
            while True:
                client.send("POST", path, query=query, body=probe)

    yield refuse
    for resource in (POLICIES, BINDINGS):
        with suppress(NotFound):
            client.delete(resource, namespace)


def orphan(client: Client, namespace: str, content: Content) -> None:
    left_by = OrphanedFrom(
        api_version="x/v1", kind="X", namespace=namespace, name="x", uid=namespace
    )
    what = ExternalResource(type="VPC", id="vpc-1")
    record(client, left_by, what, OrphanReason.FORCED, "why", datetime.now(UTC))


def machines(client: Client, namespace: str, content: Content) -> None:
    one = {"metadata": {"name": "one"}, "spec": {}}
    recreate(client, namespace, [DeploymentState(machine_sets=[one], machines=[one])])


def team(client: Client, namespace: str, content: Content) -> None:
    obj = owner(client, Team, "", namespace, {"type": "x", "namespace": namespace})
    obj.spec = attrs.evolve(obj.spec, settings=content)
    Teams().reconcile(SimpleNamespace(client=client), obj, UNUSED)


def test_nothing_is_created_that_exists(client, namespace, nothing_is_created):
    """Where creations are refused before the API server looks whether the object exists."""
    deploys = [*(helper.deploy for helper in HELPERS), orphan, machines, team]
    for deploy in deploys:
        deploy(client, namespace, {"a": "x"})
    nothing_is_created()
    for deploy in deploys:
        deploy(client, namespace, {"a": "x"})
    for deploy in deploys:
        if deploy not in (managed, backup):  # whose Secret is another one
            deploy(client, namespace, {"a": "y"})
    of_test = {"labelSelector": f"{SHOOT_LABEL}={namespace}"}
    client.send("DELETE", path_of(ORPHANS), query=of_test)
