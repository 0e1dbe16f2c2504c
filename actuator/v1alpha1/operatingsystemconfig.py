"""OperatingSystemConfig: units and files of a machine, in the format of its operating system
(Gardener documentation, "OperatingSystemConfig").
"""

from enum import StrEnum
from typing import Annotated, Any, ClassVar

import attrs

from actuator.meta import (
    Behaviour,
    Column,
    DefaultSpec,
    DefaultStatus,
    KeepsUnknownFields,
    Kind,
    Object,
    Schema,
    SecretReference,
)
from actuator.v1alpha1.shared import AGE, STATUS, TYPE, Required


class Purpose(StrEnum):
    """Gardener's values of `purpose`: the first boot of a machine, or gardener-node-agent."""

    PROVISION = "provision"
    RECONCILE = "reconcile"


@attrs.frozen(kw_only=True)
class DropIn(KeepsUnknownFields):
    """A drop-in file of a unit."""

    name: Required[str] = ""
    content: Required[str] = ""


@attrs.frozen(kw_only=True)
class Unit(KeepsUnknownFields):
    """A systemd unit, and the files whose change restarts it."""

    name: Required[str] = ""
    command: str | None = None
    enable: bool | None = None
    content: str | None = None
    drop_ins: list[DropIn] = attrs.field(factory=list)
    file_paths: list[str] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class FileContentSecretRef(KeepsUnknownFields):
    """File content in a Secret of the object's namespace."""

    name: Required[str] = ""
    data_key: Required[str] = ""


@attrs.frozen(kw_only=True)
class FileContentInline(KeepsUnknownFields):
    """Inline file content: plain text, or base64 if `encoding` is b64."""

    encoding: Required[str] = ""
    data: Required[str] = attrs.field(default="", repr=False)


@attrs.frozen(kw_only=True)
class FileContentImageRef(KeepsUnknownFields):
    """File content that is extracted from a container image."""

    image: Required[str] = ""
    file_path_in_image: Required[str] = ""


@attrs.frozen(kw_only=True)
class FileContent(KeepsUnknownFields):
    """The source of a file's content: exactly one of secretRef, inline and imageRef."""

    secret_ref: FileContentSecretRef | None = None
    inline: FileContentInline | None = None
    transmit_unencoded: bool | None = None
    image_ref: FileContentImageRef | None = None


@attrs.frozen(kw_only=True)
class File(KeepsUnknownFields):
    """A file of the machine. `permissions` are the mode as a number (0o644 is 420)."""

    path: Required[str] = ""
    permissions: Annotated[int | None, Schema(format="int32")] = None
    content: Required[FileContent] = attrs.field(factory=FileContent)
    host_name: str | None = None


@attrs.frozen(kw_only=True)
class RegistryHost(KeepsUnknownFields):
    """A mirror of a registry."""

    url: Required[str] = ""
    capabilities: list[str] = attrs.field(factory=list)
    ca_certs: list[str] = attrs.field(factory=list, metadata={"wire": "caCerts"})
    override_path: bool | None = None


@attrs.frozen(kw_only=True)
class RegistryConfig(KeepsUnknownFields):
    """The configuration of containerd for a registry."""

    upstream: Required[str] = ""
    server: str | None = None
    hosts: list[RegistryHost] = attrs.field(factory=list)
    readiness_probe: bool | None = None


@attrs.frozen(kw_only=True)
class PluginConfig(KeepsUnknownFields):
    """Settings of a containerd plugin, which is identified by its path."""

    op: str | None = None
    path: Required[list[str]] = attrs.field(factory=list)
    values: Any = None


@attrs.frozen(kw_only=True)
class ContainerdConfig(KeepsUnknownFields):
    """Settings of containerd."""

    registries: list[RegistryConfig] = attrs.field(factory=list)
    sandbox_image: Required[str] = ""
    plugins: list[PluginConfig] = attrs.field(factory=list)


class CRIName(StrEnum):
    """The container runtimes that Gardener supports."""

    CONTAINERD = "containerd"


@attrs.frozen(kw_only=True)
class CRIConfig(KeepsUnknownFields):
    """The container runtime of the machine."""

    name: Annotated[CRIName, Schema(required=True, immutable=True)] = CRIName.CONTAINERD
    cgroup_driver: str | None = None
    containerd: ContainerdConfig | None = None


@attrs.frozen(kw_only=True)
class CloudConfig(KeepsUnknownFields):
    """A reference to the Secret with the user data, key `cloud_config`."""

    secret_ref: Required[SecretReference] = attrs.field(factory=SecretReference)


@attrs.frozen(kw_only=True)
class Rotation(KeepsUnknownFields):
    """The time at which a rotation of credentials was initiated."""

    last_initiation_time: Annotated[str | None, Schema(format="date-time")] = None


@attrs.frozen(kw_only=True)
class CredentialsRotation(KeepsUnknownFields):
    """The rotations of the credentials on a machine that is updated in place."""

    certificate_authorities: Rotation | None = None
    service_account_key: Rotation | None = None


@attrs.frozen(kw_only=True)
class InPlaceUpdates(KeepsUnknownFields):
    """The target state of a machine that is updated in place; `kubelet` is a version."""

    operating_system_version: Required[str] = ""
    kubelet: Required[str] = ""
    credentials_rotation: CredentialsRotation | None = None


@attrs.frozen(kw_only=True)
class OSUpdate(KeepsUnknownFields):
    """The command that updates the operating system in place."""

    command: Required[str] = ""
    args: list[str] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class InPlaceUpdatesStatus(KeepsUnknownFields):
    """The in-place update of the machine."""

    os_update: OSUpdate | None = None


@attrs.frozen(kw_only=True)
class OperatingSystemConfigSpec(DefaultSpec):
    """The specification that gardenlet writes."""

    cri_config: CRIConfig | None = None
    purpose: Required[str] = Purpose.PROVISION
    units: list[Unit] = attrs.field(factory=list)
    files: list[File] = attrs.field(factory=list)
    in_place_updates: InPlaceUpdates | None = None


@attrs.define(kw_only=True)
class OperatingSystemConfigStatus(DefaultStatus):
    """The status that the extension reports."""

    extension_units: list[Unit] = attrs.field(factory=list)
    extension_files: list[File] = attrs.field(factory=list)
    cloud_config: CloudConfig | None = None
    in_place_updates: InPlaceUpdatesStatus | None = None


@attrs.define(kw_only=True)
class OperatingSystemConfig(Object):
    """Units and files of a machine."""

    KIND: ClassVar[Kind] = Kind(
        name="OperatingSystemConfig",
        short_names=("osc",),
        finalizer="extensions.gardener.cloud/operatingsystemconfigs",
        behaviour=Behaviour.WRITES_USER_DATA,
        columns=(TYPE, Column("Purpose", ".spec.purpose"), STATUS, AGE),
    )

    spec: Required[OperatingSystemConfigSpec] = attrs.field(factory=OperatingSystemConfigSpec)
    status: OperatingSystemConfigStatus = attrs.field(factory=OperatingSystemConfigStatus)
