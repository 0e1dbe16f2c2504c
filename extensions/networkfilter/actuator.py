"""NetworkFilter: blocks ranges of addresses inside a shoot, requested by an Extension.

All its objects are in the shoot, deployed by one ManagedResource.
"""

import hashlib

from actuator import Cluster, Context, Raw
from actuator.v1alpha1 import Extension
from extensions.networkfilter.config import FilterConfig
from generic.library import load_images, manifest
from generic.library.managedresources import ManagedResourceActuator

_NAME = "network-filter"
_WHERE = _NAME, "kube-system"
_LABELS = {"app.kubernetes.io/name": _NAME}


class NetworkFilter(ManagedResourceActuator[Extension, FilterConfig]):
    """A ManagedResource for the shoot, and nothing else."""

    finalizer = "extensions.gardener.cloud/networking-filter"
    managed_name = origin = "extension-networking-filter"

    def __init__(self) -> None:
        self._images = load_images(__file__)

    def manifests(self, ctx: Context[FilterConfig], obj: Extension, cluster: Cluster) -> list[Raw]:
        """Return the list of blocked ranges, and a program on each node that reads it."""
        images = self._images.references(cluster, _NAME, in_shoot=True)
        text = ctx.config.text
        return [
            manifest("v1", "ConfigMap", *_WHERE, data={"blocked": text}),
            _daemon_set(images[_NAME], hashlib.sha256(text.encode()).hexdigest()),
        ]


def _daemon_set(image: str, checksum: str) -> Raw:
    """Return the program; a changed list changes `checksum`, which replaces the pods."""
    annotations = {f"checksum/configmap-{_NAME}": checksum}
    mount = {"name": "blocked", "mountPath": "/etc/network-filter"}
    pod = {
        "hostNetwork": True,
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": _NAME, "image": image, "volumeMounts": [mount]}],
        "volumes": [{"name": "blocked", "configMap": {"name": _NAME}}],
    }
    template = {"metadata": {"labels": _LABELS, "annotations": annotations}, "spec": pod}
    spec = {"selector": {"matchLabels": _LABELS}, "template": template}
    return manifest("apps/v1", "DaemonSet", *_WHERE, labels=_LABELS, spec=spec)
