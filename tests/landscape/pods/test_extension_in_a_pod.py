"""An extension's generated chart runs in a cluster whose pods are processes, webhook included.

The API server calls the webhook by the address of its Service, through the router.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from actuator.errors import ApiError
from actuator.interface import Resource, resource_of
from actuator.v1alpha1 import KINDS, Cluster, OperatingSystemConfig
from extensions.networkfilter.webhooks import PATH, TYPE
from generic.kube.clusters import CLUSTERS, NAMESPACES
from generic.library.managedresources import ManagedResource
from generic.library.webhooks.targets import with_extension
from generic.testing.landscape.caches import PODS
from generic.testing.landscape.images import extension_image
from generic.testing.seed import install_crds
from tests.support.cluster.harness import eventually
from tests.support.landscape.chart import ACTUATOR, GARDENLET, deployment_of, install, rendered
from tests.support.landscape.pods import DEPLOYMENTS, Namespace, Seed
from tests.support.objects.builders import cluster
from tests.support.pages.commands import run_command

pytestmark = pytest.mark.long  # one worker starts the cluster, and keeps it

NAME = "networkfilter"
PRIORITY_CLASSES = Resource("scheduling.k8s.io/v1", "priorityclasses", namespaced=False)
TARGET = "extensions.networkfilter:extension"
CONFIGS = resource_of(OperatingSystemConfig.KIND)
ROOT = Path(__file__).parents[3]


@pytest.fixture
def extension(seed: Seed, place: Namespace, tmp_path):
    """The sample, installed by its chart into a namespace."""
    environ = {"PATH": os.environ["PATH"]}
    seed.images["networkfilter"] = extension_image((*ACTUATOR, "run"), TARGET, environ, ROOT)
    install_crds(seed.client, [*KINDS, Cluster, ManagedResource])
    flags = (
        "--output",
        tmp_path,
        "--name",
        "networkfilter",
        "--image",
        "landscape/networkfilter:1",
    )
    run_command("chart", TARGET, *flags)
    objects = rendered(tmp_path / "networkfilter", place.name, GARDENLET)
    name = deployment_of(objects)["spec"]["template"]["spec"]["priorityClassName"]
    seed.client.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": 1000})
    install(seed.client, objects)
    place.wait_available(NAME)
    return place


def a_shoot(client, name: str) -> None:
    labels = {"gardener.cloud/role": "shoot", **with_extension(TYPE)}
    client.create(NAMESPACES, {"metadata": {"name": name, "labels": labels}})
    made = cluster(name)
    config = {"apiVersion": "networkfilter.extensions.gardener.cloud/v1alpha1",
              "kind": "FilterConfig", "blocked": ["192.0.2.0/24"]}  # fmt: skip
    extensions = [{"type": TYPE, "providerConfig": config}]
    made["spec"]["shoot"]["spec"] = {
        **made["spec"]["shoot"].get("spec", {}),
        "extensions": extensions,
    }
    client.create(CLUSTERS, made)


def filtered(client, namespace: str) -> bool:
    """Whether the webhook changed a new OperatingSystemConfig."""
    meta = {"generateName": "pool-", "namespace": namespace}
    config = {"apiVersion": CONFIGS.api_version, "kind": OperatingSystemConfig.KIND.name}
    spec = {"type": "x", "purpose": "reconcile"}
    made = client.create(CONFIGS, {**config, "metadata": meta, "spec": spec})
    return PATH in str(made["spec"].get("files"))


def test_the_webhook_of_an_extension_in_a_pod_is_called_through_its_service(extension):
    client = extension.client
    shoot = f"shoot--{extension.name}"
    a_shoot(client, shoot)
    eventually(lambda: filtered(client, shoot))
    (pod,) = extension.pods()
    client.delete(PODS, pod["metadata"]["name"], extension.name)
    eventually(lambda: extension.is_gone(pod["metadata"]["name"]))
    extension.wait_available(NAME)
    assert filtered(client, shoot)
    patch = {"spec": {"replicas": 0}}
    client.patch(DEPLOYMENTS, NAME, extension.name, patch)
    eventually(lambda: extension.running() == [])
    with pytest.raises(ApiError, match="failed calling webhook"):
        filtered(client, shoot)
