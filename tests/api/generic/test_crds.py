"""CRDs made from classes: accepted in strict mode, and objects are stored unchanged."""

import json

import pytest

from actuator.codec import decode, encode
from actuator.errors import Invalid
from actuator.interface import resource_of
from actuator.v1alpha1 import KINDS, Cluster, DNSRecord, Network, OperatingSystemConfig
from generic.kube.client import JSON, path_of
from generic.kube.crds import crd
from generic.testing.seed import CRDS
from tests.support.objects.builders import cluster, infrastructure
from tests.support.objects.wire import every_field_of

each = pytest.mark.parametrize("cls", KINDS, ids=lambda cls: cls.__name__)


@pytest.mark.parametrize("cls", [*KINDS, Cluster], ids=lambda cls: cls.__name__)
def test_the_api_server_accepts_each_in_strict_mode(admin, cls):
    manifest = crd(cls)
    name = manifest["metadata"]["name"]
    version = admin.get(CRDS, name)["metadata"]["resourceVersion"]
    manifest["metadata"]["resourceVersion"] = version
    body = json.dumps(manifest).encode()
    query = {"fieldValidation": "Strict", "dryRun": "All"}
    admin.send("PUT", path_of(CRDS, name=name), query=query, body=body, content_type=JSON)
    conditions = admin.get(CRDS, name)["status"]["conditions"]
    by_type = {condition["type"]: condition["status"] for condition in conditions}
    assert by_type["Established"] == "True"
    assert by_type.get("NonStructuralSchema", "False") == "False"


@pytest.fixture
def stored(admin, namespace):
    """Objects that use every field, created and cleaned up."""
    made = []

    def store(cls):
        obj, status = every_field_of(cls, namespace)
        where = (
            resource_of(cls.KIND),
            obj["metadata"]["name"],
            obj["metadata"].get("namespace", ""),
        )
        admin.create(where[0], obj)
        made.append(where)
        patch = [{"op": "add", "path": "/status", "value": status}]
        return obj, status, admin.patch(*where, patch, subresource="status")

    yield store
    for resource, name, where in made:
        admin.delete(resource, name, where)


@each
def test_an_object_that_uses_every_field_comes_back(stored, cls):
    obj, status, found = stored(cls)
    assert found["spec"] == obj["spec"], "nothing is pruned"
    assert found["status"] == status, "nothing is pruned"
    assert encode(decode(cls, found)) == found


def test_a_cluster_keeps_whatever_is_in_it(admin, seed):
    found = admin.get(resource_of(Cluster.KIND), seed.namespace)
    assert encode(decode(Cluster, found)) == found


@each
def test_its_columns_show_something(stored, cls):
    _, _, found = stored(cls)
    for column in cls.KIND.columns:
        value = found
        for step in column.json_path.replace("[0]", ".0").split(".")[1:]:
            value = value[int(step)] if step.isdecimal() else value[step]
        assert isinstance(value, str), column


def test_a_class_cannot_be_changed(admin, seed):
    """The type can: gardener-resource-manager's webhook refuses that, no rule of the CRD."""
    obj = infrastructure(seed.namespace, "nobody")
    obj["spec"]["class"] = "shoot"
    seed.create(obj)
    seed.patch({"spec": {"type": "somebody"}})
    with pytest.raises(Invalid, match="field is immutable"):
        seed.patch({"spec": {"class": "seed"}})


def test_values_that_only_a_newer_gardener_knows_are_stored(admin, namespace):
    for cls, field, value in (
        (DNSRecord, "recordType", "SRV"),
        (Network, "ipFamilies", ["IPv7"]),
        (OperatingSystemConfig, "purpose", "rescue"),
    ):
        obj, _ = every_field_of(cls, namespace)
        obj["spec"][field] = value
        found = admin.create(resource_of(cls.KIND), obj)
        assert decode(cls, found).metadata.name == obj["metadata"]["name"]


def test_a_cluster_needs_a_cloud_profile_and_a_shoot_but_no_seed(admin, namespace):
    clusters = resource_of(Cluster.KIND)
    obj = cluster(namespace)
    for field in ("cloudProfile", "shoot"):
        without = {name: value for name, value in obj["spec"].items() if name != field}
        with pytest.raises(Invalid, match=rf"spec\.{field}: Required value"):
            admin.create(clusters, {**obj, "spec": without})
    del obj["spec"]["seed"]
    admin.create(clusters, obj)
    admin.delete(clusters, namespace)


def test_each_required_field_is_required(admin, seed):
    for field in ("type", "region", "secretRef"):
        obj = infrastructure(seed.namespace, "nobody")
        del obj["spec"][field]
        with pytest.raises(Invalid, match=field):
            seed.create(obj)
