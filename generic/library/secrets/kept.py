"""Kept: a Secret of the manager with its labels and data decoded; to JSON and back.

Issued: a key pair for an author, with the name of its Secret and its trusted authorities.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import attrs

from actuator.codec import decode
from actuator.meta import Base64, ObjectMeta, Raw
from generic.kube.certificates import KeyPair
from generic.library.manifests import manifest
from generic.library.secrets.config import CHECKSUM_DIGITS

MANAGED_BY = ("managed-by", "secrets-manager")
IDENTITY = "manager-identity"
_NAME, _CHECKSUM = "name", "checksum-of-config"
_ROTATED, _ISSUED, _VALID = (
    "last-rotation-initiation-time",
    "issued-at-time",
    "valid-until-time",
)
_PERSIST = ("persist", "true")
"""Label of Secrets that a shoot keeps when it moves to another seed (Gardener documentation,
"Secrets Management", "Migrate Secrets")."""

BUNDLE = "bundle.crt"
_AUTHORITY_KEYS, _CERTIFICATE_KEYS = ("ca.crt", "ca.key"), ("tls.crt", "tls.key")


@attrs.frozen(kw_only=True)
class Kept:
    """One key pair in a Secret. `rotated` is the rotation it was created for, "" for none."""

    name: str
    checksum: str
    rotated: str
    issued: datetime
    valid_until: datetime
    pair: KeyPair
    is_authority: bool
    secret_name: str
    uid: str = ""

    @property
    def made_by_gardener(self) -> bool:
        """Whether Gardener's Go library created it: its checksums are longer, decimal numbers."""
        return self.checksum.isdecimal() and len(self.checksum) > CHECKSUM_DIGITS

    @property
    def content(self) -> dict[str, bytes]:
        """The Secret's data."""
        crt, key = _AUTHORITY_KEYS if self.is_authority else _CERTIFICATE_KEYS
        return {crt: self.pair.certificate, key: self.pair.key}

    def manifest(self, namespace: str, identity: str) -> Raw:
        """The Secret."""
        labels = {
            _NAME: self.name,
            MANAGED_BY[0]: MANAGED_BY[1],
            IDENTITY: identity,
            _CHECKSUM: self.checksum,
            _ROTATED: self.rotated,
            _ISSUED: _stamp(self.issued),
            _VALID: _stamp(self.valid_until),
        }
        if self.is_authority:
            labels |= dict([_PERSIST])
        data = {name: Base64.encode_bytes(value) for name, value in self.content.items()}
        type = "Opaque" if self.is_authority else "kubernetes.io/tls"
        where = self.secret_name, namespace, labels
        return manifest("v1", "Secret", *where, type=type, immutable=True, data=data)


@attrs.frozen(kw_only=True, eq=False)
class Issued(Mapping[str, bytes]):
    """The current key pair.

    As a mapping it is the Secret's data with `bundle.crt` added: its checksum changes with the key
    pair, and with the trusted authorities.
    """

    kept: Kept
    bundle: bytes = attrs.field(repr=False)
    """The certificates of all trusted authorities, PEM: its own for an authority, those of its
    authority for a certificate."""

    @property
    def secret_name(self) -> str:
        """The name of the Secret to mount in a pod."""
        return self.kept.secret_name

    @property
    def certificate(self) -> bytes:
        """The certificate, PEM."""
        return self.kept.pair.certificate

    @property
    def key(self) -> bytes:
        """The private key, PEM."""
        return self.kept.pair.key

    def __getitem__(self, name: str) -> bytes:
        return self._data[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    @property
    def _data(self) -> dict[str, bytes]:
        return {**self.kept.content, BUNDLE: self.bundle}


def read(secret: Raw) -> Kept | None:
    """Decode a Secret; None if it is not a key pair of the manager, or is being deleted."""
    meta = decode(ObjectMeta, secret["metadata"])
    data: Mapping[str, str] = secret.get("data") or {}
    keys = next((k for k in (_AUTHORITY_KEYS, _CERTIFICATE_KEYS) if data.keys() >= set(k)), None)
    if keys is None or meta.deletion_timestamp is not None:
        return None
    labels = meta.labels
    try:
        issued, until = _moment(labels[_ISSUED]), _moment(labels[_VALID])
    except (KeyError, ValueError):
        return None
    return Kept(
        name=labels.get(_NAME, ""),
        checksum=labels.get(_CHECKSUM, ""),
        rotated=labels.get(_ROTATED, ""),
        issued=issued,
        valid_until=until,
        pair=KeyPair(*(Base64(data[key]).decode_bytes() for key in keys)),
        is_authority=keys == _AUTHORITY_KEYS,
        secret_name=meta.name,
        uid=meta.uid,
    )


def _stamp(moment: datetime) -> str:
    return str(int(moment.timestamp()))


def _moment(stamp: str) -> datetime:
    return datetime.fromtimestamp(int(stamp), UTC)
