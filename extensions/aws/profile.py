"""Data from the CloudProfile: the AMI of a machine image, and the machine of a bastion.

The shape is Gardener's (CloudProfile: core.gardener.cloud/v1beta1; its providerConfig: AWS
extension, "CloudProfileConfig"), reduced to the fields that are read here.
"""

import attrs

from actuator import Cluster, ConfigurationError
from actuator.codec import decode_at
from generic.library.worker import AMD64, ProviderImage, machine_images

_BASTION_TYPE = "t3.micro"


@attrs.frozen(kw_only=True)
class AwsImage(ProviderImage):
    """A machine image in a region."""

    ami: str


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
    bastion: _BastionSettings = attrs.field(factory=_BastionSettings)


@attrs.frozen
class BastionMachine:
    """The image and the machine type of a bastion."""

    ami: str
    machine_type: str


def bastion_machine(cluster: Cluster, image_id: str, machine_type: str) -> BastionMachine:
    """Return the given values, or those of the CloudProfile: its bastion settings, its first image.

    Raises ConfigurationError if the CloudProfile has no image either.
    """
    given = cluster.cloud_profile.get("spec") or {}
    settings = decode_at(_ProfileSpec, given, "CloudProfile: spec").bastion
    machine_type = machine_type or settings.machine_type.name or _BASTION_TYPE
    return BastionMachine(image_id or _bastion_ami(cluster, settings.machine_image), machine_type)


def _bastion_ami(cluster: Cluster, wanted: _Named) -> str:
    """Return the wanted image, by default the last version of the first image in the region."""
    images = machine_images(AwsImage, cluster, cluster.region)
    name = wanted.name or next((image.name for image in images), "")
    for image in reversed(images):
        version = wanted.version or image.version
        if (image.name, image.version, image.architecture) == (name, version, AMD64):
            return image.ami
    raise ConfigurationError(
        f"The CloudProfile has no AMI of machine image {name} {wanted.version} ({AMD64}) in "
        f"{cluster.region}; add it to spec.providerConfig.machineImages, or choose another image"
    )
