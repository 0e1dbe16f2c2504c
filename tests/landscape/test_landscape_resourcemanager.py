"""The real gardener-resource-manager runs in a pod of a seed, and serves ManagedResources."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actuator.interface import CONFIG_MAPS, resource_of
from generic.library.managedresources import ManagedResource
from generic.testing.landscape.caches import PODS
from generic.testing.landscape.images import landscape_images
from generic.testing.landscape.programs import find_gardener
from generic.testing.seed import install_crds
from tests.support.cluster.harness import BINDINGS, eventually
from tests.support.landscape.pods import Namespace, Seed

NAME = "gardener-resource-manager"
MANAGED = resource_of(ManagedResource.KIND)
CONFIG: dict[str, Any] = {
    "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
    "kind": "ResourceManagerConfiguration",
    "leaderElection": {"leaderElect": True, "resourceName": NAME},
    "logLevel": "info",
    "logFormat": "text",
    "server": {
        "healthProbes": {"port": 8081},
        "metrics": {"port": 8080},
        "webhooks": {"port": 10250, "tls": {"serverCertDir": "/etc/tls"}},
    },
    "controllers": {"resourceClass": "seed", "managedResource": {"concurrentSyncs": 1}},
}


@pytest.fixture(scope="module")
def seed() -> Iterator[Seed]:
    made = Seed(Path(tempfile.mkdtemp(prefix="actuator-landscape-")))
    programs = {name: Path(name) for name in ("kube-apiserver", "kube-controller-manager")}
    made.images.update(landscape_images(programs, find_gardener(print), made.etcds.start))
    yield made
    made.close()


@pytest.fixture
def managed(seed: Seed) -> Namespace:
    """A namespace with a resource manager for the seed."""
    from generic.testing.envtest.certificates import LocalAuthority

    place = Namespace(seed)
    install_crds(seed.client, [ManagedResource])
    pair = LocalAuthority.new("webhooks").serving([NAME])
    place.secret("tls", **{"tls.crt": pair.certificate.decode(), "tls.key": pair.key.decode()})
    config = {
        **CONFIG,
        "leaderElection": {**CONFIG["leaderElection"], "resourceNamespace": place.name},
    }
    place.config("config", **{"config.yaml": json.dumps(config)})
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": place.name}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    binding = {"metadata": {"name": place.name}, "roleRef": role, "subjects": [subject]}
    seed.client.create(BINDINGS, binding)
    container = {
        "image": f"registry.example/gardener/{NAME}:v1.149.0",
        "args": ["--config=/etc/config/config.yaml"],
        "ports": [{"name": "health", "containerPort": 8081}],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8081}, "periodSeconds": 1},
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/config"},
            {"name": "tls", "mountPath": "/etc/tls"},
        ],
    }
    volumes = [
        {"name": "config", "configMap": {"name": "config"}},
        {"name": "tls", "secret": {"secretName": "tls"}},
    ]
    place.deploy("manager", container, volumes=volumes)
    place.wait_available("manager")
    return place


def test_a_resource_manager_in_a_pod_applies_managed_resources(managed):
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"},
                "metadata": {"name": "applied", "namespace": managed.name}}  # fmt: skip
    managed.secret("objects", **{"objects.yaml": json.dumps(manifest)})
    spec = {"class": "seed", "secretRefs": [{"name": "objects"}]}
    meta = {"name": "objects", "namespace": managed.name}
    kind = {"apiVersion": MANAGED.api_version, "kind": "ManagedResource"}
    managed.client.create(MANAGED, {**kind, "metadata": meta, "spec": spec})
    eventually(lambda: managed.client.get(CONFIG_MAPS, "applied", managed.name))
    (pod,) = managed.pods()
    managed.client.delete(PODS, pod["metadata"]["name"], managed.name)
    eventually(lambda: managed.is_gone(pod["metadata"]["name"]))
    managed.wait_available("manager")
