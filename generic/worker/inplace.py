"""How far pools are whose machines are updated in place: their names stay, so a hash says it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from actuator.cluster import Cluster
from actuator.v1alpha1 import InPlaceUpdatesWorkerStatus, Worker, WorkerPool
from generic.worker.group import IN_PLACE, MANUAL_IN_PLACE, POOL
from generic.worker.objects import MachineObjects
from generic.worker.poolhash import in_place_hash

__all__ = ["note_in_place_updates"]


def note_in_place_updates(worker: Worker, cluster: Cluster, found: MachineObjects) -> None:
    """Afterwards the Worker's status says it, of each such pool, and of no other.

    For a time at which everything that updates itself is up to date. Where somebody else says when
    each machine is updated, the pool stays at what it had reached until the last one is; that is
    seen at the next look (`generic.watch.MACHINES` brings one). Raises ConfigurationError.
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
            yield pool.name, in_place_hash(pool, cluster)
        elif pool.name in known:
            yield pool.name, known[pool.name]


def _is_updated(pool: WorkerPool, found: MachineObjects) -> bool:
    mine = (d for d in found.deployments if d.metadata.labels.get(POOL) == pool.name)
    return all(d.status.updated_replicas >= d.status.replicas for d in mine)
