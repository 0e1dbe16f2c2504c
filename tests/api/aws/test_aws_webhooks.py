"""Objects that gardenlet deploys get the provider's parts at their admission."""

from __future__ import annotations

import time
from typing import Any

import attrs
import pytest

from actuator.interface import Resource, resource_of
from actuator.v1alpha1 import Cluster
from extensions.aws.webhooks import AwsMutator
from extensions.networkfilter.webhooks import PATH, add_filter
from generic.kube.clusters import NAMESPACES
from tests.support.cluster.harness import eventually
from tests.support.cluster.webhook_services import NAME
from tests.support.objects.builders import cluster

DEPLOYMENTS = Resource("apps/v1", "deployments")
CONFIGS = Resource("extensions.gardener.cloud/v1alpha1", "operatingsystemconfigs")
LABELS = {
    "shoot.gardener.cloud/provider": "aws",
    "extensions.gardener.cloud/networking-filter": "true",
}


@pytest.fixture
def shoot(admin, namespace) -> str:
    admin.patch(NAMESPACES, namespace, "", {"metadata": {"labels": LABELS}})
    manifest = cluster(namespace)
    manifest["spec"]["shoot"]["spec"] = {
        "kubernetes": {"version": "1.33.0"},
        "extensions": [{"type": "networking-filter", "providerConfig": filter_config()}],
    }
    admin.create(resource_of(Cluster.KIND), manifest)
    return namespace


def filter_config() -> dict[str, Any]:
    version = "networkfilter.extensions.gardener.cloud/v1alpha1"
    return {"apiVersion": version, "kind": "FilterConfig", "blocked": ["203.0.113.0/24"]}


def deployment(namespace: str, name: str) -> dict[str, Any]:
    labels = {"app": name}
    pod = {
        "containers": [{"name": name, "image": "example.org/i", "args": ["--v=2"]}],
        "volumes": [{"name": "kubeconfig", "emptyDir": {}}],
    }
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def test_components_and_nodes_of_a_shoot_get_the_providers_parts(admin, serving, shoot):
    """A Deployment with the same name elsewhere stays as it is."""
    hooks = [*AwsMutator().webhooks(), add_filter]
    own = [
        attrs.evolve(hook, namespace_labels={**hook.namespace_labels, NAME: shoot})
        for hook in hooks
    ]
    serving.start(*own)
    name = "machine-controller-manager"

    def admitted() -> list[str]:
        created = admin.create(DEPLOYMENTS, deployment(shoot, name))
        containers = created["spec"]["template"]["spec"]["containers"]
        if len(containers) == 1:  # the API server does not know the webhook yet
            admin.delete(DEPLOYMENTS, name, shoot)
            return []
        return [container["name"] for container in containers]

    assert eventually(admitted) == [name, f"{name}-provider-aws"]
    managed = admin.create(DEPLOYMENTS, deployment(shoot, "kube-controller-manager"))
    container = managed["spec"]["template"]["spec"]["containers"][0]
    assert container["args"] == ["--v=2", "--cloud-provider=external"]
    other = admin.create(DEPLOYMENTS, deployment(shoot, f"other-{time.monotonic_ns()}"))
    assert len(other["spec"]["template"]["spec"]["containers"]) == 1
    elsewhere = admin.create(DEPLOYMENTS, deployment("default", f"{shoot}-{name}"))
    assert len(elsewhere["spec"]["template"]["spec"]["containers"]) == 1

    meta = {"name": "osc", "namespace": shoot}
    spec = {"type": "gardenlinux", "purpose": "reconcile", "units": [], "files": []}
    kind = {"apiVersion": CONFIGS.api_version, "kind": "OperatingSystemConfig"}
    node = admin.create(CONFIGS, {**kind, "metadata": meta, "spec": spec})
    assert [file["path"] for file in node["spec"]["files"]] == [PATH]


def test_the_machine_controller_is_added_in_a_self_hosted_shoot(admin, serving, namespace):
    """Without the volume of a kubeconfig, a mount of it would make the Deployment invalid."""
    admin.patch(NAMESPACES, namespace, "", {"metadata": {"labels": LABELS}})
    manifest = cluster(namespace)
    manifest["spec"]["shoot"]["spec"] = {
        "kubernetes": {"version": "1.33.0"},
        "provider": {"workers": [{"name": "cp", "controlPlane": {}}]},
    }
    admin.create(resource_of(Cluster.KIND), manifest)
    labels = {"shoot.gardener.cloud/provider": "aws", NAME: namespace}
    hooks = AwsMutator().webhooks()
    serving.start(*(attrs.evolve(hook, namespace_labels=labels) for hook in hooks))
    given = deployment(namespace, "machine-controller-manager")
    del given["spec"]["template"]["spec"]["volumes"]

    def sidecar() -> list[dict[str, Any]]:
        created = admin.create(DEPLOYMENTS, given)
        admin.delete(DEPLOYMENTS, "machine-controller-manager", namespace)
        _manager, *others = created["spec"]["template"]["spec"]["containers"]
        return others  # empty until the API server knows the webhook

    (added,) = eventually(sidecar)
    assert "--target-kubeconfig=none" in added["args"]
    assert "volumeMounts" not in added
