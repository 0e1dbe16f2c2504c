"""NetworkFilter: blocks ranges of addresses inside a shoot, requested by an Extension.

All its objects are in the shoot, deployed by one ManagedResource. A force deletion therefore equals
a deletion without the wait: the shoot's API server may be gone, and gardenlet removes the
ManagedResource itself (Gardener documentation, "Force Deletion").
"""

import hashlib
from collections.abc import Sequence

from actuator import Actuator, Cluster, Context
from actuator.meta import Raw
from actuator.provider_config import read_config
from actuator.v1alpha1 import Extension
from extensions.networkfilter.config import FilterConfig
from generic.library import managedresources
from generic.library.imagevector import load_images
from generic.library.manifests import manifest

MANAGED_NAME = "extension-networking-filter"
ORIGIN = "extension-networking-filter"
_NAME = "network-filter"
_WHERE = _NAME, "kube-system"
_LABELS = {"app.kubernetes.io/name": _NAME}


class NetworkFilter(Actuator[Extension]):
    """A ManagedResource for the shoot, and nothing else."""

    finalizer = "extensions.gardener.cloud/networking-filter"
    permissions = managedresources.PERMISSIONS
    provider_config = FilterConfig

    def __init__(self) -> None:
        self._images = load_images(__file__)

    def reconcile(self, ctx: Context, obj: Extension, cluster: Cluster) -> None:
        """Deploy the filter to the shoot, without waiting for it."""
        images = self._images.references(cluster, _NAME, in_shoot=True)
        wanted = _manifests(read_config(FilterConfig, obj).blocked, images[_NAME])
        namespace = obj.metadata.namespace
        managedresources.deploy_for_shoot(
            ctx.client, namespace, MANAGED_NAME, wanted, origin=ORIGIN
        )

    def delete(self, ctx: Context, obj: Extension, cluster: Cluster) -> None:
        """Remove the filter from the shoot; do not wait if the shoot is force-deleted."""
        namespace = obj.metadata.namespace
        managedresources.delete(ctx.client, namespace, MANAGED_NAME, origin=ORIGIN)
        if not cluster.needs_force_deletion:
            managedresources.check_deleted(
                ctx.client, ctx.clock, namespace, MANAGED_NAME, origin=ORIGIN
            )

    def migrate(self, ctx: Context, obj: Extension, cluster: Cluster) -> None:
        """Keep the filter in the shoot, and stop managing it from this seed."""
        managedresources.set_keep_objects(
            ctx.client, obj.metadata.namespace, MANAGED_NAME, keep=True, origin=ORIGIN
        )
        self.delete(ctx, obj, cluster)

    def force_delete(self, ctx: Context, obj: Extension, cluster: Cluster) -> None:
        """Request the deletion of the filter; it is deleted with the shoot anyway."""
        self.delete(ctx, obj, cluster)


def _manifests(blocked: Sequence[str], image: str) -> list[Raw]:
    """Return the list of blocked ranges, and a program on each node that reads it."""
    text = "".join(f"{one}\n" for one in blocked)
    return [
        manifest("v1", "ConfigMap", *_WHERE, data={"blocked": text}),
        _daemon_set(image, hashlib.sha256(text.encode()).hexdigest()),
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
