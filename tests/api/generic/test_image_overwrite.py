"""An operator replaces container images: from the chart's value to the manifest in the shoot."""

import base64
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from actuator.interface import Actuator, Resource, resource_of
from actuator.meta import Object, Raw
from actuator.v1alpha1 import ContainerRuntime, ControlPlane, Extension, Network
from extensions.azurecontrolplane.actuator import AzureControlPlane
from extensions.local.containerruntime import LocalContainerRuntime
from extensions.local.network import LocalNetwork
from extensions.local.outside import Outside
from extensions.networkfilter.actuator import NetworkFilter
from generic.library.charts import find_helm
from generic.library.managedresources import ManagedResource
from tests.support.cluster.harness import eventually
from tests.support.cluster.shoot_extension import Extended, shoot_managers
from tests.support.objects.builders import cluster

SECRETS = Resource("v1", "secrets")
MANAGED = resource_of(ManagedResource.KIND)
NEW = {"images": [{"name": "network-filter", "ref": "mirror.example.org/filter:2"}]}


@pytest.fixture
def rendered(command, tmp_path):
    """Objects of the network filter's chart with these values, by kind."""
    extension = "extensions.networkfilter:extension"
    command("chart", extension, "--output", tmp_path, "--name", "mine")

    def render(**values):
        helm = [find_helm(print), "template", "release", tmp_path / "mine", "--no-hooks"]
        for key, value in values.items():
            helm += ["--set-json", f"{key}={json.dumps(value)}"]
        done = subprocess.run(helm, capture_output=True, text=True, timeout=120, check=True)
        return {obj["kind"]: obj for obj in yaml.safe_load_all(done.stdout) if obj}

    return render


def overwrite(objects) -> str:
    """The text of the file that the pod's IMAGEVECTOR_OVERWRITE names, found by its mounts."""
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    [path] = [item["value"] for item in container["env"] if item["name"] == "IMAGEVECTOR_OVERWRITE"]
    folder, _, name = path.rpartition("/")
    [mount] = [
        volume_mount
        for volume_mount in container["volumeMounts"]
        if volume_mount["mountPath"] == folder
    ]
    [volume] = [volume for volume in pod["volumes"] if volume["name"] == mount["name"]]
    assert volume["configMap"]["name"] == objects["ConfigMap"]["metadata"]["name"]
    assert container["env"][0]["name"] == "MALLOC_ARENA_MAX"
    return objects["ConfigMap"]["data"][name]


@pytest.mark.parametrize("value", [NEW, yaml.dump(NEW)], ids=["object", "text"])
def test_the_value_becomes_the_file_that_the_pod_reads(value, rendered):
    assert yaml.safe_load(overwrite(rendered(imageVectorOverwrite=value))) == NEW


@pytest.mark.parametrize("value", ["", None, {"images": []}])
def test_without_a_value_the_file_replaces_nothing(value, rendered, tmp_path, monkeypatch):
    (tmp_path / "empty.yaml").write_text(overwrite(rendered(imageVectorOverwrite=value)))
    monkeypatch.setenv("IMAGEVECTOR_OVERWRITE", str(tmp_path / "empty.yaml"))
    NetworkFilter()


def test_a_changed_value_replaces_the_pods(rendered):
    pods = [rendered(**value) for value in ({}, {"imageVectorOverwrite": NEW})]
    annotations = [pod["Deployment"]["spec"]["template"]["metadata"]["annotations"] for pod in pods]
    assert annotations[0]["checksum/images"] != annotations[1]["checksum/images"]


Maker = Callable[[Path], Actuator[Any, Any]]
VERSIONS = {"targetVersion": "1.31.x", "runtimeVersion": "1.29.x"}
"""Of the shoot and of its seed, as the Cluster below has them."""
IN_SHOOT = {"targetVersion": "1.31.x", "runtimeVersion": "1.31.x"}
POOL = {"name": "a", "selector": {"matchLabels": {"pool": "a"}}}
SAMPLES: dict[str, tuple[Maker, tuple[type[Object], Raw], dict[str, dict[str, str]]]] = {
    "network filter": (
        lambda _folder: NetworkFilter(),
        (Extension, {}),
        {"network-filter": IN_SHOOT},
    ),
    "control plane": (
        lambda _folder: AzureControlPlane(),
        (ControlPlane, {"region": "eu-1", "secretRef": {"name": "cloudprovider"}}),
        {
            "cloud-controller-manager": VERSIONS,
            "remedy-controller-azure": VERSIONS,
            "csi-driver-node-disk": IN_SHOOT,
        },
    ),
    "network": (
        lambda folder: LocalNetwork(Outside(folder)),
        (Network, {"podCIDR": "100.96.0.0/11", "serviceCIDR": "100.64.0.0/13"}),
        {"local-net": IN_SHOOT},
    ),
    "container runtime": (
        lambda _folder: LocalContainerRuntime(),
        (ContainerRuntime, {"binaryPath": "/var/bin", "workerPool": POOL}),
        {"local-runtime": IN_SHOOT},
    ),
}


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_overwritten_images_of_each_sample_reach_their_cluster(
    sample, admin, seed, start, namespace, rendered, tmp_path, monkeypatch
):
    """One entry for these versions of shoot and seed, and one for others, which must not count."""
    make, (cls, spec), images = SAMPLES[sample]
    others = [{"name": name, "ref": "wrong:1", "targetVersion": "< 1.31"} for name in images]
    new = [{"name": name, "ref": f"mirror/{name}:2", **images[name]} for name in images]
    value = {"images": [*others, *new]}
    (tmp_path / "overwrite.yaml").write_text(overwrite(rendered(imageVectorOverwrite=value)))
    monkeypatch.setenv("IMAGEVECTOR_OVERWRITE", str(tmp_path / "overwrite.yaml"))
    shoot = {"metadata": {"name": "s"}, "spec": {"kubernetes": {"version": "1.31.2"}}}
    seed_object = {"status": {"kubernetesVersion": "v1.29.4-gke.1"}}
    seed.update_cluster(cluster(namespace, shoot=shoot, seed=seed_object))
    secret = {"name": "cloudprovider", "namespace": namespace}
    admin.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": secret})
    if "secretRef" in spec:
        spec = {**spec, "secretRef": secret}
    with shoot_managers(admin, namespace) as shoots:
        start(make(tmp_path))
        extended = Extended(seed, shoots, cls)
        extended.deploy("reconcile", **spec)
        eventually(extended.is_ready)
    found = {container["image"] for container in containers(manifests(extended))}
    assert found == {f"mirror/{name}:2" for name in images}


def manifests(extended) -> list[dict]:
    """Everything that the ManagedResources in the shoot's namespace bring."""
    managed = extended.client.list(MANAGED, extended.namespace)
    names = [secret_ref["name"] for obj in managed for secret_ref in obj["spec"]["secretRefs"]]
    secrets = [extended.client.get(SECRETS, name, extended.namespace) for name in names]
    texts = [base64.b64decode(text) for secret in secrets for text in secret["data"].values()]
    return [obj for text in texts for obj in yaml.safe_load_all(text) if obj]


def containers(objects) -> list[dict]:
    pods = [
        object_["spec"]["template"]["spec"]
        for object_ in objects
        if "template" in object_.get("spec", {})
    ]
    return [container for pod in pods for container in pod["containers"]]


def test_a_wrong_overwrite_stops_the_manager_at_its_start(command, tmp_path, monkeypatch):
    wrong = tmp_path / "overwrite.yaml"
    wrong.write_text("images: [{name: network-filter}]")
    monkeypatch.setenv("IMAGEVECTOR_OVERWRITE", str(wrong))
    done = command("run", "extensions.networkfilter:extension", status=1)
    [line] = done.stderr.splitlines()
    assert line.startswith(f"Error: {wrong} is not a valid image vector: [0]: image 'network-f")
