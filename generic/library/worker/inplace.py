"""In-place updates: which machines are updated, and the report in the Worker's status."""

from collections.abc import Iterator, Mapping

import attrs

from actuator.cluster import Cluster
from actuator.v1alpha1 import InPlaceUpdatesWorkerStatus, Worker, WorkerPool
from generic.library.machines import DEPLOYMENT_NAME, Machine, MachineDeployment
from generic.library.worker.group import POOL, MachineGroup
from generic.library.worker.objects import MANAGER, MachineObjects
from generic.library.worker.poolhash import IN_PLACE, MANUAL_IN_PLACE, in_place_hash

_NAMED = 3
_CONDITION = "InPlaceUpdate"
_CANDIDATE = "CandidateForUpdate"
"""Condition of a machine, and its reason until the machine is selected (machine-controller-manager,
pkg/apis/machine/v1alpha1)."""


def missing_in_place(
    group: MachineGroup, deployment: MachineDeployment, found: MachineObjects
) -> str:
    """Return the open condition of a pool with manual selection; "" when it is done.

    It waits for selected machines, not for candidates. Old machines are counted here: the
    deployment's status follows later (gardener, generic Worker actuator_reconcile.go).
    """
    old = [machine for machine in found.machines if _is_old(machine, group, found)]
    selected = [
        f"{machine.metadata.name} ({condition.reason})"
        for machine in old
        for condition in machine.status.conditions
        if condition.type == _CONDITION and condition.reason != _CANDIDATE
    ]
    if selected:
        return f"{len(selected)} selected for an in-place update: {', '.join(selected[:_NAMED])}"
    uncounted = deployment.status.replicas - deployment.status.updated_replicas - len(old)
    return f"{MANAGER} to count {uncounted} updated machines" if uncounted > 0 else ""


def _is_old(machine: Machine, group: MachineGroup, found: MachineObjects) -> bool:
    """Whether the machine belongs to a set of the group with another class than the group's."""
    owners = {owner.name for owner in machine.metadata.owner_references}
    return any(
        set_.metadata.name in owners
        and set_.metadata.labels.get(DEPLOYMENT_NAME) == group.name
        and set_.spec.template.spec.class_.name != group.class_name
        for set_ in found.sets
    )


def note_in_place_updates(worker: Worker, cluster: Cluster, found: MachineObjects) -> None:
    """Put the hash that each pool with in-place updates has reached into the Worker's status.

    Call it when all awaited machines are updated. A pool with manual selection keeps its hash until
    its last machine is updated; a Machine's event then causes another reconciliation.
    Raises ConfigurationError.
    """
    before = worker.status.in_place_updates or InPlaceUpdatesWorkerStatus()
    known = before.worker_pool_to_hash_map
    reached = dict(_reached(worker, cluster, found, known))
    if reached != known:
        worker.status.in_place_updates = attrs.evolve(before, worker_pool_to_hash_map=reached)


def _reached(
    worker: Worker, cluster: Cluster, found: MachineObjects, known: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    for pool in worker.spec.pools:
        if pool.update_strategy not in IN_PLACE:
            continue
        if pool.update_strategy != MANUAL_IN_PLACE or _is_updated(pool, found):
            yield pool.name, in_place_hash(worker, pool, cluster)
        elif pool.name in known:
            yield pool.name, known[pool.name]


def _is_updated(pool: WorkerPool, found: MachineObjects) -> bool:
    mine = (d for d in found.deployments if d.metadata.labels.get(POOL) == pool.name)
    return all(d.status.updated_replicas >= d.status.replicas for d in mine)
