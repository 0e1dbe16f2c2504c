"""GenericControlPlane: what every provider does for a ControlPlane; the hooks are the provider's.

Flow of reconcile and restore: secrets → shoot access → configuration → webhooks → the seed's part
→ CRDs, objects and storage classes of the shoot → wait for the webhooks → delete unused secrets.

Flow of delete: storage classes → CRDs, waited for → the shoot's objects, waited for → the seed's
part, which had to run until here → configuration → shoot access → webhooks, waited for → secrets.
A wait is a RequeueAfter: the next call passes what is gone already.

Guarantees of force_delete: no hook for manifests is called, no chart is rendered, nothing is
waited for, and the Cluster is not read. Source: Gardener documentation, "ControlPlane",
"Force Deletion", "Control Plane Migration".
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

import attrs

from actuator.cluster import Cluster
from actuator.errors import DecodeError, NotFound
from actuator.interface import Actuator, Context, Permission, Resource, Result
from actuator.meta import Raw
from actuator.v1alpha1 import ControlPlane
from generic.library import managedresources
from generic.library.charts import Chart, render
from generic.library.controlplane import parts
from generic.library.secrets import Config, ShootAccess
from generic.library.secrets.access import PERMISSIONS as ACCESS

_REQUEUE = 2.0
_DEPLOYMENTS = Resource("apps/v1", "deployments")
_SECRETS = Resource("v1", "secrets")


class GenericControlPlane(Actuator[ControlPlane]):
    """Derive, and return manifests. A part whose hook returns None goes, if we deployed it."""

    origin: ClassVar[str] = "actuator"
    """Our mark on ManagedResources: the extension's name ("provider-aws")."""

    access_secrets: ClassVar[Sequence[str]] = ()
    """ServiceAccounts of the shoot as which pods in the seed act; each gets a Secret."""

    permissions: Sequence[Permission] = (
        *managedresources.PERMISSIONS,
        *ACCESS,
        Permission(api_version="apps/v1", resource="deployments", verbs=["get"]),
    )
    """Who adds to these, or uses `secrets_manager`, extends them."""

    @abstractmethod
    def seed(self, at: parts.Situation, /) -> parts.Manifests | None:
        """What runs in the seed: the cloud controller manager, the CSI controller."""

    def config(self, at: parts.Situation, /) -> parts.Manifests | None:
        """What others in the seed read: the cloud provider's configuration."""
        return None

    def shoot(self, at: parts.Situation, /) -> parts.Manifests | None:
        """What runs in the shoot: CSI nodes, roles of the seed's part."""
        return None

    def shoot_crds(self, at: parts.Situation, /) -> parts.Manifests | None:
        """CustomResourceDefinitions for the shoot."""
        return None

    def storage_classes(self, at: parts.Situation, /) -> parts.Manifests | None:
        """StorageClasses and VolumeSnapshotClasses for the shoot."""
        return None

    def shoot_webhooks(self, at: parts.Situation, /) -> parts.Manifests | None:
        """Webhook configurations for the shoot."""
        return None

    def secret_configs(self, control_plane: ControlPlane, cluster: Cluster, /) -> Sequence[Config]:
        """Certificates and keys that the parts need."""
        return ()

    def secrets_manager(self, ctx: Context, control_plane: ControlPlane, /) -> parts.Secrets | None:
        """What generates them, a SecretsManager; a force deletion asks for it too."""
        return None

    def reconcile(self, ctx: Context, obj: ControlPlane, cluster: Cluster, /) -> Result | None:
        """Afterwards every part is deployed. Looked at again until kube-apiserver sleeps too."""
        secrets = self.secrets_manager(ctx, obj)
        made = secrets.ensure(self.secret_configs(obj, cluster)) if secrets else {}
        leaving = cluster.is_deleting or cluster.is_migrating
        hibernating = cluster.hibernation_enabled and not leaving
        awake = hibernating and _is_running(ctx, obj)
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
        for part, hook in self._parts():
            at = self._deploy(at, part, hook(at))
        if not cluster.hibernation_enabled and not leaving:  # else no resource manager may run
            managedresources.check_healthy(
                ctx.client, at.namespace, parts.WEBHOOKS.name, origin=self.origin
            )
        if secrets:
            secrets.cleanup()
        return Result(requeue_after=_REQUEUE) if awake else None

    def delete(self, ctx: Context, obj: ControlPlane, cluster: Cluster, /) -> None:
        """Afterwards no part is left, in seed or shoot, and no secret of ours."""
        self._refresh_config(ctx, obj, cluster)
        self._delete_parts(ctx, obj)
        self._clean_up_secrets(ctx, obj)

    def migrate(self, ctx: Context, obj: ControlPlane, cluster: Cluster, /) -> None:
        """Afterwards no part is left in this seed; the shoot keeps what it has.

        Secrets stay: those that persist are what the next seed restores.
        """
        for part in parts.KEPT_ON_MIGRATION:
            managedresources.set_keep_objects(
                ctx.client, obj.metadata.namespace, part.name, True, origin=self.origin
            )
        self._refresh_config(ctx, obj, cluster)
        self._delete_parts(ctx, obj)

    def force_delete(self, ctx: Context, obj: ControlPlane, cluster: Cluster, /) -> None:
        """Afterwards every part is asked to go; gardenlet sees to the shoot's."""
        for part in parts.EVERY_PART:
            self._delete(ctx, obj, part)
        self._delete_access(ctx, obj)
        self._clean_up_secrets(ctx, obj)
        super().force_delete(ctx, obj, cluster)

    def _parts(
        self,
    ) -> Sequence[tuple[parts.Part, Callable[[parts.Situation], parts.Manifests | None]]]:
        """In the order of deployment."""
        return (
            (parts.CONFIG, self.config),
            (parts.WEBHOOKS, self.shoot_webhooks),
            (parts.SEED, self.seed),
            (parts.CRDS, self.shoot_crds),
            (parts.SHOOT, self.shoot),
            (parts.STORAGE_CLASSES, self.storage_classes),
        )

    def _deploy(
        self, at: parts.Situation, part: parts.Part, manifests: parts.Manifests | None
    ) -> parts.Situation:
        """Deploys what the hook returned; returns the situation with the checksums of `config`."""
        at.ctx.check()
        where = (at.ctx.client, at.namespace, part.name)
        if manifests is None:  # Go's library deletes no part that it has no chart for
            managedresources.delete(*where, origin=self.origin, adopted=False)
            return at
        rendered = _rendered(manifests, at)
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

    def _refresh_config(self, ctx: Context, obj: ControlPlane, cluster: Cluster) -> None:
        """While the seed's part cleans up, it needs credentials that are valid now."""
        namespace = obj.metadata.namespace
        if not managedresources.is_deployed(
            ctx.client, namespace, parts.SEED.name, origin=self.origin
        ):
            return
        checksums = parts.checksums_of(_credentials(ctx, obj))
        at = parts.Situation(ctx=ctx, control_plane=obj, cluster=cluster, checksums=checksums)
        manifests = self.config(at)
        if manifests is not None:
            self._deploy(at, parts.CONFIG, manifests)

    def _delete_parts(self, ctx: Context, obj: ControlPlane) -> None:
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

    def _delete(self, ctx: Context, obj: ControlPlane, part: parts.Part) -> None:
        ctx.check()
        managedresources.delete(ctx.client, obj.metadata.namespace, part.name, origin=self.origin)

    def _wait(self, ctx: Context, obj: ControlPlane, *waited: parts.Part) -> None:
        names = (part.name for part in waited)
        managedresources.check_deleted(
            ctx.client, ctx.clock, obj.metadata.namespace, *names, origin=self.origin
        )

    def _delete_access(self, ctx: Context, obj: ControlPlane) -> None:
        for name in self.access_secrets:
            ctx.check()
            ShootAccess(name=name).delete(ctx.client, obj.metadata.namespace)

    def _clean_up_secrets(self, ctx: Context, obj: ControlPlane) -> None:
        """A manager that was asked for nothing deletes all that it made."""
        if secrets := self.secrets_manager(ctx, obj):
            ctx.check()
            secrets.cleanup()


def _rendered(manifests: parts.Manifests, at: parts.Situation) -> Sequence[Raw]:
    if isinstance(manifests, Chart):
        return render(manifests, at.cluster.kubernetes_version)
    return list(manifests)


def _credentials(ctx: Context, obj: ControlPlane) -> Sequence[Raw]:
    """The Secret of spec.secretRef, if it exists: a shoot need not have a cloud."""
    try:
        name = obj.spec.secret_ref.name  # with an empty name a GET is a LIST
        return [ctx.client.get(_SECRETS, name, obj.metadata.namespace)] if name else ()
    except (NotFound, DecodeError):  # a deletion with an unreadable secretRef may not need it
        return ()


def _is_running(ctx: Context, obj: ControlPlane) -> bool:
    """Whether the shoot's kube-apiserver still has replicas."""
    try:
        found = ctx.client.get(_DEPLOYMENTS, "kube-apiserver", obj.metadata.namespace)
    except NotFound:
        return False
    return bool(found["spec"].get("replicas"))
