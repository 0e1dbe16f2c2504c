"""Manifests of the control plane's parts, in Python; a chart works as well. Pure.

Images (`images.yaml`) are placeholders: this sample shows the objects and their order.
"""

from actuator import Raw
from generic.library import manifest

CLOUD_CONFIG = "cloud-provider-config"
REMEDY = "remedy-controller-azure"
NODE_DRIVER = "csi-driver-node-disk"


def cloud_config(namespace: str, region: str) -> Raw:
    """Return the configuration of the cloud controller manager."""
    text = f'{{"cloud":"AZUREPUBLICCLOUD","location":"{region}","resourceGroup":"{namespace}"}}'
    return manifest("v1", "ConfigMap", CLOUD_CONFIG, namespace, data={"cloudprovider.conf": text})


def deployment(
    name: str, namespace: str, replicas: int, image: str, annotations: dict[str, str]
) -> Raw:
    """Return a program in the seed that acts in the shoot; `annotations` are those of its pods."""
    token = {"secret": {"secretName": f"shoot-access-{name}"}}
    access = {"name": "access", "mountPath": "/var/run/secrets/gardener.cloud/shoot"}
    spec = {"replicas": replicas, **_template(name, image, annotations, [access], token)}
    return manifest("apps/v1", "Deployment", name, namespace, spec=spec)


def node_driver(image: str) -> Raw:
    """Return the disk driver for each node of the shoot."""
    name = NODE_DRIVER
    sockets = {"name": "access", "mountPath": "/csi"}
    spec = _template(name, image, {}, [sockets], {"emptyDir": {}})
    return manifest("apps/v1", "DaemonSet", name, "kube-system", spec=spec)


def storage_class() -> Raw:
    """Return the default storage class of volumes."""
    made = manifest(
        *("storage.k8s.io/v1", "StorageClass", "default"),
        provisioner="disk.csi.azure.com",
        volumeBindingMode="WaitForFirstConsumer",
    )
    made["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    return made


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
