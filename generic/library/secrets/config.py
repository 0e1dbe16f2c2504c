"""Declarations of an author: authorities, certificates, and the state of a rotation."""

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum

import attrs

from actuator.cluster import Cluster
from actuator.meta import Raw, parse_time

_YEAR = timedelta(days=365)
CHECKSUM_DIGITS = 8


class Usage(StrEnum):
    """The usage of a certificate."""

    SERVER = "server"
    CLIENT = "client"
    BOTH = "both"


class RotationPhase(StrEnum):
    """A phase of the rotation of certificate authorities; "" for none, or an unknown one."""

    NONE = ""
    PREPARING = "Preparing"
    WAITING = "WaitingForWorkersRollout"
    PREPARED = "Prepared"
    COMPLETING = "Completing"
    COMPLETED = "Completed"


@attrs.frozen(kw_only=True)
class Rotation:
    """The state of the rotation of the shoot's authorities, and the time of its request."""

    phase: RotationPhase = RotationPhase.NONE
    initiated: datetime | None = None

    @property
    def keeps_old(self) -> bool:
        """Whether the former authorities are still trusted: in every phase but the last two.

        Source: Gardener's extension library, `extensions/pkg/util/secret/manager`.
        """
        return self.phase not in (RotationPhase.COMPLETING, RotationPhase.COMPLETED)

    @property
    def stamp(self) -> str:
        """The initiation in seconds since 1970, as in labels of Secrets; "" for none."""
        return "" if self.initiated is None else str(int(self.initiated.timestamp()))


@attrs.frozen(kw_only=True)
class Authority:
    """A certificate authority: signs certificates, and is rotated with the shoot's.

    The rotation requires `rotation=rotation_of(cluster)`.
    """

    name: str
    common_name: str = ""
    validity: timedelta = 10 * _YEAR
    rotation: Rotation = Rotation()


@attrs.frozen(kw_only=True)
class Certificate:
    """A certificate for a server, a client or both, signed by the authority of that name.

    `addresses` are IP addresses, as text.
    """

    name: str
    authority: str
    common_name: str
    usage: Usage = Usage.SERVER
    organizations: Sequence[str] = ()
    dns_names: Sequence[str] = ()
    addresses: Sequence[str] = ()
    validity: timedelta = _YEAR


Config = Authority | Certificate


def rotation_of(cluster: Cluster) -> Rotation:
    """Return the rotation in the shoot's status: credentials.rotation."""
    status: Raw = cluster.shoot.get("status") or {}
    rotation = (status.get("credentials") or {}).get("rotation") or {}
    told: Raw = rotation.get("certificateAuthorities") or {}
    phase = str(told.get("phase") or "")
    known = next((one for one in RotationPhase if one and phase.startswith(one)), None)
    initiated = told.get("lastInitiationTime")
    return Rotation(
        phase=known or RotationPhase.NONE,
        initiated=parse_time(initiated) if initiated else None,
    )


def checksum_of(config: Config, *more: str) -> str:
    """Return eight hex digits that change with the configuration, and with `more`.

    A rotation does not change them, since it is temporary; an authority has its own label for it.
    """
    data = attrs.asdict(
        config, filter=lambda field, _value: field.name != "rotation", value_serializer=_plain
    )
    text = json.dumps([data, *more], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:CHECKSUM_DIGITS]


def _plain(_owner: object, _field: object, value: object) -> object:
    if isinstance(value, timedelta):
        return value.total_seconds()
    return list(value) if isinstance(value, tuple) else value
