"""AwsWorker: the machines of a shoot on EC2, requested by a Worker.

Each pool has one group of machines per zone: `machineclass` makes its class from pool, network and
CloudProfile. `generic` applies it, waits, and deletes; the machine-controller-manager creates the
machines. No operation here sends requests to AWS. A force deletion therefore removes the machine
objects from the seed, and remaining machines carry the shoot's tag.
"""

from collections.abc import Iterable, Iterator, Sequence

from actuator import Cluster, ConfigurationError, Context, ErrorCode, ExternalResource
from actuator.v1alpha1 import Worker
from extensions.aws import machineclass, tags
from extensions.aws.account import OnAws
from extensions.aws.errors import codes_in
from extensions.aws.host import INSTANCE
from extensions.aws.status import Vpc
from generic.library.worker import (
    GenericWorker,
    MachineGroup,
    in_zone,
    pool_hash,
    technical_id_of,
    user_data,
)

_ZONE_LABEL = "topology.ebs.csi.aws.com/zone"
"""The label that tells the CSI driver the zone of a node's disks."""

_TECHNICAL_ID = "technicalID"
"""Field of providerStatus, set if the technical ID differs from the Worker's namespace."""


class AwsWorker(OnAws, GenericWorker):
    """Machine deployments on EC2."""

    def machine_deployments(
        self, ctx: Context, worker: Worker, cluster: Cluster
    ) -> Sequence[MachineGroup]:
        """Return one for each zone of each pool. Raises ConfigurationError."""
        vpc, technical_id = machineclass.network_of(worker), technical_id_of(cluster)
        if technical_id != worker.metadata.namespace:  # external_resources gets no Cluster
            known = worker.status.provider_status or {}
            worker.status.provider_status = {**known, _TECHNICAL_ID: technical_id}
        return [
            group
            for index, ami in enumerate(machineclass.amis(worker, cluster))
            for group in _groups(ctx, worker, cluster, index, vpc, ami)
        ]

    def error_codes(self, text: str) -> Iterable[ErrorCode]:
        """Return Gardener's codes for the AWS codes in the descriptions of failed machines."""
        return codes_in(text)

    def external_resources(self, obj: Worker) -> Iterable[ExternalResource]:
        """Return the machines, by tag, once some may exist: the seed does not know their ids."""
        if obj.status.machine_deployments or obj.status.state is not None:
            technical_id = (obj.status.provider_status or {}).get(_TECHNICAL_ID)
            owner = tags.mark(str(technical_id or obj.metadata.namespace))
            yield ExternalResource(type=INSTANCE, tags=owner, region=obj.spec.region)


def _groups(
    ctx: Context, worker: Worker, cluster: Cluster, index: int, vpc: Vpc, ami: str
) -> Iterator[MachineGroup]:
    pool, technical_id = worker.spec.pools[index], technical_id_of(cluster)
    items, in_place = machineclass.hash_items(pool), machineclass.hash_items_in_place(pool)
    hash = pool_hash(worker, pool, cluster, additional=items, additional_in_place=in_place)
    data = {"userData": user_data(ctx.client, worker, pool)}
    if not pool.zones:
        raise ConfigurationError(
            f"Worker {worker.key}: spec.pools[{index}].zones: expected at least one zone, got "
            "none; add one to the Shoot"
        )
    for number, zone in enumerate(pool.zones):
        place = machineclass.placement(worker, index, zone, vpc)
        yield in_zone(
            worker,
            pool,
            cluster,
            number,
            hash=hash,
            provider="AWS",
            provider_spec=machineclass.provider_spec(worker, index, place, ami, technical_id),
            secret_data=data,
            credentials=worker.spec.secret_ref,
            labels={_ZONE_LABEL: zone},
            node_template=machineclass.node_template(worker, pool, zone),
        )
