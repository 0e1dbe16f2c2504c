"""GenericControlPlane: the common flow of all providers for a ControlPlane, with hooks.

Flow of reconcile and restore: secrets → shoot access → configuration → webhooks → the seed's part
→ CRDs, objects and storage classes of the shoot → wait for the webhooks → delete unused secrets.

Flow of delete: storage classes → CRDs, waited for → the shoot's objects, waited for → the seed's
part, which is needed until here → configuration → shoot access → webhooks, waited for → secrets.
A wait is a RequeueAfter: the next call skips parts that are already deleted.

Guarantees of force_delete: it calls no hook for manifests, renders no chart, waits for nothing,
and does not read the Cluster. Source: Gardener documentation, "ControlPlane",
"Force Deletion", "Control Plane Migration".
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

import attrs

from actuator.cluster import Cluster
from actuator.errors import DecodeError, NotFound
from actuator.interface import SECRETS, Actuator, C, Context, Permission, Result
from actuator.meta import Raw
from actuator.v1alpha1 import ControlPlane
from generic.library import managedresources
from generic.library.charts import Chart, render
from generic.library.controlplane import parts
from generic.library.lookup import DEPLOYMENTS, runs
from generic.library.secrets import Config, SecretsManager, ShootAccess
from generic.library.secrets.access import PERMISSIONS as ACCESS

_REQUEUE = 2.0


class GenericControlPlane(Actuator[ControlPlane, C]):
    """Derive from it, and return manifests. For None, the part is deleted if we deployed it."""

    origin: ClassVar[str] = "actuator"
    """The label `origin` of our ManagedResources: the extension's name ("provider-aws")."""

    access_secrets: ClassVar[Sequence[str]] = ()
    """ServiceAccounts of the shoot that pods in the seed use; each gets a Secret."""

    permissions: Sequence[Permission] = (
        *managedresources.PERMISSIONS,
        *ACCESS,
        DEPLOYMENTS.permission("get"),
    )
    """Subclasses that need more, or use `secrets_manager`, extend these."""

    @abstractmethod
    def seed(self, at: parts.Situation[C], /) -> parts.Manifests | None:
        """Return the seed's part: the cloud controller manager, the CSI controller."""

    def config(self, at: parts.Situation[C], /) -> parts.Manifests | None:
        """Return the configuration for other components in the seed: the cloud provider's."""
        return None

    def shoot(self, at: parts.Situation[C], /) -> parts.Manifests | None:
        """Return the shoot's part: CSI nodes, roles of the seed's part."""
        return None

    def shoot_crds(self, at: parts.Situation[C], /) -> parts.Manifests | None:
        """Return CustomResourceDefinitions for the shoot."""
        return None

    def storage_classes(self, at: parts.Situation[C], /) -> parts.Manifests | None:
        """Return StorageClasses and VolumeSnapshotClasses for the shoot."""
        return None

    def shoot_webhooks(self, at: parts.Situation[C], /) -> parts.Manifests | None:
        """Return webhook configurations for the shoot."""
        return None

    def secret_configs(self, control_plane: ControlPlane, cluster: Cluster, /) -> Sequence[Config]:
        """Return the configs of certificates and keys that the parts need."""
        return ()

    def secrets_manager(
        self, ctx: Context[C], control_plane: ControlPlane, /
    ) -> SecretsManager | None:
        """Return the manager that generates them; a force deletion calls this too."""
        return None

    def reconcile(self, ctx: Context[C], obj: ControlPlane, cluster: Cluster, /) -> Result | None:
        """Deploy every part. In hibernation, requeue until kube-apiserver is scaled down."""
        secrets = self.secrets_manager(ctx, obj)
        made = secrets.ensure(self.secret_configs(obj, cluster)) if secrets else {}
        leaving = cluster.is_deleting or cluster.is_migrating
        hibernating = cluster.hibernation_enabled and not leaving
        awake = hibernating and runs(ctx.client, "kube-apiserver", obj.metadata.namespace)
        at = parts.Situation(
            ctx=ctx,
            control_plane=obj,
            cluster=cluster,
            secrets=made,
            checksums=parts.checksums_of(_credentials(ctx, obj)),
            scaled_down=hibernating and not awake,
        )
        for name in self.access_secrets:
            ctx.check()
            ShootAccess(name=name).ensure(ctx.client, at.namespace)
        awaited = []
        for part, hook in self._parts():
            manifests = hook(at)
            at = self._deploy(at, part, manifests)
            awaited += [part.name] if part is parts.WEBHOOKS and manifests is not None else []
        if not cluster.hibernation_enabled and not leaving:  # else the manager may be stopped
            managedresources.wait_until_healthy(
                ctx.client, ctx.clock, *awaited, namespace=at.namespace, origin=self.origin
            )
        if secrets:
            secrets.cleanup()
        return Result(requeue_after=_REQUEUE) if awake else None

    def delete(self, ctx: Context[C], obj: ControlPlane, cluster: Cluster, /) -> None:
        """Delete every part, in seed and shoot, and our secrets."""
        self._refresh_config(ctx, obj, cluster)
        self._delete_parts(ctx, obj)
        self._clean_up_secrets(ctx, obj)

    def migrate(self, ctx: Context[C], obj: ControlPlane, cluster: Cluster, /) -> None:
        """Delete every part in this seed; the objects in the shoot stay.

        Secrets stay: the next seed restores those that persist.
        """
        for part in parts.KEPT_ON_MIGRATION:
            managedresources.set_keep_objects(
                ctx.client, part.name, obj.metadata.namespace, keep=True, origin=self.origin
            )
        self._refresh_config(ctx, obj, cluster)
        self._delete_parts(ctx, obj)

    def force_delete(self, ctx: Context[C], obj: ControlPlane, cluster: Cluster, /) -> None:
        """Request the deletion of every part; gardenlet cleans up the shoot."""
        for part in parts.EVERY_PART:
            self._delete(ctx, obj, part)
        self._delete_access(ctx, obj)
        self._clean_up_secrets(ctx, obj)
        super().force_delete(ctx, obj, cluster)

    def _parts(
        self,
    ) -> Sequence[tuple[parts.Part, Callable[[parts.Situation], parts.Manifests | None]]]:
        """Return the parts and their hooks, in the order of deployment."""
        return (
            (parts.CONFIG, self.config),
            (parts.WEBHOOKS, self.shoot_webhooks),
            (parts.SEED, self.seed),
            (parts.CRDS, self.shoot_crds),
            (parts.SHOOT, self.shoot),
            (parts.STORAGE_CLASSES, self.storage_classes),
        )

    def _deploy(
        self, at: parts.Situation[C], part: parts.Part, manifests: parts.Manifests | None
    ) -> parts.Situation[C]:
        """Deploy the hook's manifests; return the situation with the checksums of `config`."""
        at.ctx.check()
        where = (at.ctx.client, part.name, at.namespace)
        if manifests is None:  # Go's library deletes no part without a chart
            managedresources.delete(*where, origin=self.origin, adopted=False)
            return at
        if isinstance(manifests, Chart):
            manifests = render(manifests, at.cluster.kubernetes_version)
        rendered = list(manifests)
        if part.in_seed:
            managedresources.deploy_for_seed(*where, rendered, origin=self.origin)
        else:
            managedresources.deploy_for_shoot(
                *where,
                rendered,
                origin=self.origin,
                force_overwrite_annotations=part.overwrite_annotations,
            )
        if part is not parts.CONFIG:
            return at
        return attrs.evolve(at, checksums={**at.checksums, **parts.checksums_of(rendered)})

    def _refresh_config(self, ctx: Context[C], obj: ControlPlane, cluster: Cluster) -> None:
        """Deploy the current credentials: the seed's part needs them for its cleanup."""
        namespace = obj.metadata.namespace
        if not managedresources.is_deployed(
            ctx.client, parts.SEED.name, namespace, origin=self.origin
        ):
            return
        checksums = parts.checksums_of(_credentials(ctx, obj))
        at = parts.Situation(ctx=ctx, control_plane=obj, cluster=cluster, checksums=checksums)
        manifests = self.config(at)
        if manifests is not None:
            self._deploy(at, parts.CONFIG, manifests)

    def _delete_parts(self, ctx: Context[C], obj: ControlPlane) -> None:
        self._delete(ctx, obj, parts.STORAGE_CLASSES)
        self._delete(ctx, obj, parts.CRDS)
        self._wait(ctx, obj, parts.CRDS)
        self._delete(ctx, obj, parts.SHOOT)
        self._wait(ctx, obj, parts.STORAGE_CLASSES, parts.SHOOT)
        self._delete(ctx, obj, parts.SEED)
        self._delete(ctx, obj, parts.CONFIG)
        self._delete_access(ctx, obj)
        self._delete(ctx, obj, parts.WEBHOOKS)
        self._wait(ctx, obj, parts.WEBHOOKS)

    def _delete(self, ctx: Context[C], obj: ControlPlane, part: parts.Part) -> None:
        ctx.check()
        managedresources.delete(ctx.client, part.name, obj.metadata.namespace, origin=self.origin)

    def _wait(self, ctx: Context[C], obj: ControlPlane, *waited: parts.Part) -> None:
        names = (part.name for part in waited)
        managedresources.check_deleted(
            ctx.client,
            ctx.clock,
            *names,
            namespace=obj.metadata.namespace,
            origin=self.origin,
        )

    def _delete_access(self, ctx: Context[C], obj: ControlPlane) -> None:
        for name in self.access_secrets:
            ctx.check()
            ShootAccess(name=name).delete(ctx.client, obj.metadata.namespace)

    def _clean_up_secrets(self, ctx: Context[C], obj: ControlPlane) -> None:
        """Delete all Secrets of the manager, since `ensure` was not called."""
        if secrets := self.secrets_manager(ctx, obj):
            ctx.check()
            secrets.cleanup()


def _credentials(ctx: Context[C], obj: ControlPlane) -> Sequence[Raw]:
    """Return the Secret of spec.secretRef, if it exists: a shoot may have no cloud."""
    try:
        name = obj.spec.secret_ref.name  # with an empty name a GET is a LIST
        return [ctx.client.get(SECRETS, name, obj.metadata.namespace)] if name else ()
    except (NotFound, DecodeError):  # an unreadable secretRef must not block a deletion
        return ()
