"""Certificates with EC keys (P-256) or RSA keys, on `cryptography`.

Not here: Kubernetes objects and rotation.
"""

import base64
import ipaddress
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs

from actuator.errors import ConfigurationError

try:
    from cryptography import x509 as x509  # noqa: PLC0414 - exported
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError as error:
    raise ConfigurationError(
        "certificates need the package `cryptography`: pip install 'gardener-actuator[secrets]'"
    ) from error

CLIENT_AUTH = ExtendedKeyUsageOID.CLIENT_AUTH
SERVER_AUTH = ExtendedKeyUsageOID.SERVER_AUTH
_PRIVATE_KEY = re.compile(rb"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----(.+?)-----END", re.DOTALL)
AUTHORITY_BITS = 3072
"""The bits of an authority's RSA key, as in Gardener's secrets manager."""

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
SKEW = timedelta(hours=1)
"""Certificates are valid that long before they are issued, for clocks that are late."""


@attrs.frozen
class KeyPair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes = attrs.field(repr=False)

    def save(self, certificate: Path, key: Path) -> None:
        """Write both files; only the owner can read the key."""
        certificate.write_bytes(self.certificate)
        save_private(key, self.key)


def new_authority(
    common_name: str, now: datetime, lifetime: timedelta, *, with_rsa: bool = False
) -> KeyPair:
    """Return a new self-signed certificate authority; its key is EC, or RSA with 3072 bits."""
    key = rsa.generate_private_key(65537, AUTHORITY_BITS) if with_rsa else _new_key()
    subject = _subject(common_name, ())
    builder = (
        _builder(subject, subject, key, now, lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return KeyPair(_pem(builder.sign(key, hashes.SHA256())), _private_pem(key))


def read_pair(pair: KeyPair) -> tuple[x509.Certificate, PrivateKey]:
    """Return its first certificate, and the key. Raises ValueError if they are not a pair."""
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    key = read_key(pair.key)
    if certificate.public_key() != key.public_key():
        raise ValueError("the private key does not belong to the certificate")
    return certificate, key


def read_key(pem: bytes) -> PrivateKey:
    """Return an RSA or EC key in the format PKCS #1, PKCS #8 or SEC 1. Raises ValueError.

    The first line of the PEM block does not tell the format: Gardener's Go library writes PKCS #8
    as "RSA PRIVATE KEY" (`pkg/utils`, `EncodePrivateKeyInPKCS8`).
    """
    block = _PRIVATE_KEY.search(pem)
    if block is None:
        raise ValueError("there is no private key in PEM format")
    try:
        key = serialization.load_der_private_key(base64.b64decode(block[1]), password=None)
    except (TypeError, ValueError, UnsupportedAlgorithm) as error:
        raise ValueError(
            "the private key is encrypted, damaged, or of an unknown format"
        ) from error
    if isinstance(key, PrivateKey):
        return key
    raise ValueError("the private key is neither RSA nor EC")


def issue(
    authority: KeyPair,
    common_name: str,
    now: datetime,
    lifetime: timedelta,
    *,
    usages: Sequence[x509.ObjectIdentifier],
    organizations: Sequence[str] = (),
    names: Sequence[x509.GeneralName] = (),
) -> KeyPair:
    """Return a certificate with a new key, valid no longer than its authority.

    Raises ValueError if the authority cannot be read.
    """
    issuer, issuer_key = read_pair(authority)
    key = _new_key()
    lifetime = min(lifetime, issuer.not_valid_after_utc - now)
    subject = _subject(common_name, organizations)
    builder = (
        _builder(subject, issuer.subject, key, now, lifetime)
        .add_extension(_key_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(_identifier(issuer), critical=False)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return KeyPair(_pem(builder.sign(issuer_key, hashes.SHA256())), _private_pem(key))


def is_as_issued(
    certificate: bytes, lifetime: timedelta, usages: Sequence[x509.ObjectIdentifier] = ()
) -> bool:
    """Whether it has the text, kind of key, lifetime and usages that `issue` gives to a new one.

    Without usages: those that `new_authority` gives. Raises exceptions of `cryptography` if it
    cannot be read.
    """
    found = x509.load_pem_x509_certificate(certificate)
    key = found.public_key()
    extensions = [extension.value for extension in found.extensions]
    expected: list[x509.ExtensionType] = [_key_usage(signs=not usages)]
    if usages:
        expected.append(x509.ExtendedKeyUsage(usages))
    else:
        expected.append(x509.BasicConstraints(ca=True, path_length=0))
    constrained = any(isinstance(extension, x509.BasicConstraints) for extension in extensions)
    lasts = found.not_valid_after_utc - found.not_valid_before_utc
    return (
        _pem(found) == certificate
        and isinstance(key, ec.EllipticCurvePublicKey)
        and isinstance(key.curve, ec.SECP256R1)
        and lasts <= lifetime + SKEW + timedelta(seconds=1)  # times have no fractions
        and all(item in extensions for item in expected)
        and constrained is not bool(usages)
    )


def fits(pair: KeyPair) -> bool:
    """Whether `issue` could have written the key of this pair. Raises as `read_pair`."""
    _, key = read_pair(pair)
    return isinstance(key, ec.EllipticCurvePrivateKey) and _private_pem(key) == pair.key


def general_name(host: str) -> x509.GeneralName:
    """Return an IP address or a host name for `names` of `issue`. Raises ValueError."""
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def new_private_key() -> bytes:
    """Return a new private key, PEM."""
    return _private_pem(_new_key())


def new_rsa_key(bits: int) -> tuple[bytes, bytes]:
    """Return a new RSA key as PEM (PKCS #1), and its public key as a line of OpenSSH."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=bits)
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return _private_pem(key), public


def save_private(path: Path, content: bytes) -> None:
    """Write a new file that only its owner can read, from the first byte on."""
    path.touch(mode=0o600, exist_ok=False)
    path.write_bytes(content)


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _identifier(issuer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    """Return the issuer's own identifier, because OpenSSL refuses another one.

    Go 1.25 and later compute it from SHA-256, others from SHA-1.
    """
    try:
        own = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        own = x509.SubjectKeyIdentifier.from_public_key(issuer.public_key())
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)


def _subject(common_name: str, organizations: Sequence[str]) -> x509.Name:
    names = [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)
        for organization in organizations
    ]
    return x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: PrivateKey,
    now: datetime,
    lifetime: timedelta,
) -> x509.CertificateBuilder:
    now = now.astimezone(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + lifetime)
    )


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    """Return the KeyUsage; Python 3.13 and later refuse an authority without keyCertSign."""
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=not signs,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private_pem(key: PrivateKey) -> bytes:
    """Return the key unencrypted, in the format that the API server reads."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
