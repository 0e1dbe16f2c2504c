"""Manifests of the control plane's parts, in Python; a chart would do as well. Pure.

Images (`images.yaml`) are placeholders: this sample shows which objects exist, and their order.
"""

from __future__ import annotations

from actuator.meta import Raw
from generic.library.manifests import manifest

CLOUD_CONFIG = "cloud-provider-config"
REMEDY = "remedy-controller-azure"
NODE_DRIVER = "csi-driver-node-disk"


def cloud_config(namespace: str, region: str) -> Raw:
    """What the cloud controller manager reads."""
    text = f'{{"cloud":"AZUREPUBLICCLOUD","location":"{region}","resourceGroup":"{namespace}"}}'
    return manifest("v1", "ConfigMap", CLOUD_CONFIG, namespace, data={"cloudprovider.conf": text})


def deployment(
    name: str, namespace: str, replicas: int, image: str, annotations: dict[str, str]
) -> Raw:
    """A program in the seed that acts in the shoot; `annotations` are those of its pods."""
    token = {"secret": {"secretName": f"shoot-access-{name}"}}
    access = {"name": "access", "mountPath": "/var/run/secrets/gardener.cloud/shoot"}
    spec = {"replicas": replicas, **_template(name, image, annotations, [access], token)}
    return manifest("apps/v1", "Deployment", name, namespace, spec=spec)


def node_driver(image: str) -> Raw:
    """The disks' driver on each node of the shoot."""
    name = NODE_DRIVER
    sockets = {"name": "access", "mountPath": "/csi"}
    spec = _template(name, image, {}, [sockets], {"emptyDir": {}})
    return manifest("apps/v1", "DaemonSet", name, "kube-system", spec=spec)


def storage_class() -> Raw:
    """What a volume is if nobody says otherwise."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": "default",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": "disk.csi.azure.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def _template(name: str, image: str, annotations: Raw, mounts: list[Raw], volume: Raw) -> Raw:
    labels = {"app.kubernetes.io/name": name}
    pod = {
        "containers": [{"name": name, "image": image, "volumeMounts": mounts}],
        "volumes": [{"name": mount["name"], **volume} for mount in mounts],
    }
    return {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels, "annotations": annotations}, "spec": pod},
    }
