"""AwsWorker: the machines of a shoot on EC2, requested by a Worker.

Each pool has one group of machines per zone: `machineclass` makes its class from pool, network and
CloudProfile. `generic` applies it, waits, and deletes; the machine-controller-manager creates the
machines. No operation here sends requests to AWS. A force deletion therefore removes the machine
objects from the seed, and remaining machines carry the shoot's tag.
"""

from collections.abc import Iterable, Iterator, Sequence

import attrs

from actuator import Cluster, ConfigurationError, Context, ErrorCode, ExternalResource
from actuator.v1alpha1 import Worker, WorkerPool
from extensions.aws import machineclass, tags
from extensions.aws.account import OnAws
from extensions.aws.config import WorkerConfig
from extensions.aws.ec2 import INSTANCE
from extensions.aws.errors import codes_in
from extensions.aws.status import InfrastructureStatus, infrastructure_of
from generic.library.worker import (
    GenericWorker,
    MachineGroup,
    in_zone,
    pool_field,
    pool_hash,
    require_technical_id,
    user_data,
)

_ZONE_LABEL = "topology.ebs.csi.aws.com/zone"
"""The label that tells the CSI driver the zone of a node's disks."""

_CLASS_ZONE_LABEL = "failure-domain.beta.kubernetes.io/zone"
"""Label of machine classes, as of Gardener's extension for AWS."""

_TECHNICAL_ID = "technicalID"
"""Field of providerStatus, set if the technical ID differs from the Worker's namespace."""


class AwsWorker(OnAws, GenericWorker[WorkerConfig]):
    """Machine deployments on EC2."""

    def machine_deployments(
        self, ctx: Context[WorkerConfig], worker: Worker, cluster: Cluster
    ) -> Sequence[MachineGroup]:
        """Return one for each zone of each pool. Raises ConfigurationError."""
        reported = infrastructure_of(worker)
        technical_id = require_technical_id(cluster)
        if technical_id != worker.metadata.namespace:  # external_resources gets no Cluster
            known = worker.status.provider_status or {}
            worker.status.provider_status = {**known, _TECHNICAL_ID: technical_id}
        configs = [ctx.pool_config(index) for index in range(len(worker.spec.pools))]
        images = machineclass.amis(worker, configs, cluster)
        return [
            group
            for pool, config, ami in zip(worker.spec.pools, configs, images, strict=True)
            for group in _groups(
                ctx, worker, pool, cluster, reported, attrs.evolve(config, ami=ami)
            )
        ]

    def error_codes(self, text: str) -> Iterable[ErrorCode]:
        """Return Gardener's codes for the AWS codes in the descriptions of failed machines."""
        return codes_in(text)

    def external_resources(self, obj: Worker) -> Iterable[ExternalResource]:
        """Return the machines, by tag, once some may exist: the seed does not know their ids."""
        if obj.status.machine_deployments or obj.status.state is not None:
            technical_id = (obj.status.provider_status or {}).get(_TECHNICAL_ID)
            owner = tags.mark(str(technical_id or obj.metadata.namespace))
            yield ExternalResource(type=INSTANCE.name, tags=owner, region=obj.spec.region)


def _groups(
    ctx: Context,
    worker: Worker,
    pool: WorkerPool,
    cluster: Cluster,
    reported: InfrastructureStatus,
    config: WorkerConfig,
) -> Iterator[MachineGroup]:
    items = machineclass.hash_items(pool)
    in_place = machineclass.hash_items_in_place(pool)
    hash = pool_hash(worker, pool, cluster, additional=items, additional_in_place=in_place)
    data = {"userData": user_data(ctx.client, worker, pool)}
    technical_id = require_technical_id(cluster)
    if not pool.zones:
        raise ConfigurationError(
            f"{pool_field(worker, pool, 'zones')}: expected at least one zone, got none; "
            "add one to the Shoot"
        )
    for number, zone in enumerate(pool.zones):
        interface = machineclass.interface(worker, pool, zone, reported.vpc)
        spec = machineclass.provider_spec(worker, pool, interface, config, technical_id)
        yield in_zone(
            worker,
            pool,
            cluster,
            number,
            hash=hash,
            provider="AWS",
            provider_spec={**spec, **machineclass.access(config, reported)},
            secret_data=data,
            credentials=worker.spec.secret_ref,
            labels={_ZONE_LABEL: zone},
            class_labels={_CLASS_ZONE_LABEL: zone},
        )
