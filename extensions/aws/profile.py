"""Data from the CloudProfile: the AMI of a machine image, and the machine of a bastion.

The shape is Gardener's (CloudProfile: core.gardener.cloud/v1beta1; its providerConfig: AWS
extension, "CloudProfileConfig"), reduced to the fields that are read here. The operator maintains
the CloudProfile, so unknown fields are ignored.
"""

from typing import TypeVar

import attrs

from actuator import Cluster, ConfigurationError
from actuator.codec import decode
from actuator.errors import DecodeError
from actuator.meta import Raw

_AMD64 = "amd64"
_BASTION_TYPE = "t3.micro"


@attrs.frozen(kw_only=True)
class _Region:
    name: str
    ami: str
    architecture: str = _AMD64


@attrs.frozen(kw_only=True)
class _Version:
    version: str
    regions: list[_Region] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class _Image:
    name: str
    versions: list[_Version] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class _ProfileConfig:
    machine_images: list[_Image] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class _Named:
    name: str = ""
    version: str = ""


@attrs.frozen(kw_only=True)
class _BastionSettings:
    machine_image: _Named = attrs.field(factory=_Named)
    machine_type: _Named = attrs.field(factory=_Named)


@attrs.frozen(kw_only=True)
class _ProfileSpec:
    provider_config: Raw | None = None
    bastion: _BastionSettings = attrs.field(factory=_BastionSettings)


@attrs.frozen
class BastionMachine:
    """The image and the machine type of a bastion."""

    ami: str
    machine_type: str


def ami(cluster: Cluster, region: str, image: str, version: str, architecture: str = _AMD64) -> str:
    """Return the AMI of a machine image in a region. Raises ConfigurationError if there is none."""
    for one in _images(cluster):
        for known in one.versions:
            for there in known.regions:
                wanted = (one.name, known.version, there.name, there.architecture)
                if wanted == (image, version, region, architecture):
                    return there.ami
    raise ConfigurationError(
        f"The CloudProfile has no AMI of machine image {image} {version} ({architecture}) in "
        f"{region}; add it to spec.providerConfig.machineImages, or choose another image"
    )


def bastion_machine(cluster: Cluster, image_id: str, machine_type: str) -> BastionMachine:
    """Return the given values, or those of the CloudProfile: its bastion settings, its first image.

    Raises ConfigurationError if the CloudProfile has no image either.
    """
    settings = _spec(cluster).bastion
    machine_type = machine_type or settings.machine_type.name or _BASTION_TYPE
    if not image_id:
        images = _images(cluster)
        name = settings.machine_image.name or (images[0].name if images else "")
        known = [v.version for image in images if image.name == name for v in image.versions]
        version = settings.machine_image.version or (known[-1] if known else "")
        image_id = ami(cluster, cluster.region, name, version)
    return BastionMachine(image_id, machine_type)


def _images(cluster: Cluster) -> list[_Image]:
    return _read(_ProfileConfig, _spec(cluster).provider_config or {}).machine_images


def _spec(cluster: Cluster) -> _ProfileSpec:
    return _read(_ProfileSpec, cluster.cloud_profile.get("spec") or {})


P = TypeVar("P")


def _read(cls: type[P], given: Raw) -> P:
    try:
        return decode(cls, given)
    except DecodeError as error:
        raise ConfigurationError(f"The CloudProfile cannot be read: {error}") from error
