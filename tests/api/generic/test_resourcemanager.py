"""The simulated gardener-resource-manager: applies, reports, deletes, keeps."""

import base64
import json

import pytest
import yaml

from actuator.errors import AlreadyExists, NotFound
from actuator.interface import Resource
from generic.library.managedresources import ManagedResource
from generic.library.managedresources.kind import MANAGED_RESOURCES
from generic.testing.polling import polling
from generic.testing.resourcemanager import ResourceManager
from generic.testing.seed import OneShoot, install_crds
from tests.support.cluster.harness import eventually

CONFIGMAPS = Resource("v1", "configmaps")
SECRETS = Resource("v1", "secrets")
FINALIZER = "resources.gardener.cloud/gardener-resource-manager-seed"


class Managed:
    """A ManagedResource called "mr", and the ConfigMaps that it brings."""

    def __init__(self, admin, namespace):
        self.admin = admin
        self.namespace = namespace
        self.manager = ResourceManager(OneShoot(admin, namespace))

    def create(self, names=("a",), **spec):
        self.write(self.manifests(names))
        where = {"name": "mr", "namespace": self.namespace}
        spec = {"class": "seed", "secretRefs": [{"name": "mr"}], **spec}
        manifest = {"apiVersion": MANAGED_RESOURCES.api_version, "kind": "ManagedResource"}
        self.admin.create(MANAGED_RESOURCES, {**manifest, "metadata": where, "spec": spec})

    def write(self, text):
        where = {"name": "mr", "namespace": self.namespace}
        data = {"all.yaml": base64.b64encode(text.encode()).decode()}
        try:
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": where, "data": data}
            self.admin.create(SECRETS, secret)
        except AlreadyExists:
            self.admin.patch(SECRETS, "mr", self.namespace, {"data": data})

    def manifests(self, names, **meta):
        return yaml.safe_dump_all(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": self.namespace, **meta},
                "data": {"made": "yes"},
            }
            for name in names
        )

    def get(self):
        return self.admin.get(MANAGED_RESOURCES, "mr", self.namespace)

    def patch(self, patch):
        self.admin.patch(MANAGED_RESOURCES, "mr", self.namespace, patch)

    def delete(self):
        self.admin.delete(MANAGED_RESOURCES, "mr", self.namespace)

    def conditions(self):
        found = (self.get().get("status") or {}).get("conditions") or []
        return {condition["type"]: condition for condition in found}

    def is_applied(self):
        condition = self.conditions().get("ResourcesApplied") or {}
        return condition.get("status") == "True"

    def is_gone(self):
        try:
            self.get()
        except NotFound:
            return True
        return False

    def there(self):
        found = self.admin.list(CONFIGMAPS, self.namespace)
        names = {obj["metadata"]["name"] for obj in found}
        return names - {"kube-root-ca.crt"}


@pytest.fixture
def managed(admin, namespace):
    install_crds(admin, [ManagedResource])
    found = Managed(admin, namespace)
    with polling(found.manager.poll, "resource-manager"):
        yield found


def test_the_contents_of_its_secrets_are_applied_and_reported(managed):
    managed.create(("a", "b"))
    eventually(managed.is_applied)
    assert managed.there() == {"a", "b"}
    obj = managed.get()
    assert obj["metadata"]["finalizers"] == [FINALIZER]
    assert obj["status"]["observedGeneration"] == obj["metadata"]["generation"]
    states = {type: condition["status"] for type, condition in managed.conditions().items()}
    assert states == {
        "ResourcesApplied": "True",
        "ResourcesHealthy": "True",
        "ResourcesProgressing": "False",
    }


def test_an_object_no_longer_in_its_secrets_is_deleted(managed):
    managed.create(("a", "b"))
    eventually(managed.is_applied)
    managed.write(managed.manifests(["b", "c"]))
    eventually(lambda: managed.there() == {"b", "c"})


def test_a_changed_object_is_put_right_again(managed):
    managed.create()
    eventually(managed.is_applied)
    managed.admin.patch(CONFIGMAPS, "a", managed.namespace, {"data": {"made": "no"}})
    eventually(
        lambda: managed.admin.get(CONFIGMAPS, "a", managed.namespace)["data"] == {"made": "yes"}
    )


def test_nothing_is_written_while_nothing_changes(managed):
    managed.create()
    eventually(managed.is_applied)
    version = managed.get()["metadata"]["resourceVersion"]
    managed.write(managed.manifests(["a", "b"]))
    told = eventually(
        lambda: managed.get() if len(managed.get()["status"]["resources"]) == 2 else None
    )
    assert told["metadata"]["resourceVersion"] != version
    managed.manager.poll()
    managed.manager.poll()
    assert managed.get() == told


def test_its_objects_are_deleted_before_it_and_it_names_the_remaining_one(managed):
    managed.write(managed.manifests(["a"], finalizers=["example.org/held"]))
    managed.create(())
    managed.write(managed.manifests(["a"], finalizers=["example.org/held"]))
    eventually(lambda: managed.there() == {"a"})
    eventually(lambda: managed.get()["status"].get("resources"))
    managed.delete()
    condition = eventually(
        lambda: next(
            (c for c in managed.conditions().values() if c["reason"] == "DeletionPending"), None
        )
    )
    assert condition["message"] == "waiting for the deletion of ConfigMap a"
    managed.admin.patch(CONFIGMAPS, "a", managed.namespace, {"metadata": {"finalizers": None}})
    eventually(managed.is_gone)
    assert managed.there() == set()


def test_its_objects_stay_where_they_are_to_be_kept(managed):
    managed.create()
    eventually(managed.is_applied)
    managed.patch({"spec": {"keepObjects": True}})
    managed.delete()
    eventually(managed.is_gone)
    assert managed.there() == {"a"}


def test_it_goes_without_its_secret(managed):
    managed.create()
    eventually(managed.is_applied)
    managed.admin.delete(SECRETS, "mr", managed.namespace)
    managed.delete()
    eventually(managed.is_gone)
    assert managed.there() == set()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "Secret mr: all.yaml is no YAML"),
        ("just text", "Secret mr: all.yaml is no manifest"),
        (
            json.dumps({"apiVersion": "v1", "kind": "Nonsense", "metadata": {"name": "a"}}),
            "nonsenses",
        ),
    ],
)
def test_an_object_that_cannot_be_applied_is_reported(managed, text, words):
    managed.create()
    managed.write(text)
    condition = eventually(
        lambda: next(
            (c for c in managed.conditions().values() if c["reason"] == "ApplyFailed"), None
        )
    )
    assert condition["status"] == "False"
    assert words in condition["message"]


def test_managed_resources_of_another_class_or_to_be_ignored_are_left_alone(managed):
    managed.create(**{"class": None})
    managed.manager.poll()
    assert "finalizers" not in managed.get()["metadata"]
    managed.patch(
        {
            "spec": {"class": "seed"},
            "metadata": {"annotations": {"resources.gardener.cloud/ignore": "true"}},
        }
    )
    managed.manager.poll()
    assert "finalizers" not in managed.get()["metadata"]
    assert managed.there() == set()
