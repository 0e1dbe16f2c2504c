"""NetworkFilter: blocks ranges of addresses inside a shoot, requested by an Extension.

All its objects are in the shoot, deployed by one ManagedResource. A force deletion therefore equals
a deletion without the wait: the shoot's API server may be gone, and gardenlet removes the
ManagedResource itself (Gardener documentation, "Force Deletion").
"""

from collections.abc import Iterable

from actuator import Actuator, Cluster, Context, FieldProblem
from actuator.provider_config import config_problems, read_config
from actuator.v1alpha1 import Extension
from extensions.networkfilter.config import FilterConfig
from extensions.networkfilter.shoot import manifests
from generic.library import managedresources
from generic.library.imagevector import load_images

MANAGED_NAME = "extension-networking-filter"
ORIGIN = "extension-networking-filter"


class NetworkFilter(Actuator[Extension]):
    """A ManagedResource for the shoot, and nothing else."""

    finalizer = "extensions.gardener.cloud/networking-filter"
    permissions = managedresources.PERMISSIONS

    def __init__(self) -> None:
        self._images = load_images(__file__)

    def validate(self, ctx: Context, obj: Extension, cluster: Cluster) -> Iterable[FieldProblem]:
        """Return the problems of providerConfig."""
        return config_problems(FilterConfig, obj.spec)

    def reconcile(self, ctx: Context, obj: Extension, cluster: Cluster) -> None:
        """Deploy the filter to the shoot, without waiting for it."""
        image = self._images.find("network-filter", cluster.kubernetes_version)
        wanted = manifests(read_config(FilterConfig, obj.spec).blocked, image.reference)
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
