"""Data from the CloudProfile: the AMI of a machine image, and the machine of a bastion.

The shape is Gardener's (CloudProfile: core.gardener.cloud/v1beta1; its providerConfig: AWS
extension, "CloudProfileConfig"), reduced to the fields that are read here.
"""

import attrs

from actuator import Cluster, ConfigurationError
from actuator.codec import decode_at
from extensions.aws.config import BastionConfig
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


def bastion_machine(config: BastionConfig, cluster: Cluster, where: str) -> BastionConfig:
    """Return the configuration with the CloudProfile's values where it has none.

    These are its settings for bastions, and its first image. Raises ConfigurationError if the
    CloudProfile has no image either; `where` names the object.
    """
    given = cluster.cloud_profile.get("spec") or {}
    settings = decode_at(_ProfileSpec, given, f"{where}: CloudProfile: spec").bastion
    return attrs.evolve(
        config,
        ami=config.ami or _bastion_ami(cluster, settings.machine_image, where),
        machine_type=config.machine_type or settings.machine_type.name or _BASTION_TYPE,
    )


def _bastion_ami(cluster: Cluster, wanted: _Named, where: str) -> str:
    """Return the wanted image, by default the last version of the first image in the region."""
    images = machine_images(AwsImage, cluster, cluster.region)
    name = wanted.name or next((image.name for image in images), "")
    for image in reversed(images):
        version = wanted.version or image.version
        if (image.name, image.version, image.architecture) == (name, version, AMD64):
            return image.ami
    raise ConfigurationError(
        f"{where}: the CloudProfile has no AMI of machine image {name} {wanted.version} "
        f"({AMD64}) in {cluster.region}; add it to spec.providerConfig.machineImages, or choose "
        "another image"
    )
