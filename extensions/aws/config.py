"""providerConfig for AWS, decoded strictly and validated.

The shape follows the configurations of Gardener's AWS extension (provider-extension-aws
documentation, "Using the AWS provider extension with Gardener as an end-user"), reduced to the
resources that this sample creates. Pure: AWS itself reports problems that only AWS can know, such
as quotas and the zones of an account.
"""

import re
from collections.abc import Iterator
from ipaddress import IPv4Network
from itertools import combinations
from typing import TypeVar

import attrs

from actuator import ConfigurationError
from actuator.codec import decode_strictly
from actuator.errors import DecodeError
from actuator.meta import Raw
from actuator.v1alpha1 import Infrastructure

API_VERSION = "aws.provider.extensions.gardener.cloud/v1alpha1"
_REGION = re.compile(r"[a-z]{2,}(-[a-z]+)+-\d+")
_VPC = "networks.vpc.cidr"
_LARGEST, _SMALLEST = 16, 28
"""Prefix lengths that AWS accepts (Amazon VPC user guide, "VPC CIDR blocks")."""


@attrs.frozen(kw_only=True)
class Vpc:
    """The VPC to create."""

    cidr: str


@attrs.frozen(kw_only=True)
class Zone:
    """An availability zone and the ranges of its three subnets."""

    name: str
    workers: str
    public: str
    internal: str

    def ranges(self) -> dict[str, str]:
        """The range of each subnet, by the name of its field."""
        return {"workers": self.workers, "public": self.public, "internal": self.internal}


@attrs.frozen(kw_only=True)
class Networks:
    """The VPC and its subnets."""

    vpc: Vpc
    zones: list[Zone]


@attrs.frozen(kw_only=True)
class InfrastructureConfig:
    """providerConfig of an Infrastructure."""

    api_version: str
    kind: str
    networks: Networks


@attrs.frozen(kw_only=True)
class CloudControllerManager:
    """Settings of the cloud-controller-manager."""

    feature_gates: dict[str, bool] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class ControlPlaneConfig:
    """providerConfig of a ControlPlane; every field is optional."""

    api_version: str = API_VERSION
    kind: str = "ControlPlaneConfig"
    cloud_controller_manager: CloudControllerManager = attrs.field(factory=CloudControllerManager)


@attrs.frozen(kw_only=True)
class BastionConfig:
    """providerConfig of a Bastion; every field is optional, with defaults from the CloudProfile."""

    api_version: str = API_VERSION
    kind: str = "BastionConfig"
    ami: str = ""
    machine_type: str = ""


@attrs.frozen(kw_only=True)
class WorkerConfig:
    """providerConfig of a worker pool; every field is optional.

    `ami` replaces the CloudProfile's AMI, `iam_instance_profile` selects the role of the nodes.
    """

    api_version: str = API_VERSION
    kind: str = "WorkerConfig"
    ami: str = ""
    iam_instance_profile: str = ""


C = TypeVar("C", BastionConfig, ControlPlaneConfig, InfrastructureConfig, WorkerConfig)
D = TypeVar("D", BastionConfig, ControlPlaneConfig, WorkerConfig)


def infrastructure_config(infrastructure: Infrastructure) -> InfrastructureConfig:
    """Return an Infrastructure's configuration. Raises ConfigurationError with all problems."""
    region, given = infrastructure.spec.region, infrastructure.spec.provider_config
    where = f"Infrastructure {infrastructure.key}"
    if not _REGION.fullmatch(region):
        raise ConfigurationError(
            f'{where}: spec.region: {region!r} is no AWS region; set one like "eu-west-1"'
        )
    if given is None:
        raise ConfigurationError(
            f"{where}: spec.providerConfig is missing; "
            f"set an InfrastructureConfig of {API_VERSION} with networks.vpc and networks.zones"
        )
    where = f"{where}: spec.providerConfig"
    config = _read(InfrastructureConfig, given, where)
    found = [*_zone_faults(config.networks.zones, region), *_range_faults(config.networks)]
    if found:
        raise ConfigurationError(f"{where}: {'; '.join(found)}")
    return config


def optional_config(cls: type[D], given: Raw | None, where: str) -> D:
    """Return the configuration in the field `where`, or the defaults. Raises ConfigurationError."""
    return cls() if given is None else _read(cls, given, where)


def _read(cls: type[C], given: Raw, where: str) -> C:
    try:
        config = decode_strictly(cls, given)
    except DecodeError as error:
        raise ConfigurationError(f"{where}: {error}; correct or remove these fields") from error
    if (config.api_version, config.kind) != (API_VERSION, cls.__name__):
        raise ConfigurationError(
            f"{where}: {config.api_version} {config.kind} is not understood; "
            f"set apiVersion {API_VERSION} and kind {cls.__name__}"
        )
    return config


def _zone_faults(zones: list[Zone], region: str) -> Iterator[str]:
    """Yield one sentence for each problem: the field, the problem, the fix."""
    if not zones:
        yield "networks.zones: there is no zone; name at least one"
    names = [zone.name for zone in zones]
    for index, name in enumerate(names):
        field = f"networks.zones[{index}].name"
        if not name.startswith(region) or name == region:
            yield (
                f"{field}: {name!r} is no zone of region {region}; "
                f'set one like "{region}a", or change spec.region'
            )
        if name in names[:index]:
            yield f"{field}: {name!r} is there twice; keep one of them"


def _range_faults(networks: Networks) -> Iterator[str]:
    """Yield one sentence for each problem, as `_zone_faults`."""
    subnets = {
        f"networks.zones[{index}].{field}": text
        for index, zone in enumerate(networks.zones)
        for field, text in zone.ranges().items()
    }
    parsed: dict[str, IPv4Network] = {}
    for field, text in {_VPC: networks.vpc.cidr, **subnets}.items():
        network = _network(text)
        if network is not None:
            parsed[field] = network
            continue
        yield (
            f"{field}: {text!r} is no IPv4 range that AWS accepts; write its first address "
            f'and a prefix length from {_LARGEST} to {_SMALLEST}, like "10.250.0.0/16"'
        )
    vpc = parsed.pop(_VPC, None)
    for field, network in parsed.items():
        if vpc is not None and not network.subnet_of(vpc):
            yield f"{field}: {network} lies outside {_VPC} {vpc}; choose a range inside it"
    for (field, network), (other, taken) in combinations(parsed.items(), 2):
        if network.overlaps(taken):
            yield f"{other}: {taken} overlaps {field} {network}; choose ranges apart"


def _network(text: str) -> IPv4Network | None:
    try:
        network = IPv4Network(text)
    except ValueError:
        return None
    acceptable = _LARGEST <= network.prefixlen <= _SMALLEST
    return network if acceptable and str(network) == text else None
