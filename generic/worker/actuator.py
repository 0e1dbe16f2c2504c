"""GenericWorker: the flow of each operation; the steps are in the modules beside this one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from actuator.cluster import Cluster
from actuator.errors import ActuatorError
from actuator.interface import Actuator, Context
from actuator.meta import format_time
from actuator.v1alpha1 import Worker
from generic.machines import MACHINE_OBJECTS
from generic.worker.availability import check_available, refuse_failed
from generic.worker.group import MachineGroup
from generic.worker.inplace import note_in_place_updates
from generic.worker.objects import (
    PERMISSIONS,
    MachineObjects,
    label_for_force_deletion,
    look,
    scale_manager,
    waiting_for,
)
from generic.worker.removal import remove_all, remove_unwanted, wait_until_released
from generic.worker.rollout import apply_classes, apply_deployments
from generic.worker.state import machine_state, recreate, with_state

__all__ = ["GenericWorker"]


class GenericWorker(Actuator[Worker]):
    """A Worker of any provider: the author says which machines, and may add steps around it.

    `force_delete` succeeds at once and leaves machine objects to gardenlet, which lets go of them
    itself (Gardener documentation, "Force Deletion"). With `strips_machine_objects` they are
    deleted and stripped here, for seeds without a gardenlet.
    """

    strips_machine_objects = False
    seed_objects = MACHINE_OBJECTS
    permissions = PERMISSIONS

    @abstractmethod
    def machine_deployments(
        self, ctx: Context, worker: Worker, cluster: Cluster, /
    ) -> Sequence[MachineGroup]:
        """The groups of machines that the Worker stands for: `in_zone` makes one.

        Nothing is written here, except what a provider reports of machine images into
        `worker.status.provider_status`. Raises ConfigurationError.
        """

    def pre_reconcile(self, ctx: Context, worker: Worker, cluster: Cluster, /) -> None:
        """Before a reconciliation or a restoration; nothing by default."""
        return

    def post_reconcile(self, ctx: Context, worker: Worker, cluster: Cluster, /) -> None:
        """After one that is done; nothing by default."""
        return

    def pre_delete(self, ctx: Context, worker: Worker, cluster: Cluster, /) -> None:
        """Before a deletion, at each look; nothing by default."""
        return

    def post_delete(self, ctx: Context, worker: Worker, cluster: Cluster, /) -> None:
        """When all machines are gone; nothing by default."""
        return

    def reconcile(self, ctx: Context, worker: Worker, cluster: Cluster, /) -> None:
        """Afterwards exactly the machines that the pools ask for are there and available."""
        self.pre_reconcile(ctx, worker, cluster)
        self._roll_out(ctx, worker, cluster, self.machine_deployments(ctx, worker, cluster))

    def restore(self, ctx: Context, worker: Worker, cluster: Cluster, /) -> None:
        """Like reconcile, after the machines of the other seed were made known here."""
        self.pre_reconcile(ctx, worker, cluster)
        groups = self.machine_deployments(ctx, worker, cluster)
        states = machine_state(worker)
        known = with_state(groups, states)
        apply_classes(ctx.client, worker.metadata.namespace, known)
        recreate(ctx.client, worker.metadata.namespace, (states[g.name] for g in known))
        found = look(ctx.client, worker.metadata.namespace)
        counts = {group.name: states[group.name].replicas for group in known}
        apply_deployments(ctx.client, worker, cluster, known, found, counts)
        if not cluster.is_hibernated:
            scale_manager(ctx.client, worker.metadata.namespace, 1)
        self._roll_out(ctx, worker, cluster, groups, counts)

    def delete(self, ctx: Context, worker: Worker, cluster: Cluster, /) -> None:
        """Afterwards no machine is left, in the seed nor outside."""
        self.pre_delete(ctx, worker, cluster)
        remove_all(ctx, worker, lambda: self.machine_deployments(ctx, worker, cluster))
        wait_until_released(ctx, worker)
        self.post_delete(ctx, worker, cluster)

    def force_delete(self, ctx: Context, worker: Worker, cluster: Cluster, /) -> None:
        """Nothing, unless `strips_machine_objects`: then no machine object is left."""
        if self.strips_machine_objects:
            ctx.delete_seed_objects(self.seed_objects)

    def _roll_out(
        self,
        ctx: Context,
        worker: Worker,
        cluster: Cluster,
        groups: Sequence[MachineGroup],
        restored: Mapping[str, int] | None = None,
    ) -> None:
        namespace = worker.metadata.namespace
        _refuse_same_names(worker, groups)
        apply_classes(ctx.client, namespace, groups)
        found = look(ctx.client, namespace)
        if cluster.hibernation_enabled:
            label_for_force_deletion(ctx.client, found.machines)
        apply_deployments(ctx.client, worker, cluster, groups, found, restored or {})
        _report(ctx, worker, groups)
        found = look(ctx.client, namespace)
        check_available(ctx, cluster, groups, found)
        note_in_place_updates(worker, cluster, found)
        remove_unwanted(ctx, namespace, groups)
        if cluster.hibernation_enabled:
            scale_manager(ctx.client, namespace, 0)
        else:
            _wait_for_unwanted(groups, look(ctx.client, namespace))
        self.post_reconcile(ctx, worker, cluster)


def _refuse_same_names(worker: Worker, groups: Sequence[MachineGroup]) -> None:
    names = [group.name for group in groups]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ActuatorError(
            f"Worker {worker.key}: more than one group of machines is called {', '.join(twice)}; "
            "give each pool, and each zone of it, a name of its own"
        )


def _report(ctx: Context, worker: Worker, groups: Sequence[MachineGroup]) -> None:
    """Saves it before machines are waited for: gardenlet starts the cluster-autoscaler with it."""
    worker.status.machine_deployments = [group.status() for group in groups]
    worker.status.machine_deployments_last_update_time = format_time(ctx.clock.now())
    ctx.save(worker)


def _wait_for_unwanted(groups: Sequence[MachineGroup], found: MachineObjects) -> None:
    names = {group.name for group in groups}
    unwanted = [d for d in found.deployments if d.metadata.name not in names]
    for deployment in unwanted:
        refuse_failed(deployment)
    if unwanted:
        left = ", ".join(deployment.metadata.name for deployment in unwanted)
        raise waiting_for(f"the deletion of MachineDeployment {left}")
