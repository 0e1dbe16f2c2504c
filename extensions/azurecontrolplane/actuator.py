"""AzureControlPlane: the generic ControlPlane actuator, with what Azure needs around it.

One of the programs that it deploys, the remedy controller, holds custom resources of its own in
the shoot's namespace (`remedies`). Whoever takes that controller away has to see to them.

Flow of delete: the addresses are asked to go, and the controller, which still runs, has 10 minutes
to give them back → the generic deletion, which takes the controller away → what it still holds is
stripped. Flow of migrate: the generic migration → the controller is gone → the rest is stripped:
alive, it would give back addresses that the shoot takes along.

Guarantees of force_delete: those of the generic one, and what the remedy controller holds is gone.
That comes first: nobody else would see to it, while gardenlet finishes the parts, whatever happens
to the rest of the call. What a controller that still runs makes anew is stripped at the end, since
the generic actuator ends with the declared `seed_objects`. Source: Gardener documentation, "Force
Deletion", and the ControlPlane actuator of Gardener's Azure extension.

Methods are virtual: restore is `self.reconcile`, so the override here is reached by it. (In Go a
wrapper's Reconcile is not: the embedded actuator's Restore calls its own.)
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import attrs

from actuator import (
    Cluster,
    Context,
    FieldProblem,
    RequeueAfter,
    Resource,
    Result,
)
from actuator.errors import NotFound
from actuator.meta import Raw, parse_time
from actuator.provider_config import config_problems, read_config
from actuator.v1alpha1 import ControlPlane
from extensions.azurecontrolplane import parts, remedies
from generic.library import seedobjects
from generic.library.controlplane import GenericControlPlane, Situation
from generic.library.imagevector import load_images

API_VERSION = "azure.provider.extensions.gardener.cloud/v1alpha1"
PATIENCE = timedelta(minutes=10)
"""From the ControlPlane's deletionTimestamp on: how long the controller has for the addresses."""
_LOOK_AGAIN = 5.0
"""Seconds between two looks at what another controller has to finish."""
_DEPLOYMENTS = Resource("apps/v1", "deployments")
_CLOUD_CONTROLLER = "cloud-controller-manager"


@attrs.frozen(kw_only=True)
class ControlPlaneConfig:
    """`remedy_controller`: whether stuck addresses and machines are put right by it."""

    api_version: str = API_VERSION
    kind: str = "ControlPlaneConfig"
    remedy_controller: bool = True

    def problems(self) -> Iterable[FieldProblem]:
        """None: the types say it all."""
        return ()


class AzureControlPlane(GenericControlPlane):
    """Programs in the seed and in the shoot, and what one of them leaves behind."""

    origin = "provider-azure"
    access_secrets = (_CLOUD_CONTROLLER, parts.REMEDY)
    seed_objects = remedies.GROUPS

    def __init__(self) -> None:
        self._images = load_images(__file__)

    def validate(self, ctx: Context, obj: ControlPlane, cluster: Cluster) -> Iterable[FieldProblem]:
        """What is wrong with providerConfig."""
        return config_problems(ControlPlaneConfig, obj.spec)

    def config(self, at: Situation) -> list[Raw]:
        """The cloud provider's configuration."""
        return [parts.cloud_config(at.namespace, at.control_plane.spec.region)]

    def seed(self, at: Situation) -> list[Raw]:
        """The cloud controller manager; the remedy controller where it is wanted."""
        names = [_CLOUD_CONTROLLER]
        if _wants_remedies(at.control_plane):
            names.append(parts.REMEDY)
        versions = at.cluster.kubernetes_version, at.cluster.seed_kubernetes_version
        images = {name: self._images.find(name, *versions).reference for name in names}
        rolled_by = {
            "checksum/secret-cloudprovider": at.checksum("cloudprovider"),
            "checksum/configmap-cloud-provider-config": at.checksum(parts.CLOUD_CONFIG),
        }
        scale = at.namespace, at.replicas(1)
        return [parts.deployment(name, *scale, image, rolled_by) for name, image in images.items()]

    def shoot(self, at: Situation) -> list[Raw]:
        """The disks' driver."""
        image = self._images.find(parts.NODE_DRIVER, at.cluster.kubernetes_version)
        return [parts.node_driver(image.reference)]

    def storage_classes(self, at: Situation) -> list[Raw]:
        """The default one."""
        return [parts.storage_class()]

    def reconcile(self, ctx: Context, obj: ControlPlane, cluster: Cluster) -> Result | None:
        """Also for restore; a remedy controller that is not wanted leaves nothing behind."""
        result = super().reconcile(ctx, obj, cluster)
        if not _wants_remedies(obj):
            self._finalise(ctx, obj)
        return result

    def delete(self, ctx: Context, obj: ControlPlane, cluster: Cluster) -> None:
        """Afterwards no part is left, nor what the remedy controller held."""
        self._wait_for_addresses(ctx, obj)
        super().delete(ctx, obj, cluster)
        self._finalise(ctx, obj)

    def migrate(self, ctx: Context, obj: ControlPlane, cluster: Cluster) -> None:
        """Afterwards the same holds in this seed; the shoot, and Azure, keep what they have."""
        super().migrate(ctx, obj, cluster)
        self._finalise(ctx, obj)

    def force_delete(self, ctx: Context, obj: ControlPlane, cluster: Cluster) -> None:
        """Afterwards what the remedy controller held is gone, and every part is asked to go."""
        ctx.delete_seed_objects(self.seed_objects)
        super().force_delete(ctx, obj, cluster)

    def _wait_for_addresses(self, ctx: Context, obj: ControlPlane) -> None:
        """Raises RequeueAfter while the controller has time left for them."""
        addresses, namespace = remedies.GROUPS[:1], obj.metadata.namespace
        seedobjects.delete(ctx.client, addresses, namespace)
        since = parse_time(obj.metadata.deletion_timestamp or "")
        if ctx.clock.now() - since <= PATIENCE:
            seedobjects.check_deleted(ctx, addresses, namespace)

    def _finalise(self, ctx: Context, obj: ControlPlane) -> None:
        """Strips what the controller held, once it runs no more. Raises RequeueAfter until then."""
        try:
            ctx.client.get(_DEPLOYMENTS, parts.REMEDY, obj.metadata.namespace)
        except NotFound:
            ctx.delete_seed_objects(self.seed_objects)
        else:
            raise RequeueAfter(_LOOK_AGAIN, f"Waiting for Deployment {parts.REMEDY} to go")


def _wants_remedies(obj: ControlPlane) -> bool:
    return read_config(ControlPlaneConfig, obj.spec).remedy_controller
