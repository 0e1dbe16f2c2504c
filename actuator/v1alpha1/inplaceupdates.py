"""In-place updates of machines: what an OperatingSystemConfig asks for, and how it is done."""

from __future__ import annotations

from typing import Annotated

import attrs

from actuator.meta import Raw, Schema

__all__ = [
    "CredentialsRotation",
    "InPlaceUpdates",
    "InPlaceUpdatesStatus",
    "KubeletConfig",
    "OSUpdate",
    "Rotation",
]


@attrs.frozen(kw_only=True)
class Rotation:
    """When credentials began to be rotated."""

    last_initiation_time: Annotated[str | None, Schema(format="date-time")] = None
    extra: Raw = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class CredentialsRotation:
    """When the credentials on a machine that is updated in place were rotated."""

    certificate_authorities: Rotation | None = None
    service_account_key: Rotation | None = None
    extra: Raw = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class KubeletConfig:
    """The kubelet that the machine gets. Thresholds and reservations by the kubelet's names."""

    version: Annotated[str, Schema(required=True)] = ""
    cpu_manager_policy: str | None = None
    eviction_hard: Raw | None = None
    kube_reserved: Raw | None = None
    system_reserved: Raw | None = None
    extra: Raw = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class InPlaceUpdates:
    """What a machine that is updated in place has to become."""

    operating_system_version: Annotated[str, Schema(required=True)] = ""
    kubelet: Annotated[KubeletConfig, Schema(required=True)] = attrs.field(factory=KubeletConfig)
    credentials_rotation: CredentialsRotation | None = None
    extra: Raw = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class OSUpdate:
    """The command that updates the operating system in place."""

    command: Annotated[str, Schema(required=True)] = ""
    args: list[str] = attrs.field(factory=list)
    extra: Raw = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class InPlaceUpdatesStatus:
    """How the machine is updated in place."""

    os_update: OSUpdate | None = None
    extra: Raw = attrs.field(factory=dict)
