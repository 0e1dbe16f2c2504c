"""GenericWorker: the flow of each operation; the steps are in the modules beside this one."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from actuator.classification import with_codes
from actuator.cluster import Cluster
from actuator.errors import ApiError, Cancelled, ConfigurationError, ErrorCode
from actuator.interface import Actuator, C, Context
from actuator.meta import format_time
from actuator.v1alpha1 import Worker
from generic.controller.watch import MACHINES
from generic.library.lookup import runs
from generic.library.machines import MACHINE_OBJECTS
from generic.library.worker import objects, removal
from generic.library.worker.availability import check_available, refuse_failed
from generic.library.worker.group import MachineGroup
from generic.library.worker.inplace import note_in_place_updates
from generic.library.worker.rollout import apply_classes, apply_deployments
from generic.library.worker.state import machine_state, recreate


class GenericWorker(Actuator[Worker, C]):
    """A Worker of any provider: the author returns the machines, and may add steps around it.

    Machines of pools with in-place updates are watched: when the user selects one, the Worker is
    reconciled until it is updated. `force_delete` succeeds at once and leaves machine objects to
    gardenlet, which removes their finalizers itself (Gardener documentation, "Force Deletion").
    """

    seed_objects = MACHINE_OBJECTS
    permissions = objects.PERMISSIONS
    watches = (MACHINES,)

    @abstractmethod
    def machine_deployments(
        self, ctx: Context[C], worker: Worker, cluster: Cluster, /
    ) -> Sequence[MachineGroup]:
        """Return the groups of machines of the Worker: `in_zone` builds one.

        It writes nothing, except a provider's report about machine images in
        `worker.status.provider_status`. Raises ConfigurationError.
        """

    def error_codes(self, text: str, /) -> Iterable[ErrorCode]:
        """Gardener's codes for the text of an error without codes; none by default.

        The text of failed machines contains the description of their last operation. Without a
        code in lastError, Gardener does not let a user force-delete the shoot.
        """
        return ()

    def pre_reconcile(self, ctx: Context[C], worker: Worker, cluster: Cluster, /) -> None:
        """Run before a reconciliation or a restoration; nothing by default."""
        return

    def post_reconcile(self, ctx: Context[C], worker: Worker, cluster: Cluster, /) -> None:
        """Run after a finished reconciliation or restoration; nothing by default."""
        return

    def pre_delete(self, ctx: Context[C], worker: Worker, cluster: Cluster, /) -> None:
        """Run before each attempt at a deletion; nothing by default."""
        return

    def post_delete(self, ctx: Context[C], worker: Worker, cluster: Cluster, /) -> None:
        """Run after all machines are deleted; nothing by default."""
        return

    def reconcile(self, ctx: Context[C], worker: Worker, cluster: Cluster, /) -> None:
        """Make exactly the machines of the pools exist and be available."""
        with self._coded():
            self.pre_reconcile(ctx, worker, cluster)
            self._roll_out(ctx, worker, cluster, self.machine_deployments(ctx, worker, cluster))

    def restore(self, ctx: Context[C], worker: Worker, cluster: Cluster, /) -> None:
        """Recreate the machine objects of the other seed from `status.state`, then reconcile."""
        with self._coded():
            self.pre_reconcile(ctx, worker, cluster)
            groups = self.machine_deployments(ctx, worker, cluster)
            self._roll_out(ctx, worker, cluster, groups, _restored(ctx, worker, cluster, groups))

    def delete(self, ctx: Context[C], worker: Worker, cluster: Cluster, /) -> None:
        """Delete all machines, in the seed and at the provider."""
        with self._coded():
            self.pre_delete(ctx, worker, cluster)
            removal.remove_all(ctx, worker, lambda: self.machine_deployments(ctx, worker, cluster))
            removal.wait_until_released(ctx, worker)
            self.post_delete(ctx, worker, cluster)

    def force_delete(self, ctx: Context[C], worker: Worker, cluster: Cluster, /) -> None:
        """Do nothing: gardenlet deletes all machine objects."""

    @contextmanager
    def _coded(self) -> Iterator[None]:
        """Add the author's codes to errors of the provider that carry none."""
        try:
            yield
        except (ApiError, Cancelled):  # of the seed, with retry_after; or the call must stop
            raise
        except Exception as error:
            coded = with_codes(error, self.error_codes)
            if coded is error:
                raise
            raise coded from error

    def _roll_out(
        self,
        ctx: Context[C],
        worker: Worker,
        cluster: Cluster,
        groups: Sequence[MachineGroup],
        restored: Mapping[str, int] | None = None,
    ) -> None:
        namespace = worker.metadata.namespace
        _refuse_same_names(worker, groups)
        removal.require_credentials(ctx, worker, groups)
        apply_classes(ctx.client, namespace, groups)
        found = objects.look(ctx.client, namespace)
        if cluster.hibernation_enabled:
            objects.label_for_force_deletion(ctx.client, found.machines)
        apply_deployments(ctx.client, worker, cluster, groups, found, restored or {})
        worker.status.machine_deployments = [group.status() for group in groups]
        worker.status.machine_deployments_last_update_time = format_time(ctx.clock.now())
        ctx.save(worker)  # before waiting: gardenlet starts the cluster-autoscaler with it
        found = objects.look(ctx.client, namespace)
        check_available(ctx, cluster, groups, found)
        note_in_place_updates(worker, cluster, found)
        removal.remove_unwanted(ctx, namespace, groups, found.sets)
        if not cluster.hibernation_enabled or runs(ctx.client, objects.MANAGER, namespace):
            _wait_for_unwanted(groups, objects.look(ctx.client, namespace))
        if cluster.hibernation_enabled:
            objects.scale_manager(ctx.client, namespace, 0)
        self.post_reconcile(ctx, worker, cluster)


def _refuse_same_names(worker: Worker, groups: Sequence[MachineGroup]) -> None:
    names = [group.name for group in groups]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigurationError(
            f"Worker {worker.key}: spec.pools: names of machine groups are not unique: "
            f"{', '.join(twice)}; rename the pools"
        )


def _restored(
    ctx: Context[C], worker: Worker, cluster: Cluster, groups: Sequence[MachineGroup]
) -> Mapping[str, int]:
    """Recreate the machine objects in status.state; return the replicas of their deployments."""
    namespace = worker.metadata.namespace
    states = machine_state(worker, cluster)
    # Groups without machine sets on the former seed start new later.
    known = [g for g in groups if g.name in states and states[g.name].machine_sets]
    apply_classes(ctx.client, namespace, known)
    recreate(ctx.client, namespace, [states[g.name] for g in known])
    counts = {group.name: states[group.name].replicas for group in known}
    apply_deployments(
        ctx.client, worker, cluster, known, objects.look(ctx.client, namespace), counts
    )
    if not cluster.is_hibernated:
        objects.scale_manager(ctx.client, namespace, 1)
    return counts


def _wait_for_unwanted(groups: Sequence[MachineGroup], found: objects.MachineObjects) -> None:
    names = {group.name for group in groups}
    unwanted = [d for d in found.deployments if d.metadata.name not in names]
    for deployment in unwanted:
        refuse_failed(deployment)
    if unwanted:
        left = ", ".join(deployment.metadata.name for deployment in unwanted)
        raise objects.waiting_for(f"the deletion of MachineDeployment {left}")
