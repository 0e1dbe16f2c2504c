"""Declarations of an author: the credentials of a manager, and the state of a rotation.

Each generates data with the keys and formats of Gardener's own secrets manager (Gardener
documentation, "Secrets Management for Seed and Shoot Cluster").
"""

import base64
import csv
import hashlib
import io
import json
import secrets
import string
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum

import attrs

from actuator.cluster import Cluster
from actuator.meta import Raw, parse_time
from generic.kube.certificates import new_authority, new_rsa_key

_YEAR = timedelta(days=365)
_CHARACTERS = string.ascii_letters + string.digits
CHECKSUM_DIGITS = 8


class Usage(StrEnum):
    """The usage of a certificate."""

    SERVER = "server"
    CLIENT = "client"
    BOTH = "both"


class RotationPhase(StrEnum):
    """A phase of the rotation of credentials; "" for none, or an unknown one."""

    NONE = ""
    PREPARING = "Preparing"
    WAITING = "WaitingForWorkersRollout"
    PREPARED = "Prepared"
    COMPLETING = "Completing"
    COMPLETED = "Completed"


@attrs.frozen(kw_only=True)
class Rotation:
    """The state of the rotation of a credential, and the time of its request.

    The phase Completed replaces the credential in one step.
    """

    phase: RotationPhase = RotationPhase.NONE
    initiated: datetime | None = None

    @property
    def keeps_old(self) -> bool:
        """Whether the former credential is still accepted: in every phase but the last two.

        Source: Gardener's extension library, `extensions/pkg/util/secret/manager`.
        """
        return self.phase not in (RotationPhase.COMPLETING, RotationPhase.COMPLETED)

    @property
    def stamp(self) -> str:
        """The initiation in seconds since 1970, as in labels of Secrets; "" for none."""
        return "" if self.initiated is None else str(int(self.initiated.timestamp()))


@attrs.frozen(kw_only=True)
class Rotated(ABC):
    """A credential that stands for itself; without a validity it does not end.

    A rotation in step with the shoot requires `rotation=rotation_of(cluster)`.
    """

    name: str
    validity: timedelta | None = None
    rotation: Rotation = Rotation()

    @abstractmethod
    def generate(self, secret_name: str, now: datetime) -> dict[str, bytes]:
        """Return the data of a new Secret."""


@attrs.frozen(kw_only=True)
class Authority(Rotated):
    """A certificate authority: signs certificates. Its default common name is its Secret's name."""

    common_name: str = ""
    validity: timedelta = 10 * _YEAR

    def generate(self, secret_name: str, now: datetime) -> dict[str, bytes]:
        """See Rotated."""
        pair = new_authority(self.common_name or secret_name, now, self.validity)
        return {"ca.crt": pair.certificate, "ca.key": pair.key}


@attrs.frozen(kw_only=True)
class BasicAuth(Rotated):
    """A user with a generated password: `username`, `password`, and `auth` for servers.

    `auth` is an htpasswd line of the scheme {SHA}, which nginx and Envoy read; the hash of a random
    password needs no salt. Gardener's ext-authz-server reads bcrypt only.
    """

    username: str = "admin"
    length: int = 32
    """The characters of the password, at least 16."""

    def generate(self, secret_name: str, now: datetime) -> dict[str, bytes]:
        """See Rotated."""
        user, password = self.username.encode(), _random(self.length).encode()
        digest = base64.b64encode(hashlib.sha1(password, usedforsecurity=False).digest())
        return {"username": user, "password": password, "auth": user + b":{SHA}" + digest}


@attrs.frozen(kw_only=True)
class RsaKey(Rotated):
    """An RSA key: `id_rsa` (PEM, PKCS #1) and, for SSH, the public key `id_rsa.pub`."""

    bits: int = 4096
    """At least 2048."""
    for_ssh: bool = False

    def generate(self, secret_name: str, now: datetime) -> dict[str, bytes]:
        """See Rotated."""
        private, public = new_rsa_key(self.bits)
        return {"id_rsa": private, **({"id_rsa.pub": public} if self.for_ssh else {})}


@attrs.frozen
class TokenUser:
    """A user of the API server that a static token authenticates."""

    username: str
    uid: str = ""
    groups: Sequence[str] = ()


@attrs.frozen(kw_only=True)
class StaticTokens(Rotated):
    """A generated token for each user, in `static_tokens.csv` as kube-apiserver reads it."""

    users: Sequence[TokenUser]

    def generate(self, secret_name: str, now: datetime) -> dict[str, bytes]:
        """See Rotated."""
        table = io.StringIO()
        rows = ((_random(128), one.username, one.uid, ",".join(one.groups)) for one in self.users)
        csv.writer(table, lineterminator="\n").writerows(rows)
        return {"static_tokens.csv": table.getvalue().removesuffix("\n").encode()}


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


Config = Rotated | Certificate


def rotation_of(cluster: Cluster, credential: str = "certificateAuthorities") -> Rotation:
    """Return the rotation of a credential in the shoot's status: credentials.rotation."""
    status: Raw = cluster.shoot.get("status") or {}
    rotation = (status.get("credentials") or {}).get("rotation") or {}
    told: Raw = rotation.get(credential) or {}
    phase = str(told.get("phase") or "")
    known = next((one for one in RotationPhase if one and phase.startswith(one)), None)
    initiated = told.get("lastInitiationTime")
    return Rotation(
        phase=known or RotationPhase.NONE,
        initiated=parse_time(initiated) if initiated else None,
    )


def checksum_of(config: Config, *more: str) -> str:
    """Return eight hex digits that change with the configuration, and with `more`.

    A rotation does not change them, since it is temporary; a Secret has its own label for it.
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


def _random(length: int) -> str:
    return "".join(secrets.choice(_CHARACTERS) for _ in range(length))
