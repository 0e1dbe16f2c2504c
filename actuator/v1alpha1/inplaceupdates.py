"""In-place updates of machines: target state and update command in an OperatingSystemConfig."""

from typing import Annotated

import attrs

from actuator.meta import Raw, Schema


@attrs.frozen(kw_only=True)
class Rotation:
    """The time at which a rotation of credentials was initiated."""

    last_initiation_time: Annotated[str | None, Schema(format="date-time")] = None
    extra: Raw = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class CredentialsRotation:
    """The rotations of the credentials on a machine that is updated in place."""

    certificate_authorities: Rotation | None = None
    service_account_key: Rotation | None = None
    extra: Raw = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class InPlaceUpdates:
    """The target state of a machine that is updated in place; `kubelet` is a version."""

    operating_system_version: Annotated[str, Schema(required=True)] = ""
    kubelet: Annotated[str, Schema(required=True)] = ""
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
    """The in-place update of the machine."""

    os_update: OSUpdate | None = None
    extra: Raw = attrs.field(factory=dict)
