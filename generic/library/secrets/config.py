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
from ipaddress import ip_address

import attrs

from actuator.cluster import Cluster
from actuator.errors import ConfigurationError
from actuator.meta import Raw, parse_time
from generic.kube import certificates

_YEAR = timedelta(days=365)
_CHARACTERS = string.ascii_letters + string.digits
CHECKSUM_DIGITS = 8
_LENGTH = 16
_BITS = 2048


class Usage(StrEnum):
    """The usage of a certificate."""

    SERVER = "server"
    CLIENT = "client"
    BOTH = "both"


_USAGES = {
    Usage.SERVER: [certificates.SERVER_AUTH],
    Usage.CLIENT: [certificates.CLIENT_AUTH],
    Usage.BOTH: [certificates.SERVER_AUTH, certificates.CLIENT_AUTH],
}


@attrs.frozen(kw_only=True)
class SecretRotation:
    """The rotation of a credential: the time of its request."""

    initiated: datetime | None = None
    keeps_old: bool = True
    """Whether the former credential is still accepted; False replaces it in one step."""

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
    rotation: SecretRotation = SecretRotation()

    @abstractmethod
    def generate(self, secret_name: str, now: datetime) -> dict[str, bytes]:
        """Return the data of a new Secret."""


@attrs.frozen(kw_only=True)
class Authority(Rotated):
    """A certificate authority: signs certificates. Its default common name is its Secret's name.

    Its key is RSA, since Gardener's Go library reads no other from such a Secret.
    """

    common_name: str = ""
    validity: timedelta = 10 * _YEAR

    def generate(self, secret_name: str, now: datetime) -> dict[str, bytes]:
        """See Rotated."""
        name = self.common_name or secret_name[-64:]  # the limit of X.509; the end is unique
        pair = certificates.new_authority(name, now, self.validity, with_rsa=True)
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
        user = self.username.encode()
        password = _random(self.length).encode()
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
        private, public = certificates.new_rsa_key(self.bits)
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
        rows = (
            (_random(128), user.username, user.uid, ",".join(user.groups)) for user in self.users
        )
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

    def sign(self, authority: certificates.KeyPair, now: datetime) -> certificates.KeyPair:
        """Return a certificate with a new key, valid no longer than its authority.

        Raises ConfigurationError for an invalid address.
        """
        names: list[certificates.x509.GeneralName] = [
            certificates.x509.DNSName(name) for name in self.dns_names
        ]
        try:
            names += [
                certificates.x509.IPAddress(ip_address(address)) for address in self.addresses
            ]
        except ValueError as error:
            raise ConfigurationError(f"certificate {self.name}: addresses: {error}") from error
        return certificates.issue(
            authority,
            self.common_name,
            now,
            self.validity,
            usages=_USAGES[self.usage],
            organizations=self.organizations,
            names=names,
        )


Independent = Authority | BasicAuth | RsaKey | StaticTokens
Config = Independent | Certificate


def rotation_of(cluster: Cluster, credential: str = "certificateAuthorities") -> SecretRotation:
    """Return the rotation of a credential in the shoot's status: credentials.rotation.

    It keeps the former credential in every phase but the last two (Gardener's extension library,
    `extensions/pkg/util/secret/manager`).
    """
    status: Raw = cluster.shoot.get("status") or {}
    rotation = (status.get("credentials") or {}).get("rotation") or {}
    told: Raw = rotation.get(credential) or {}
    initiated = told.get("lastInitiationTime")
    return SecretRotation(
        initiated=parse_time(initiated) if initiated else None,
        keeps_old=told.get("phase") not in ("Completing", "Completed"),
    )


def checksum_of(config: Config, *more: str) -> str:
    """Return eight hex digits that change with the configuration, and with `more`.

    A rotation does not change them, since it is temporary; a Secret has its own label for it.
    """
    data = attrs.asdict(config, filter=lambda field, _value: field.name != "rotation")
    text = json.dumps([data, *more], sort_keys=True, default=timedelta.total_seconds)
    return hashlib.sha256(text.encode()).hexdigest()[:CHECKSUM_DIGITS]


def check(configs: Sequence[Config]) -> None:
    """Raise ConfigurationError for configs that cannot work."""
    names = [config.name for config in configs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigurationError(f"secret names are not unique: {', '.join(twice)}; rename one")
    authorities = {config.name for config in configs if isinstance(config, Authority)}
    for config in configs:
        if isinstance(config, Certificate) and config.authority not in authorities:
            raise ConfigurationError(
                f"certificate {config.name}: authority {config.authority!r} not found; "
                "pass its Authority in the same list"
            )
        if isinstance(config, BasicAuth) and (":" in config.username or config.length < _LENGTH):
            raise ConfigurationError(
                f"basic auth {config.name}: use a username without ':', "
                f"and a length of at least {_LENGTH}"
            )
        if isinstance(config, RsaKey) and config.bits < _BITS:
            raise ConfigurationError(f"RSA key {config.name}: use at least {_BITS} bits")


def _random(length: int) -> str:
    return "".join(secrets.choice(_CHARACTERS) for _ in range(length))
