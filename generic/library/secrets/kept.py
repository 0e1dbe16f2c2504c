"""Kept: a Secret of the manager with its labels and data decoded; to JSON and back.

Issued: a credential for an author, with the name of its Secret and what is trusted beside it.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

import attrs

from actuator.codec import decode
from actuator.meta import Base64, ObjectMeta, Raw
from generic.kube.certificates import KeyPair
from generic.library.manifests import manifest
from generic.library.secrets.config import CHECKSUM_DIGITS

MANAGED_BY = ("managed-by", "secrets-manager")
IDENTITY = "manager-identity"
_NAME = "name"
_CHECKSUM = "checksum-of-config"
_ROTATED = "last-rotation-initiation-time"
_ISSUED = "issued-at-time"
_VALID = "valid-until-time"
_PERSIST = ("persist", "true")
"""Label of Secrets that a shoot keeps when it moves to another seed (Gardener documentation,
"Secrets Management", "Migrate Secrets")."""

_AUTHORITY = ("ca.crt", "ca.key")
_CERTIFICATE = ("tls.crt", "tls.key")
_RSA = "id_rsa"
_BUNDLES = ("bundle.crt", "bundle.key")
BUNDLE = "-bundle"
"""What a bundle's name has behind the name of its credential."""

_COMPLETE = (
    _AUTHORITY,
    _CERTIFICATE,
    ("username", "password"),
    (_RSA,),
    ("static_tokens.csv",),
    *((key,) for key in _BUNDLES),
)
"""The data keys by which a Secret is recognized."""


@attrs.frozen(kw_only=True)
class Kept:
    """One credential in a Secret. `rotated` is the rotation it was created for, "" for none."""

    name: str
    checksum: str
    rotated: str
    issued: datetime
    valid_until: datetime | None
    data: Mapping[str, bytes] = attrs.field(repr=False)
    secret_name: str
    uid: str = ""

    @property
    def made_by_gardener(self) -> bool:
        """Whether Gardener's Go library created it: its checksums are longer, decimal numbers."""
        return self.checksum.isdecimal() and len(self.checksum) > CHECKSUM_DIGITS

    @property
    def pair(self) -> KeyPair:
        """The certificate of an authority, and its key."""
        return KeyPair(*(self.data[name] for name in _AUTHORITY))

    @property
    def bundled(self) -> Mapping[str, bytes]:
        """The part for a bundle: an authority's certificate, a key that is not for SSH."""
        if _AUTHORITY[0] in self.data:
            return {_BUNDLES[0]: self.data[_AUTHORITY[0]]}
        if _RSA in self.data and f"{_RSA}.pub" not in self.data:
            return {_BUNDLES[1]: self.data[_RSA]}
        return {}

    def manifest(self, namespace: str, identity: str, *, persist: bool) -> Raw:
        """The Secret; certificates and bundles never persist, since their authorities do."""
        labels = {
            _NAME: self.name,
            MANAGED_BY[0]: MANAGED_BY[1],
            IDENTITY: identity,
            _CHECKSUM: self.checksum,
            _ROTATED: self.rotated,
            _ISSUED: _stamp(self.issued),
        }
        if self.valid_until is not None:
            labels[_VALID] = _stamp(self.valid_until)
        is_bundle = any(key in self.data for key in _BUNDLES)
        if is_bundle:
            labels["bundle-for"] = self.name.removesuffix(BUNDLE)
        elif persist and not self._is_certificate:
            labels |= dict([_PERSIST])
        data = {name: Base64.encode_bytes(value) for name, value in self.data.items()}
        type = "kubernetes.io/tls" if self._is_certificate else "Opaque"
        where = self.secret_name, namespace, labels
        return manifest("v1", "Secret", *where, type=type, immutable=True, data=data)

    @property
    def _is_certificate(self) -> bool:
        return _CERTIFICATE[0] in self.data


@attrs.frozen(kw_only=True, eq=False)
class Issued(Mapping[str, bytes]):
    """The current credential.

    As a mapping it is the Secret's data, with `bundle.crt` or `bundle.key` added where there is a
    bundle: its checksum changes with the credential, and with the trusted ones.
    """

    kept: Kept
    trusted: Sequence[Kept]
    """The credentials in the bundle: the current and the old one, or those of the certificate's
    authority."""
    bundle_secret_name: str = ""
    """The name of the Secret with the bundle alone, for components that only verify; "" if none."""

    @property
    def secret_name(self) -> str:
        """The name of the Secret to mount in a pod."""
        return self.kept.secret_name

    @property
    def old(self) -> Mapping[str, bytes] | None:
        """The data of the former credential, while a rotation or a renewal keeps it.

        None for a certificate.
        """
        current, *old = self.trusted
        return old[0].data if old and current is self.kept else None

    @property
    def bundle(self) -> bytes:
        """The certificates of all trusted authorities, or all RSA keys; PEM, b"" for others."""
        return b"".join(part for item in self.trusted for part in item.bundled.values())

    def __getitem__(self, name: str) -> bytes:
        return self._data[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    @property
    def _data(self) -> dict[str, bytes]:
        return {**self.kept.data, **dict.fromkeys(self.trusted[0].bundled, self.bundle)}


def read(secret: Raw) -> Kept | None:
    """Decode a Secret; None if it is no credential of the manager, or is being deleted."""
    meta = decode(ObjectMeta, secret["metadata"])
    data: Mapping[str, str] = secret.get("data") or {}
    is_complete = any(data.keys() >= set(keys) for keys in _COMPLETE)
    if not is_complete or meta.deletion_timestamp is not None:
        return None
    labels = meta.labels
    try:
        issued = _moment(labels[_ISSUED])
        until = _moment(labels[_VALID]) if _VALID in labels else None
    except (KeyError, ValueError):
        return None
    return Kept(
        name=labels.get(_NAME, ""),
        checksum=labels.get(_CHECKSUM, ""),
        rotated=labels.get(_ROTATED, ""),
        issued=issued,
        valid_until=until,
        data={key: Base64(value).decode_bytes() for key, value in data.items()},
        secret_name=meta.name,
        uid=meta.uid,
    )


def _stamp(moment: datetime) -> str:
    return str(int(moment.timestamp()))


def _moment(stamp: str) -> datetime:
    return datetime.fromtimestamp(int(stamp), UTC)
