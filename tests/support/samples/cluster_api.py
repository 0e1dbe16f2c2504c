"""Cluster API as far as the sample can see it: definitions, and the order in which it deletes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from actuator import Resource
from actuator.errors import ApiError, NotFound
from actuator.interface import Client
from actuator.meta import Raw
from generic.kube.finalizers import Stale, patch_removing, patch_tested

POLICY = Path(__file__).parents[3] / "extensions" / "helmreleaseproxy" / "cluster-api.yaml"
POLICIES = {
    kind: Resource("admissionregistration.k8s.io/v1", plural, namespaced=False)
    for kind, plural in {
        "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
        "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    }.items()
}
OWN_FINALIZER = "cluster.cluster.x-k8s.io"
CONTROL_PLANES = Resource("controlplane.cluster.x-k8s.io/v1beta2", "examplecontrolplanes")
INFRASTRUCTURES = Resource("infrastructure.cluster.x-k8s.io/v1beta2", "exampleclusters")
KINDS = {CONTROL_PLANES: "ExampleControlPlane", INFRASTRUCTURES: "ExampleCluster"}


def clusters(version: str = "v1beta2") -> Resource:
    return Resource(f"cluster.x-k8s.io/{version}", "clusters")


def definitions() -> list[Raw]:
    """Clusters in both versions, and a control plane and an infrastructure."""
    both = ["v1beta1", "v1beta2"]
    owned = [_definition(item, kind, ["v1beta2"]) for item, kind in KINDS.items()]
    return [_definition(clusters(), "Cluster", both), *owned]


def _definition(resource: Resource, kind: str, versions: list[str]) -> Raw:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": str(resource)},
        "spec": {
            "group": resource.group,
            "names": {"kind": kind, "plural": resource.plural, "singular": kind.lower()},
            "scope": "Namespaced",
            "versions": [
                {"name": name, "served": True, "storage": name == versions[-1], "schema": schema}
                for name in versions
            ],
        },
    }


def policy(namespace: str) -> list[Raw]:
    """The policy of the sample's README, for this namespace alone.

    Tests of other processes, with the policy or without it, run in the same cluster.
    """
    policy, binding = yaml.safe_load_all(POLICY.read_text())
    for obj in (policy, binding):
        obj["metadata"]["name"] += f".{namespace}"
    where = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    bound = {
        "policyName": policy["metadata"]["name"],
        "matchResources": {"namespaceSelector": where},
    }
    binding["spec"] |= bound
    return [policy, binding]


def create_cluster(client: Client, namespace: str, name: str, **labels: str) -> Raw:
    """A Cluster with control plane and infrastructure, as Cluster API's controllers leave them."""
    meta: Raw = {"name": name, "namespace": namespace}
    cluster = client.create(
        clusters(),
        {
            "apiVersion": clusters().api_version,
            "kind": "Cluster",
            "metadata": {**meta, "labels": labels, "finalizers": [OWN_FINALIZER]},
            "spec": {},
        },
    )
    owner = {
        "apiVersion": clusters().api_version,
        "kind": "Cluster",
        "name": name,
        "uid": cluster["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    for resource, kind in KINDS.items():
        api = {"apiVersion": resource.api_version, "kind": kind}
        client.create(resource, {**api, "metadata": {**meta, "ownerReferences": [owner]}})
    return cluster


def set_endpoint(client: Client, namespace: str, name: str) -> None:
    endpoint: dict[str, Any] = {"host": "10.0.0.1", "port": 6443}
    patch = {"spec": {"controlPlaneEndpoint": endpoint}}
    client.patch(clusters(), name, namespace, patch)


def delete_parts(client: Client, namespace: str, name: str) -> str:
    """One reconciliation of a Cluster that is being deleted; the refusal, if there is one.

    The control plane first, then the infrastructure, then its own finalizer.
    """
    for resource in KINDS:
        try:
            client.delete(resource, name, namespace)
        except NotFound:
            continue
        except ApiError as error:
            return error.message
    found = client.get(clusters(), name, namespace)["metadata"]
    patch = patch_removing([OWN_FINALIZER], found["uid"], found["finalizers"])
    try:
        patch_tested(client, clusters(), name, namespace, patch)
    except Stale as stale:
        return str(stale)
    return ""
