"""ManagedResourceActuator: the base class of actuators whose result is one ManagedResource."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Literal, TypeVar

from actuator.cluster import Cluster
from actuator.interface import Actuator, C, Context, Permission, Result, SeedObjects
from actuator.meta import Object, Raw
from generic.library import seedobjects
from generic.library.managedresources import deletion, ours
from generic.library.managedresources.deployment import Fields, deploy_for_seed, deploy_for_shoot
from generic.library.managedresources.kind import GroupKind

K = TypeVar("K", bound=Object)


class ManagedResourceActuator(Actuator[K, C]):
    """Deploys the `manifests` of each object of class K by a ManagedResource in its namespace.

    `reconcile` and `restore` deploy them, `delete` deletes them and waits. `migrate` leaves the
    objects in a shoot to the next seed, and deletes those in this seed. `objects_in_seed` adds
    objects in the seed that are kept by finalizers of other controllers. `force_delete` removes
    `seed_objects`, and does not wait for the shoot, which gardenlet deletes (Gardener
    documentation, "Force Deletion"). To do more in an operation, override it and call `super()`.
    """

    permissions: Sequence[Permission] = ours.PERMISSIONS
    """A subclass with further ones lists these too: `(*managedresources.PERMISSIONS, …)`."""

    managed_name: str = "extension-{kind}-{name}"
    """The name of the ManagedResource, with the kind and the name of the object in lower case."""

    origin: str = ours.DEFAULT_ORIGIN
    """The label `origin`, by which the ManagedResources of this extension are known."""

    target: Literal["seed", "shoot"] = "shoot"
    """The cluster that gets the objects."""

    waits_until_healthy: bool = False
    """Whether `reconcile` requeues until the objects are healthy, except in hibernation."""

    delete_persistent_volume_claims: bool = False
    force_overwrite_annotations: bool = False
    force_overwrite_labels: bool = False
    inject_labels: ClassVar[Mapping[str, str]] = {}
    equivalences: Sequence[Sequence[GroupKind]] = ()
    """Fields of the ManagedResource (Gardener documentation, "gardener-resource-manager")."""

    @abstractmethod
    def manifests(self, ctx: Context[C], obj: K, cluster: Cluster, /) -> Iterable[Raw]:
        """Return all objects; one that is no longer among them is deleted."""

    def objects_in_seed(
        self, ctx: Context[C], obj: K, cluster: Cluster, /
    ) -> Mapping[SeedObjects, Iterable[Raw]]:
        """Return all objects of each group in `seed_objects`; none by default.

        With this method, `delete` and `migrate` delete the groups and wait for their controllers.
        """
        return {}

    def reconcile(self, ctx: Context[C], obj: K, cluster: Cluster, /) -> Result | None:
        """Ensure the seed objects, and deploy the manifests."""
        for group, wanted in self.objects_in_seed(ctx, obj, cluster).items():
            seedobjects.ensure_only(ctx.client, group, wanted, obj.metadata.namespace)
        fields = Fields(
            delete_persistent_volume_claims=self.delete_persistent_volume_claims,
            force_overwrite_annotations=self.force_overwrite_annotations,
            force_overwrite_labels=self.force_overwrite_labels,
            inject_labels=self.inject_labels,
            equivalences=self.equivalences,
        )
        deploy = deploy_for_seed if self.target == "seed" else deploy_for_shoot
        manifests = self.manifests(ctx, obj, cluster)
        name = self._managed_name(obj)
        deploy(ctx.client, name, obj.metadata.namespace, manifests, origin=self.origin, **fields)
        if self.waits_until_healthy and not (
            cluster.hibernation_enabled and self.target == "shoot"
        ):
            deletion.wait_until_healthy(
                ctx.client,
                ctx.clock,
                name,
                namespace=obj.metadata.namespace,
                origin=self.origin,
            )
        return None

    def delete(self, ctx: Context[C], obj: K, cluster: Cluster, /) -> None:
        """Delete the ManagedResource, its objects and the seed objects."""
        self._withdraw(ctx, obj, self._created)

    def migrate(self, ctx: Context[C], obj: K, cluster: Cluster, /) -> None:
        """Delete ManagedResource and seed objects; keep the objects in a shoot."""
        if self.target == "shoot":
            name = self._managed_name(obj)
            namespace = obj.metadata.namespace
            deletion.set_keep_objects(ctx.client, name, namespace, keep=True, origin=self.origin)
        self._withdraw(ctx, obj, self._created)

    def force_delete(self, ctx: Context[C], obj: K, cluster: Cluster, /) -> None:
        """Delete the ManagedResource and the seed objects; wait for nothing in a shoot."""
        self._request_deletion(ctx, obj)
        super().force_delete(ctx, obj, cluster)
        if self.target == "seed":
            self._withdraw(ctx, obj)

    @property
    def _created(self) -> Sequence[SeedObjects]:
        """The groups, if it is this actuator that creates the objects."""
        has_none = type(self).objects_in_seed is ManagedResourceActuator.objects_in_seed
        return () if has_none else self.seed_objects

    def _managed_name(self, obj: K) -> str:
        known = {"kind": obj.KIND.name.lower(), "name": obj.metadata.name}
        return self.managed_name.format(**known)

    def _request_deletion(self, ctx: Context[C], obj: K) -> None:
        name = self._managed_name(obj)
        namespace = obj.metadata.namespace
        deletion.delete(ctx.client, name, namespace, origin=self.origin)

    def _withdraw(self, ctx: Context[C], obj: K, groups: Sequence[SeedObjects] = ()) -> None:
        """Delete ManagedResource and groups, and wait: see `check_deleted` for what it raises."""
        name = self._managed_name(obj)
        namespace = obj.metadata.namespace
        seedobjects.delete(ctx.client, groups, namespace)
        self._request_deletion(ctx, obj)
        deletion.check_deleted(ctx.client, ctx.clock, name, namespace=namespace, origin=self.origin)
        seedobjects.check_deleted(ctx, groups, namespace)
