"""AzureControlPlane: the generic ControlPlane actuator, with additions for Azure.

The remedy controller, one of its programs, sets finalizers on custom resources in the shoot's
namespace (`remedies`). Code that removes the controller must delete and strip them.

Flow of delete: delete the addresses; the controller, which still runs, has 10 minutes to release
them → the generic deletion, which removes the controller → strip its remaining objects. Flow of
migrate: the generic migration → wait until the controller is gone → strip its objects: a running
controller would release addresses that the shoot keeps.

force_delete strips the remedy controller's objects first: no other component does so, while
gardenlet removes the parts even if the rest of the call fails. It then has the effects of the
generic one, which at the end strips the declared `seed_objects`, also those that a running
controller recreated. Source: Gardener documentation, "Force Deletion", and Gardener's Azure
ControlPlane actuator.

Methods are virtual: restore calls `self.reconcile`, and thus the override here. (In Go it does not:
the embedded actuator's Restore calls its own Reconcile.)
"""

from datetime import timedelta

import attrs

from actuator import (
    Cluster,
    Context,
    ProviderConfig,
    Raw,
    RequeueAfter,
    Resource,
    Result,
    parse_time,
)
from actuator.v1alpha1 import ControlPlane
from extensions.azurecontrolplane import parts, remedies
from generic.library import eventual_now, find, load_images, seedobjects
from generic.library.controlplane import GenericControlPlane, Situation

API_VERSION = "azure.provider.extensions.gardener.cloud/v1alpha1"
MAX_WAIT = timedelta(minutes=10)
"""The controller's time to release the addresses, from the ControlPlane's deletionTimestamp."""
_LOOK_AGAIN = 5.0
"""Seconds between two checks of another controller's progress."""
_DEPLOYMENTS = Resource("apps/v1", "deployments")
_CLOUD_CONTROLLER = "cloud-controller-manager"


@attrs.frozen(kw_only=True)
class ControlPlaneConfig(ProviderConfig):
    """The configuration of a control plane."""

    api_version: str = API_VERSION
    kind: str = "ControlPlaneConfig"
    remedy_controller: bool = True
    """Whether the remedy controller is deployed, which repairs stuck addresses and machines."""


class AzureControlPlane(GenericControlPlane[ControlPlaneConfig]):
    """Programs in the seed and in the shoot, and the objects that one of them leaves."""

    origin = "provider-azure"
    access_secrets = (_CLOUD_CONTROLLER, parts.REMEDY)
    seed_objects = remedies.GROUPS

    def __init__(self) -> None:
        self._images = load_images(__file__)

    def config(self, at: Situation) -> list[Raw]:
        """Return the cloud provider's configuration."""
        return [parts.cloud_config(at.namespace, at.control_plane.spec.region)]

    def seed(self, at: Situation[ControlPlaneConfig]) -> list[Raw]:
        """Return the cloud controller manager, and the remedy controller if it is enabled."""
        names = [_CLOUD_CONTROLLER]
        if at.ctx.config.remedy_controller:
            names.append(parts.REMEDY)
        images = self._images.references(at.cluster, *names)
        rolled_by = {
            "checksum/secret-cloudprovider": at.checksum("cloudprovider"),
            "checksum/configmap-cloud-provider-config": at.checksum(parts.CLOUD_CONFIG),
        }
        scale = at.namespace, at.replicas(1)
        return [parts.program(name, *scale, image, rolled_by) for name, image in images.items()]

    def shoot(self, at: Situation) -> list[Raw]:
        """Return the disk driver."""
        images = self._images.references(at.cluster, parts.NODE_DRIVER, in_shoot=True)
        return [parts.node_driver(images[parts.NODE_DRIVER])]

    def storage_classes(self, at: Situation) -> list[Raw]:
        """Return the default storage class."""
        return [parts.storage_class()]

    def reconcile(
        self, ctx: Context[ControlPlaneConfig], obj: ControlPlane, cluster: Cluster
    ) -> Result | None:
        """Also for restore; clean up after a remedy controller that is disabled."""
        result = super().reconcile(ctx, obj, cluster)
        if not ctx.config.remedy_controller:
            self._finalise(ctx, obj)
        return result

    def delete(self, ctx: Context[ControlPlaneConfig], obj: ControlPlane, cluster: Cluster) -> None:
        """Delete all parts, and the remedy controller's objects."""
        self._wait_for_addresses(ctx, obj)
        super().delete(ctx, obj, cluster)
        self._finalise(ctx, obj)

    def migrate(
        self, ctx: Context[ControlPlaneConfig], obj: ControlPlane, cluster: Cluster
    ) -> None:
        """Delete both in this seed; keep the resources in the shoot and in Azure."""
        super().migrate(ctx, obj, cluster)
        self._finalise(ctx, obj)

    def force_delete(
        self, ctx: Context[ControlPlaneConfig], obj: ControlPlane, cluster: Cluster
    ) -> None:
        """Delete the remedy controller's objects, and request the deletion of all parts."""
        ctx.delete_seed_objects(self.seed_objects)
        super().force_delete(ctx, obj, cluster)

    def _wait_for_addresses(self, ctx: Context, obj: ControlPlane) -> None:
        """Raise RequeueAfter while the controller has time left to release them."""
        addresses = remedies.GROUPS[:1]
        namespace = obj.metadata.namespace
        seedobjects.delete(ctx.client, addresses, namespace)
        since = parse_time(obj.metadata.deletion_timestamp or "")
        now = eventual_now(ctx.clock)
        if now is None or now - since <= MAX_WAIT:  # what it does not release stays in Azure
            seedobjects.check_deleted(ctx, addresses, namespace)

    def _finalise(self, ctx: Context, obj: ControlPlane) -> None:
        """Strip the controller's objects once it is deleted. Raises RequeueAfter until then."""
        if find(ctx.client, _DEPLOYMENTS, parts.REMEDY, obj.metadata.namespace) is not None:
            raise RequeueAfter(_LOOK_AGAIN, f"Waiting for Deployment {parts.REMEDY} to go")
        ctx.delete_seed_objects(self.seed_objects)
