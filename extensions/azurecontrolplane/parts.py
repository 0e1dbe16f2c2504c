"""Manifests of the control plane's parts, in Python; a chart works as well. Pure.

Images (`images.yaml`) are placeholders: this sample shows the objects and their order.
"""

from actuator import Raw
from generic.library import daemon_set_manifest, deployment_manifest, manifest

CLOUD_CONFIG = "cloud-provider-config"
REMEDY = "remedy-controller-azure"
NODE_DRIVER = "csi-driver-node-disk"


def cloud_config(namespace: str, region: str) -> Raw:
    """Return the configuration of the cloud controller manager."""
    text = f'{{"cloud":"AZUREPUBLICCLOUD","location":"{region}","resourceGroup":"{namespace}"}}'
    return manifest("v1", "ConfigMap", CLOUD_CONFIG, namespace, data={"cloudprovider.conf": text})


def program(
    name: str, namespace: str, replicas: int, image: str, annotations: dict[str, str]
) -> Raw:
    """Return a program in the seed that acts in the shoot; `annotations` are those of its pods."""
    mount = {"name": "access", "mountPath": "/var/run/secrets/gardener.cloud/shoot"}
    token = {"name": "access", "secret": {"secretName": f"shoot-access-{name}"}}
    container = {"image": image, "volumeMounts": [mount]}
    return deployment_manifest(
        name, namespace, replicas, container, annotations=annotations, volumes=[token]
    )


def node_driver(image: str) -> Raw:
    """Return the disk driver for each node of the shoot."""
    container = {"image": image, "volumeMounts": [{"name": "sockets", "mountPath": "/csi"}]}
    sockets = {"name": "sockets", "emptyDir": {}}
    return daemon_set_manifest(NODE_DRIVER, "kube-system", container, volumes=[sockets])


def storage_class() -> Raw:
    """Return the default storage class of volumes."""
    made = manifest(
        "storage.k8s.io/v1",
        "StorageClass",
        "default",
        provisioner="disk.csi.azure.com",
        volumeBindingMode="WaitForFirstConsumer",
    )
    made["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    return made
