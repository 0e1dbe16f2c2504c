"""AwsWorker: the machines of a shoot on EC2, asked for by a Worker.

For each pool and zone one group of machines: its class says what `machineclass` makes of pool,
network and CloudProfile. `generic` applies it, waits, and deletes; machines are made by the
machine-controller-manager. No operation in here asks AWS for anything, so a forced deletion takes
the machine objects out of the seed, and what machines are left carries the shoot's mark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from actuator import Cluster, ConfigurationError, Context, ExternalResource, Resource
from actuator.errors import NotFound
from actuator.meta import Base64
from actuator.v1alpha1 import Worker, WorkerPool
from extensions.aws import tags
from extensions.aws.account import OnAws
from extensions.aws.host import INSTANCE
from extensions.aws.machineclass import (
    hash_items,
    image,
    network_of,
    node_template,
    placement,
    provider_spec,
)
from extensions.aws.status import Vpc
from generic.worker import GenericWorker, MachineGroup, in_zone, pool_hash

__all__ = ["AwsWorker"]

_SECRETS = Resource("v1", "secrets")
_ZONE_LABEL = "topology.ebs.csi.aws.com/zone"
"""Label by which the CSI driver knows where a node's disks can be."""


class AwsWorker(OnAws, GenericWorker):
    """Machine deployments on EC2."""

    def machine_deployments(
        self, ctx: Context, worker: Worker, cluster: Cluster
    ) -> Sequence[MachineGroup]:
        """One for each zone of each pool. Raises ConfigurationError."""
        vpc = network_of(worker)
        return [
            group
            for index in range(len(worker.spec.pools))
            for group in _groups(ctx, worker, cluster, index, vpc)
        ]

    def external_resources(self, obj: Worker) -> Iterable[ExternalResource]:
        """The machines, once some may have been made: the seed does not know their ids."""
        if obj.status.machine_deployments or obj.status.state is not None:
            owner = tags.mark(obj.metadata.namespace)
            yield tags.to_search_for(INSTANCE, owner, obj.spec.region)


def _groups(
    ctx: Context, worker: Worker, cluster: Cluster, index: int, vpc: Vpc
) -> Iterator[MachineGroup]:
    pool = worker.spec.pools[index]
    image_id = image(worker, index, cluster)
    items = hash_items(pool)
    hash = pool_hash(pool, cluster, additional=items, additional_with_node_agent=items)
    user_data = _user_data(ctx, worker, pool)
    for number, zone in enumerate(pool.zones):
        place = placement(worker, index, zone, vpc)
        yield in_zone(
            worker,
            pool,
            number,
            hash=hash,
            provider="AWS",
            provider_spec=provider_spec(worker, index, place, image_id),
            secret_data={"userData": user_data},
            credentials=worker.spec.secret_ref,
            labels={_ZONE_LABEL: zone},
            node_template=node_template(worker, pool, zone),
        )


def _user_data(ctx: Context, worker: Worker, pool: WorkerPool) -> bytes:
    """What a new machine of the pool runs first. Raises ConfigurationError where it is missing."""
    reference, namespace = pool.user_data_secret_ref, worker.metadata.namespace
    try:
        data = ctx.client.get(_SECRETS, reference.name, namespace).get("data") or {}
    except NotFound:
        data = {}
    if reference.key not in data:
        raise ConfigurationError(
            f"Worker {worker.key}: pool {pool.name}: userDataSecretRef: there is no Secret "
            f"{namespace}/{reference.name} with the data key {reference.key}; create it"
        )
    return Base64(data[reference.key]).decode_bytes()
