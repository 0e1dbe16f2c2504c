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

from actuator import FieldProblem, ProviderConfig, Schema

API_VERSION = "aws.provider.extensions.gardener.cloud/v1alpha1"
_REGION = re.compile(r"[a-z]{2,}(-[a-z]+)+-\d+")


def _range(example: str) -> Schema:
    """Return the schema of a range as AWS accepts it (Amazon VPC user guide, "VPC CIDR blocks")."""
    return Schema(format="cidr", pattern="[0-9.]+/(1[6-9]|2[0-8])", example=example)


@attrs.frozen(kw_only=True)
class VpcConfig:
    """The VPC: either one to create, or an existing one."""

    id: Annotated[str | None, Schema(pattern="vpc-[0-9a-f]+", immutable="always")] = None
    """An existing VPC, with an internet gateway, and with DNS support and DNS host names enabled;
    it is neither changed nor deleted."""
    cidr: Annotated[str | None, _range("10.250.0.0/16")] = None
    """The range of a new VPC."""


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
    elastic_ip_allocation_id: Annotated[str | None, Schema(pattern="eipalloc-[0-9a-f]+")] = (
        attrs.field(default=None, metadata={"wire": "elasticIPAllocationID"})
    )
    """An existing Elastic IP address for the NAT gateway; by default, a new one is allocated."""

    def ranges(self) -> dict[str, str]:
        """The range of each subnet, by the name of its field."""
        return {"workers": self.workers, "public": self.public, "internal": self.internal}


@attrs.frozen(kw_only=True)
class Networks:
    """The VPC and its subnets."""

    vpc: VpcConfig
    zones: Annotated[list[Zone], Schema(min_length=1)]


@attrs.frozen(kw_only=True)
class InfrastructureConfig(ProviderConfig):
    """The network of a shoot."""

    api_version: Annotated[str, Schema(required=True)] = API_VERSION
    kind: Annotated[str, Schema(required=True)] = "InfrastructureConfig"
    networks: Networks
    enable_ecr_access: bool = attrs.field(default=True, metadata={"wire": "enableECRAccess"})
    """Whether nodes may read the account's image registry."""

    def problems(self) -> Iterator[FieldProblem]:
        """Yield a VPC that is not defined once, duplicate zones, subnets outside or of others."""
        given = self.networks.vpc
        if bool(given.id) == bool(given.cidr):
            detail = "set either id, of an existing VPC, or cidr, of a new one"
            yield FieldProblem(field="networks.vpc", detail=detail)
        names = [zone.name for zone in self.networks.zones]
        for index, name in enumerate(names):
            if name in names[:index]:
                field = f"networks.zones[{index}].name"
                detail = f"{name!r} is a duplicate"
                yield FieldProblem(field=field, detail=f"{detail}; keep one of them")
        vpc = IPv4Network(given.cidr or "0.0.0.0/0")  # AWS checks those of an existing VPC
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
    """Selects the role of the nodes; by default, that of the Infrastructure."""


_AMI = Schema(pattern="ami-[0-9a-z]+", example="ami-0123456789abcdef0")


@attrs.frozen(kw_only=True)
class RegionalImage:
    """The AMI of an image in a region."""

    name: Annotated[str, Schema(example="eu-west-1")]
    """The region."""
    ami: Annotated[str, _AMI]
    architecture: str | None = None
    """By default, amd64."""


@attrs.frozen(kw_only=True)
class ImageFlavor:
    """The AMIs of a version for machines with these capabilities."""

    capabilities: dict[str, list[str]] | None = None
    regions: list[RegionalImage] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class ProfileVersion:
    """A version of an image: its AMIs, or a flavor for each combination of capabilities."""

    version: Annotated[str, Schema(example="1.0.0")]
    regions: list[RegionalImage] = attrs.field(factory=list)
    capability_flavors: list[ImageFlavor] | None = None


@attrs.frozen(kw_only=True)
class ProfileImage:
    """A machine image of the CloudProfile."""

    name: Annotated[str, Schema(example="gardenlinux")]
    versions: list[ProfileVersion]


@attrs.frozen(kw_only=True)
class CloudProfileConfig(ProviderConfig):
    """The AMIs of the CloudProfile's machine images."""

    api_version: Annotated[str, Schema(required=True)] = API_VERSION
    kind: Annotated[str, Schema(required=True)] = "CloudProfileConfig"
    machine_images: Annotated[list[ProfileImage], Schema(min_length=1)]


def region_problems(region: str, config: InfrastructureConfig) -> Iterator[FieldProblem]:
    """Yield a region that AWS cannot have, and zones of other regions."""
    if not _REGION.fullmatch(region):
        detail = f'{region!r} is no AWS region; set one like "eu-west-1"'
        yield FieldProblem(field="spec.region", detail=detail)
        return
    for index, zone in enumerate(config.networks.zones):
        if not zone.name.startswith(region) or zone.name == region:
            field = f"spec.providerConfig.networks.zones[{index}].name"
            remedy = f'set one like "{region}a", or change spec.region'
            detail = f"{zone.name!r} is no zone of region {region}; {remedy}"
            yield FieldProblem(field=field, detail=detail)
