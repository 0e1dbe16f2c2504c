"""The machine class of a worker pool in a zone, from which machines on EC2 are created.

The shape of providerSpec is that of machine-controller-manager-provider-aws (its documentation,
"MachineClass for AWS"). Requests to Kubernetes or AWS do not belong here.
"""

import json
import re
from collections.abc import Sequence

import attrs

from actuator import Cluster, ConfigurationError, Raw
from actuator.v1alpha1 import DataVolume, Volume, Worker, WorkerPool
from extensions.aws import tags
from extensions.aws.config import API_VERSION, WorkerConfig
from extensions.aws.status import NODES, InfrastructureStatus, VpcStatus
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


def interface(worker: Worker, pool: WorkerPool, zone: str, vpc: VpcStatus) -> Raw:
    """Return the network interface of machines in that zone. Raises ConfigurationError."""
    if not vpc.id:
        raise ConfigurationError(
            f"Worker {worker.key}: spec.infrastructureProviderStatus names no VPC; "
            "the Infrastructure has to be ready first"
        )
    subnets = [
        subnet.id for subnet in vpc.subnets if (subnet.zone, subnet.purpose) == (zone, NODES)
    ]
    groups = [group.id for group in vpc.security_groups if group.purpose == NODES]
    if not subnets or not groups:
        raise ConfigurationError(
            f"{pool_field(worker, pool, 'zones')}: the Infrastructure has no subnet "
            f"for workers in {zone!r}; add the zone there, or choose another"
        )
    return {"subnetID": subnets[0], "securityGroupIDs": groups[:1]}


def amis(worker: Worker, configs: Sequence[WorkerConfig], cluster: Cluster) -> list[str]:
    """Return the AMI of each pool: its own, or its image's. Raises ConfigurationError."""
    own = [config.ami for config in configs]
    others = [pool for ami, pool in zip(own, worker.spec.pools, strict=True) if not ami]
    found = iter(use_images(AwsImage, worker, others, cluster, API_VERSION))
    return [ami or next(found).ami for ami in own]


def provider_spec(
    worker: Worker, pool: WorkerPool, interface: Raw, config: WorkerConfig, technical_id: str
) -> Raw:
    """Return the providerSpec of a pool's machines in a zone. Raises ConfigurationError."""
    return {
        "ami": config.ami,
        "region": worker.spec.region,
        "machineType": pool.machine_type,
        "networkInterfaces": [interface],
        "tags": {**tags.mark(technical_id), "kubernetes.io/role/node": "1", **pool.labels},
        "instanceMetadataOptions": {"httpTokens": "required"},
        "blockDevices": _disks(worker, pool),
    }


def access(config: WorkerConfig, reported: InfrastructureStatus) -> Raw:
    """Return the fields of a providerSpec for the role of machines, and the key of their users."""
    profiles = [item.name for item in reported.iam.instance_profiles if item.purpose == NODES]
    found: Raw = {"keyName": reported.ec2.key_name} if reported.ec2.key_name else {}
    for profile in [config.iam_instance_profile, *profiles]:
        if profile:
            return {**found, "iam": {"name": profile}}
    return found


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
    volumes = [volume for volume in (pool.volume, *pool.data_volumes) if volume is not None]
    items = [
        f"{volume.size}{volume.type or ''}{volume.encrypted is not False}" for volume in volumes
    ]
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
