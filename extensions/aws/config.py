"""providerConfig for AWS: the configurations of all kinds, and their rules.

The shape follows the configurations of Gardener's AWS extension (provider-extension-aws
documentation, "Using the AWS provider extension with Gardener as an end-user"), reduced to the
resources that this sample creates. Pure: AWS itself reports problems that only AWS can know, such
as quotas and the zones of an account.
"""

import re
from collections.abc import Iterator
from ipaddress import IPv4Network
from itertools import combinations
from typing import Annotated

import attrs

from actuator import FieldProblem, ProviderConfig
from actuator.codec import decode
from actuator.errors import DecodeError
from actuator.meta import Schema
from actuator.provider_config import FIELD
from actuator.v1alpha1 import Infrastructure

API_VERSION = "aws.provider.extensions.gardener.cloud/v1alpha1"
_REGION = re.compile(r"[a-z]{2,}(-[a-z]+)+-\d+")


def _range(example: str) -> Schema:
    """Return the schema of a range as AWS accepts it (Amazon VPC user guide, "VPC CIDR blocks")."""
    return Schema(format="cidr", pattern="[0-9.]+/(1[6-9]|2[0-8])", example=example)


@attrs.frozen(kw_only=True)
class Vpc:
    """The VPC to create."""

    cidr: Annotated[str, _range("10.250.0.0/16")]


@attrs.frozen(kw_only=True)
class Zone:
    """An availability zone and the ranges of its three subnets, inside the VPC and disjoint."""

    name: Annotated[str, Schema(example="eu-west-1a")]
    workers: Annotated[str, _range("10.250.0.0/19")]
    """The range of the machines."""
    public: Annotated[str, _range("10.250.32.0/20")]
    """The range of bastions and public load balancers."""
    internal: Annotated[str, _range("10.250.48.0/20")]
    """The range of internal load balancers."""

    def ranges(self) -> dict[str, str]:
        """The range of each subnet, by the name of its field."""
        return {"workers": self.workers, "public": self.public, "internal": self.internal}


@attrs.frozen(kw_only=True)
class Networks:
    """The VPC and its subnets."""

    vpc: Vpc
    zones: Annotated[list[Zone], Schema(min_length=1)]


@attrs.frozen(kw_only=True)
class InfrastructureConfig(ProviderConfig):
    """The network of a shoot."""

    api_version: Annotated[str, Schema(required=True)] = API_VERSION
    kind: Annotated[str, Schema(required=True)] = "InfrastructureConfig"
    networks: Networks

    def problems(self) -> Iterator[FieldProblem]:
        """Yield zones that are there twice, and subnets outside the VPC or of others."""
        names = [zone.name for zone in self.networks.zones]
        for index, name in enumerate(names):
            if name in names[:index]:
                field, detail = f"networks.zones[{index}].name", f"{name!r} is a duplicate"
                yield FieldProblem(field=field, detail=f"{detail}; keep one of them")
        vpc = IPv4Network(self.networks.vpc.cidr)
        subnets = {
            f"networks.zones[{index}].{field}": IPv4Network(text)
            for index, zone in enumerate(self.networks.zones)
            for field, text in zone.ranges().items()
        }
        for field, network in subnets.items():
            if not network.subnet_of(vpc):
                detail = f"{network} lies outside networks.vpc.cidr {vpc}; choose a range inside it"
                yield FieldProblem(field=field, detail=detail)
        for (field, network), (other, taken) in combinations(subnets.items(), 2):
            if network.overlaps(taken):
                detail = f"{taken} overlaps {field} {network}; choose ranges apart"
                yield FieldProblem(field=other, detail=detail)


@attrs.frozen(kw_only=True)
class CloudControllerManager:
    """Settings of the cloud-controller-manager."""

    feature_gates: dict[str, bool] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class ControlPlaneConfig(ProviderConfig):
    """Settings of the control plane; every field is optional."""

    api_version: str = API_VERSION
    kind: str = "ControlPlaneConfig"
    cloud_controller_manager: CloudControllerManager = attrs.field(factory=CloudControllerManager)


@attrs.frozen(kw_only=True)
class BastionConfig(ProviderConfig):
    """The machine of a Bastion; every field is optional, with defaults from the CloudProfile."""

    api_version: str = API_VERSION
    kind: str = "BastionConfig"
    ami: str = ""
    """The machine image."""
    machine_type: str = ""
    """The instance type."""


@attrs.frozen(kw_only=True)
class WorkerConfig(ProviderConfig):
    """The machines of a pool; every field is optional."""

    api_version: str = API_VERSION
    kind: str = "WorkerConfig"
    ami: str = ""
    """Replaces the CloudProfile's AMI."""
    iam_instance_profile: str = ""
    """Selects the role of the nodes."""


def region_problems(infrastructure: Infrastructure) -> Iterator[FieldProblem]:
    """Yield a region that AWS cannot have, and zones of other regions."""
    region = infrastructure.spec.region
    if not _REGION.fullmatch(region):
        detail = f'{region!r} is no AWS region; set one like "eu-west-1"'
        yield FieldProblem(field="spec.region", detail=detail)
        return
    try:
        config = decode(InfrastructureConfig, infrastructure.spec.provider_config)
    except DecodeError:
        return  # `config_problems` names the field
    for index, zone in enumerate(config.networks.zones):
        if not zone.name.startswith(region) or zone.name == region:
            field = f"{FIELD}.networks.zones[{index}].name"
            remedy = f'set one like "{region}a", or change spec.region'
            detail = f"{zone.name!r} is no zone of region {region}; {remedy}"
            yield FieldProblem(field=field, detail=detail)
