"""Kept: a Secret of the manager's with what its labels and data say; to JSON and back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import attrs

from actuator.codec import decode
from actuator.meta import Base64, ObjectMeta, Raw
from generic.secrets.certificates import KeyPair
from generic.secrets.config import Authority, Config

__all__ = ["IDENTITY", "MANAGED_BY", "Kept", "read"]

MANAGED_BY = ("managed-by", "secrets-manager")
IDENTITY = "manager-identity"
_NAME, _CHECKSUM = "name", "checksum-of-config"
_ROTATED, _ISSUED, _VALID = (
    "last-rotation-initiation-time",
    "issued-at-time",
    "valid-until-time",
)
_AUTHORITY_KEYS, _CERTIFICATE_KEYS = ("ca.crt", "ca.key"), ("tls.crt", "tls.key")


@attrs.frozen(kw_only=True)
class Kept:
    """One key pair in a Secret. `rotated` is the rotation that it was made for, "" for none."""

    name: str
    checksum: str
    rotated: str
    issued: datetime
    valid_until: datetime
    pair: KeyPair
    secret_name: str
    uid: str = ""

    def manifest(self, namespace: str, identity: str, config: Config) -> Raw:
        """The Secret."""
        is_authority = isinstance(config, Authority)
        crt, key = _AUTHORITY_KEYS if is_authority else _CERTIFICATE_KEYS
        labels = {
            _NAME: self.name,
            MANAGED_BY[0]: MANAGED_BY[1],
            IDENTITY: identity,
            _CHECKSUM: self.checksum,
            _ROTATED: self.rotated,
            _ISSUED: _stamp(self.issued),
            _VALID: _stamp(self.valid_until),
        }
        meta = {"name": self.secret_name, "namespace": namespace, "labels": labels}
        content = {crt: self.pair.certificate, key: self.pair.key}
        data = {name: Base64.encode_bytes(value) for name, value in content.items()}
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": meta,
            "type": "Opaque" if is_authority else "kubernetes.io/tls",
            "immutable": True,
            "data": data,
        }


def read(secret: Raw) -> Kept | None:
    """What a Secret keeps; None for one that is no key pair of the manager's."""
    meta = decode(ObjectMeta, secret["metadata"])
    data: Mapping[str, str] = secret.get("data") or {}
    for crt, key in (_AUTHORITY_KEYS, _CERTIFICATE_KEYS):
        if crt in data and key in data:
            pair = KeyPair(Base64(data[crt]).decode_bytes(), Base64(data[key]).decode_bytes())
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
                pair=pair,
                secret_name=meta.name,
                uid=meta.uid,
            )
    return None


def _stamp(moment: datetime) -> str:
    return str(int(moment.timestamp()))


def _moment(stamp: str) -> datetime:
    return datetime.fromtimestamp(int(stamp), UTC)
