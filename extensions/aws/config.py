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

from actuator import ConfigurationError, Object
from actuator.codec import decode_strictly
from actuator.errors import DecodeError
from actuator.meta import Raw
from actuator.v1alpha1 import ControlPlane, Infrastructure

API_VERSION = "aws.provider.extensions.gardener.cloud/v1alpha1"
_REGION = re.compile(r"[a-z]{2,}(-[a-z]+)+-\d+")
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
    region = infrastructure.spec.region
    if not _REGION.fullmatch(region):
        raise ConfigurationError(
            f"Infrastructure {infrastructure.key}: spec.region: {region!r} is no AWS region; "
            'set one like "eu-west-1"'
        )
    given = infrastructure.spec.provider_config
    if given is None:
        raise ConfigurationError(
            f"Infrastructure {infrastructure.key}: spec.providerConfig is missing; "
            f"set an InfrastructureConfig of {API_VERSION} with networks.vpc and networks.zones"
        )
    config = _read(InfrastructureConfig, infrastructure, given)
    found = list(_faults(config, region))
    if found:
        listed = "; ".join(found)
        raise ConfigurationError(
            f"Infrastructure {infrastructure.key}: spec.providerConfig: {listed}"
        )
    return config


def control_plane_config(control_plane: ControlPlane) -> ControlPlaneConfig:
    """Return a ControlPlane's configuration. Raises ConfigurationError with all problems."""
    return optional_config(ControlPlaneConfig, control_plane, control_plane.spec.provider_config)


def optional_config(
    cls: type[D], obj: Object, given: Raw | None, field: str = "spec.providerConfig"
) -> D:
    """Return the configuration in an object's field, or the defaults. Raises ConfigurationError."""
    return cls() if given is None else _read(cls, obj, given, field)


def _read(cls: type[C], obj: Object, given: Raw, field: str = "spec.providerConfig") -> C:
    where = f"{type(obj).KIND.name} {obj.key}: {field}"
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


def _faults(config: InfrastructureConfig, region: str) -> Iterator[str]:
    """Yield one sentence for each problem: the field, the problem, the fix."""
    networks = config.networks
    yield from _zone_faults(networks.zones, region)
    ranges = {"networks.vpc.cidr": networks.vpc.cidr}
    for index, zone in enumerate(networks.zones):
        for field, text in zone.ranges().items():
            ranges[f"networks.zones[{index}].{field}"] = text
    parsed: dict[str, IPv4Network] = {}
    for field, text in ranges.items():
        network = _network(text)
        if network is None:
            yield (
                f"{field}: {text!r} is no IPv4 range that AWS accepts; write its first address "
                f'and a prefix length from {_LARGEST} to {_SMALLEST}, like "10.250.0.0/16"'
            )
        else:
            parsed[field] = network
    yield from _range_faults(parsed)


def _zone_faults(zones: list[Zone], region: str) -> Iterator[str]:
    if not zones:
        yield "networks.zones: there is no zone; name at least one"
    seen: set[str] = set()
    for index, zone in enumerate(zones):
        field = f"networks.zones[{index}].name"
        if not zone.name.startswith(region) or zone.name == region:
            yield (
                f"{field}: {zone.name!r} is no zone of region {region}; "
                f'set one like "{region}a", or change spec.region'
            )
        if zone.name in seen:
            yield f"{field}: {zone.name!r} is there twice; keep one of them"
        seen.add(zone.name)


def _network(text: str) -> IPv4Network | None:
    try:
        network = IPv4Network(text)
    except ValueError:
        return None
    acceptable = _LARGEST <= network.prefixlen <= _SMALLEST
    return network if acceptable and str(network) == text else None


def _range_faults(ranges: dict[str, IPv4Network]) -> Iterator[str]:
    subnets = {field: network for field, network in ranges.items() if "zones" in field}
    vpc = ranges.get("networks.vpc.cidr")
    for field, network in subnets.items():
        if vpc is not None and not network.subnet_of(vpc):
            yield (
                f"{field}: {network} lies outside networks.vpc.cidr {vpc}; choose a range inside it"
            )
    for (field, network), (other, taken) in combinations(subnets.items(), 2):
        if network.overlaps(taken):
            yield f"{other}: {taken} overlaps {field} {network}; choose ranges apart"
