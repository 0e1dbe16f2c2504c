"""The machine class of a worker pool in a zone, from which machines on EC2 are created.

The shape of providerSpec is that of machine-controller-manager-provider-aws (its documentation,
"MachineClass for AWS"). Requests to Kubernetes or AWS do not belong here.
"""

import json
import re

import attrs

from actuator import Cluster, ConfigurationError
from actuator.meta import Raw
from actuator.provider_config import read_config
from actuator.v1alpha1 import DataVolume, Volume, Worker, WorkerPool
from extensions.aws import tags
from extensions.aws.config import API_VERSION, WorkerConfig
from extensions.aws.network import NODES
from extensions.aws.status import Vpc
from generic.library.worker import ProviderImage, pool_field, use_images

_ROOT = "/root"
"""The machine-controller-manager's name of the boot device."""

_DEVICES = "fghijklmnop"
"""Amazon EC2 user guide, "Device names for volumes"."""

_GIBIBYTES = re.compile(r"([0-9]+)Gi")


@attrs.frozen(kw_only=True)
class AwsImage(ProviderImage):
    """A machine image in a region, as the CloudProfile has it."""

    ami: str


def interface(worker: Worker, pool: WorkerPool, zone: str, vpc: Vpc) -> Raw:
    """Return the network interface of machines in that zone. Raises ConfigurationError."""
    if not vpc.id:
        raise ConfigurationError(
            f"Worker {worker.key}: spec.infrastructureProviderStatus names no VPC; "
            "the Infrastructure has to be ready first"
        )
    subnets = [one.id for one in vpc.subnets if (one.zone, one.purpose) == (zone, "workers")]
    groups = [group.id for group in vpc.security_groups if group.purpose == NODES]
    if not subnets or not groups:
        raise ConfigurationError(
            f"{pool_field(worker, pool, 'zones')}: the Infrastructure has no subnet "
            f"for workers in {zone!r}; add the zone there, or choose another"
        )
    return {"subnetID": subnets[0], "securityGroupIDs": groups[:1]}


def amis(worker: Worker, cluster: Cluster) -> list[str]:
    """Return the AMI of each pool: its own, or its image's. Raises ConfigurationError."""
    own = [_config(worker, pool).ami for pool in worker.spec.pools]
    others = [pool for ami, pool in zip(own, worker.spec.pools, strict=True) if not ami]
    found = iter(use_images(AwsImage, worker, others, cluster, API_VERSION))
    return [ami or next(found).ami for ami in own]


def provider_spec(
    worker: Worker, pool: WorkerPool, interface: Raw, ami: str, technical_id: str
) -> Raw:
    """Return the providerSpec of a pool's machines in a zone. Raises ConfigurationError."""
    profile = _config(worker, pool).iam_instance_profile
    return {
        "ami": ami,
        "region": worker.spec.region,
        "machineType": pool.machine_type,
        "networkInterfaces": [interface],
        "tags": {**tags.mark(technical_id), "kubernetes.io/role/node": "1", **pool.labels},
        "instanceMetadataOptions": {"httpTokens": "required"},
        **({"iam": {"name": profile}} if profile else {}),
        "blockDevices": _disks(worker, pool),
    }


def _config(worker: Worker, pool: WorkerPool) -> WorkerConfig:
    return read_config(WorkerConfig, worker, worker.spec.pools.index(pool))


def _disks(worker: Worker, pool: WorkerPool) -> list[Raw]:
    """Return the disks of a pool's machines; without any, AWS uses the disk of the AMI."""
    if len(pool.data_volumes) > len(_DEVICES):
        field = pool_field(worker, pool, "dataVolumes")
        raise ConfigurationError(f"{field}: there are more than {len(_DEVICES)}; remove some")
    disks: list[tuple[str, str, Volume | DataVolume]] = [
        (f"/dev/sd{_DEVICES[number]}", f"dataVolumes[{number}].size", volume)
        for number, volume in enumerate(pool.data_volumes)
    ]
    if pool.volume is not None:
        disks.insert(0, (_ROOT, "volume.size", pool.volume))
    return [
        _disk(device, volume, pool_field(worker, pool, field)) for device, field, volume in disks
    ]


def _disk(device: str, volume: Volume | DataVolume, field: str) -> Raw:
    size = _GIBIBYTES.fullmatch(volume.size)
    if size is None:
        raise ConfigurationError(
            f'{field}: {volume.size!r} is no size that AWS takes; write it like "50Gi"'
        )
    ebs: Raw = {"volumeSize": int(size[1]), "deleteOnTermination": True}
    ebs["encrypted"] = volume.encrypted is not False
    if volume.type:
        ebs["volumeType"] = volume.type
    return {"deviceName": device, "ebs": ebs}


def hash_items(pool: WorkerPool) -> list[str]:
    """Return further data whose change replaces a pool's machines: disks and providerConfig."""
    volumes = [one for one in (pool.volume, *pool.data_volumes) if one is not None]
    items = [f"{one.size}{one.type or ''}{one.encrypted is not False}" for one in volumes]
    if pool.provider_config is not None:
        items.append(json.dumps(pool.provider_config, sort_keys=True))
    return items


def hash_items_in_place(pool: WorkerPool) -> list[str]:
    """Return the data that a pool with in-place updates adds to its hash; it never changes.

    Disks and providerConfig are not part of it: no update can change them in place (Gardener's AWS
    extension, `ComputeAdditionalHashDataInPlace`).
    """
    encrypted = pool.volume.encrypted if pool.volume is not None else None
    return [] if encrypted is None else [str(encrypted).lower()]
