"""The documented fields of the garden's other types, and the CRDs of all.

Source: Gardener documentation, API reference of core.gardener.cloud/v1beta1 and
security.gardener.cloud/v1alpha1. gardener-apiserver requires, defaults and checks more.
"""

from typing import Any, ClassVar

import attrs

from actuator.meta import Kind, Object, Raw
from actuator.schema import content_of
from generic.kube.crds import crd
from generic.library.webhooks import (
    CloudProfile,
    CredentialsBinding,
    GardenBackupBucket,
    GardenSeed,
    NamespacedCloudProfile,
    SecretBinding,
)
from generic.testing.gardenapi.shoot import DocumentedShoot, ProfileReference, ShootExtension


@attrs.frozen(kw_only=True)
class ImageVersion:
    """A version of a machine image."""

    version: str
    architectures: list[str] | None = None
    cri: list[Raw] | None = None
    classification: str | None = None
    expiration_date: str | None = None
    lifecycle: list[Raw] | None = None
    kubelet_version_constraint: str | None = None
    capability_flavors: list[Raw] | None = None


@attrs.frozen(kw_only=True)
class OfferedImage:
    """A machine image that Shoots may use."""

    name: str
    versions: list[ImageVersion] | None = None
    update_strategy: str | None = None


@attrs.frozen(kw_only=True)
class MachineType:
    """A machine type that Shoots may use."""

    name: str
    cpu: int | str | None = None
    gpu: int | str | None = None
    memory: int | str | None = None
    storage: Raw | None = None
    usable: bool | None = None
    architecture: str | None = None
    capabilities: Raw | None = None


@attrs.frozen(kw_only=True)
class ProfileZone:
    """An availability zone."""

    name: str
    unavailable_machine_types: list[str] | None = None
    unavailable_volume_types: list[str] | None = None


@attrs.frozen(kw_only=True)
class Region:
    """A region that Shoots may use."""

    name: str
    zones: list[ProfileZone] | None = None
    labels: dict[str, str] | None = None


@attrs.frozen(kw_only=True)
class ProfileOffer:
    """The fields that both profiles have."""

    kubernetes: Raw | None = None
    """The versions of Kubernetes."""
    machine_images: list[OfferedImage] | None = None
    machine_types: list[MachineType] | None = None
    volume_types: list[Raw] | None = None
    provider_config: Any = None
    """The configuration of the provider, for example the id of each machine image."""
    ca_bundle: str | None = attrs.field(default=None, metadata={"wire": "caBundle"})
    limits: Raw | None = None


@attrs.frozen(kw_only=True)
class CloudProfileSpec(ProfileOffer):
    """The environment that Shoots of a provider can use."""

    type: str
    """The provider."""
    regions: list[Region] | None = None
    bastion: Raw | None = None
    seed_selector: Raw | None = None
    machine_capabilities: list[Raw] | None = None


@attrs.frozen(kw_only=True)
class ProjectProfileSpec(ProfileOffer):
    """The additions of a project to a CloudProfile."""

    parent: ProfileReference


@attrs.frozen(kw_only=True)
class ProjectProfileStatus:
    """The merged profile."""

    cloud_profile_spec: Raw | None = None
    """Written by gardener-controller-manager, and completed by the webhook of the provider."""
    observed_generation: int | None = None


@attrs.frozen(kw_only=True)
class TypedProvider:
    """A provider."""

    type: str
    region: str | None = None
    provider_config: Any = None
    zones: list[str] | None = None


@attrs.frozen(kw_only=True)
class SeedBackup:
    """The object store for backups of etcd."""

    provider: str
    provider_config: Any = None
    region: str | None = None
    credentials_ref: Raw | None = None


@attrs.frozen(kw_only=True)
class SeedDns:
    """The DNS provider of the seed."""

    provider: Raw | None = None


@attrs.frozen(kw_only=True)
class SeedSpec:
    """The wanted state of a seed."""

    provider: TypedProvider | None = None
    backup: SeedBackup | None = None
    dns: SeedDns | None = None
    networks: Raw | None = None
    taints: list[Raw] | None = None
    volume: Raw | None = None
    settings: Raw | None = None
    ingress: Raw | None = None
    extensions: list[ShootExtension] | None = None
    resources: list[Raw] | None = None


@attrs.frozen(kw_only=True)
class GardenBucketSpec:
    """The wanted state of a bucket."""

    provider: TypedProvider
    provider_config: Any = None
    seed_name: str | None = None
    shoot_ref: Raw | None = None
    credentials_ref: Raw | None = None


@attrs.frozen(kw_only=True)
class BindingProvider:
    """The provider of the credentials."""

    type: str
    """In a SecretBinding also several types, separated by commas."""


@attrs.define(kw_only=True)
class DocumentedCloudProfile(Object):
    """The environment that Shoots of a provider can use."""

    KIND: ClassVar[Kind] = CloudProfile.KIND

    spec: CloudProfileSpec


@attrs.define(kw_only=True)
class DocumentedNamespacedCloudProfile(Object):
    """A CloudProfile of a project, on top of another one."""

    KIND: ClassVar[Kind] = NamespacedCloudProfile.KIND

    spec: ProjectProfileSpec
    status: ProjectProfileStatus | None = None


@attrs.define(kw_only=True)
class DocumentedSeed(Object):
    """A cluster that hosts the control planes of Shoots."""

    KIND: ClassVar[Kind] = GardenSeed.KIND

    spec: SeedSpec


@attrs.define(kw_only=True)
class DocumentedBackupBucket(Object):
    """A bucket for backups of etcd, in the garden."""

    KIND: ClassVar[Kind] = GardenBackupBucket.KIND

    spec: GardenBucketSpec


@attrs.define(kw_only=True)
class DocumentedSecretBinding(Object):
    """The Secret whose credentials Shoots of a project use."""

    KIND: ClassVar[Kind] = SecretBinding.KIND

    secret_ref: Raw
    provider: BindingProvider | None = None
    quotas: list[Raw] | None = None


@attrs.define(kw_only=True)
class DocumentedCredentialsBinding(Object):
    """The Secret or WorkloadIdentity whose credentials Shoots of a project use."""

    KIND: ClassVar[Kind] = CredentialsBinding.KIND

    credentials_ref: Raw
    provider: BindingProvider
    quotas: list[Raw] | None = None


GARDEN_KINDS = (
    DocumentedShoot,
    DocumentedCloudProfile,
    DocumentedNamespacedCloudProfile,
    DocumentedSeed,
    DocumentedBackupBucket,
    DocumentedSecretBinding,
    DocumentedCredentialsBinding,
)


def garden_crds() -> list[Raw]:
    """Return the CRDs: types and descriptions of the documented fields, all others are kept."""
    found = [crd(cls) for cls in GARDEN_KINDS]
    for definition in found:
        _keep_unknown(definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    return found


def _keep_unknown(schema: Raw) -> None:
    """Keep unknown fields, and null in place of a configuration, as Go does."""
    for part in schema.get("properties", {}).values():
        schema["x-kubernetes-preserve-unknown-fields"] = True
        if "type" not in part and "anyOf" not in part:
            part["nullable"] = True
        _keep_unknown(part)
    if content := content_of(schema):
        _keep_unknown(content)
