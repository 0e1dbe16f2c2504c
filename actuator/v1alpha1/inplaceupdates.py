"""In-place updates of machines: target state and update command in an OperatingSystemConfig."""

from typing import Annotated

import attrs

from actuator.meta import KeepsUnknownFields, Schema


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

    operating_system_version: Annotated[str, Schema(required=True)] = ""
    kubelet: Annotated[str, Schema(required=True)] = ""
    credentials_rotation: CredentialsRotation | None = None


@attrs.frozen(kw_only=True)
class OSUpdate(KeepsUnknownFields):
    """The command that updates the operating system in place."""

    command: Annotated[str, Schema(required=True)] = ""
    args: list[str] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class InPlaceUpdatesStatus(KeepsUnknownFields):
    """The in-place update of the machine."""

    os_update: OSUpdate | None = None
