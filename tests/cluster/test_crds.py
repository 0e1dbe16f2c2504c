"""CRDs made from classes: accepted in strict mode, and what goes in comes out."""

import json

import pytest
from builders import infrastructure

from actuator.codec import decode, encode
from actuator.errors import Invalid
from actuator.interface import Resource, resource_of
from actuator.v1alpha1 import Cluster, ControlPlane, Infrastructure
from generic.client import JSON, path_of
from generic.crds import crd
from generic.seed import CRDS

KINDS = [Infrastructure, ControlPlane, Cluster]
CONTROL_PLANES = resource_of(ControlPlane.KIND)
NAMESPACED = {"type": "aws", "region": "eu-1", "secretRef": {"name": "s", "namespace": "n"}}
STATUS = {
    "providerStatus": {"a": {"b": [1, "x", None]}},
    "state": {"deep": {"er": True}},
    "observedGeneration": 1,
    "lastOperation": {
        "type": "Create",
        "state": "Succeeded",
        "progress": 100,
        "description": "",
        "lastUpdateTime": "2026-01-01T00:00:00Z",
    },
    "lastError": {
        "description": "d",
        "taskID": "t",
        "codes": ["ERR_INFRA_DEPENDENCIES"],
        "lastUpdateTime": "2026-01-01T00:00:00Z",
    },
    "conditions": [
        {
            "type": "T",
            "status": "True",
            "reason": "r",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "lastUpdateTime": "2026-01-01T00:00:00Z",
            "codes": ["c"],
        }
    ],
    "resources": [
        {"name": "n", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "s"}}
    ],
}


@pytest.mark.parametrize("cls", KINDS)
def test_the_api_server_accepts_each_in_strict_mode(admin, cls):
    manifest = crd(cls)
    manifest["metadata"]["resourceVersion"] = admin.get(CRDS, manifest["metadata"]["name"])[
        "metadata"
    ]["resourceVersion"]
    path = path_of(CRDS, name=manifest["metadata"]["name"])
    body = json.dumps(manifest).encode()
    query = {"fieldValidation": "Strict", "dryRun": "All"}
    admin.send("PUT", path, query=query, body=body, content_type=JSON)
    conditions = admin.get(CRDS, manifest["metadata"]["name"])["status"]["conditions"]
    by_type = {condition["type"]: condition["status"] for condition in conditions}
    assert by_type["Established"] == "True"
    assert by_type.get("NonStructuralSchema", "False") == "False"


def round_trip(admin, cls, resource, obj, status):
    created = admin.create(resource, obj)
    meta = created["metadata"]
    patch = [{"op": "add", "path": "/status", "value": status}]
    stored = admin.patch(resource, meta["name"], meta["namespace"], patch, subresource="status")
    assert stored["status"] == status, "nothing is pruned"
    assert stored["spec"] == obj["spec"]
    assert encode(decode(cls, stored)) == stored


def test_an_infrastructure_with_every_field_comes_back(admin, namespace):
    obj = infrastructure(namespace, "nobody", provider_config={"x": {"y": [1]}})
    obj["spec"] |= {"class": "shoot", "sshPublicKey": "YWJj", "secretRef": {"name": "s"}}
    own = {
        "nodesCIDR": "10.0.0.0/16",
        "egressCIDRs": ["1.2.3.4/32"],
        "networking": {"pods": ["a"], "nodes": ["b"], "services": ["c"]},
    }
    round_trip(admin, Infrastructure, resource_of(Infrastructure.KIND), obj, STATUS | own)


def test_a_controlplane_with_every_field_comes_back(admin, namespace):
    spec = NAMESPACED | {"infrastructureProviderStatus": {"vpc": 1}, "providerConfig": {"a": 1}}
    meta = {"name": "cp", "namespace": namespace}
    obj = {"apiVersion": ControlPlane.KIND.api_version, "kind": "ControlPlane"}
    obj |= {"metadata": meta, "spec": spec}
    round_trip(admin, ControlPlane, CONTROL_PLANES, obj, STATUS)


def test_a_type_cannot_be_changed(admin, seed):
    seed.create(infrastructure(seed.namespace, "nobody"))
    with pytest.raises(Invalid, match="cannot be changed"):
        seed.patch({"spec": {"type": "somebody"}})


def test_what_is_required_is_required(admin, seed):
    for field in ("type", "region", "secretRef"):
        obj = infrastructure(seed.namespace, "nobody")
        del obj["spec"][field]
        with pytest.raises(Invalid, match=field):
            seed.create(obj)


def test_printer_columns_are_there(admin):
    table = Resource(Infrastructure.KIND.api_version, "infrastructures")
    names = [
        c["name"] for c in crd(Infrastructure)["spec"]["versions"][0]["additionalPrinterColumns"]
    ]
    assert names == ["Type", "Region", "Status", "Age"]
    assert admin.list(table) is not None
