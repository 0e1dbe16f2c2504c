"""Keys and signatures: EC P-256, on `cryptography`. Knows no Kubernetes, no rotation."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta

import attrs

from actuator.errors import ConfigurationError
from generic.secrets.config import Authority, Certificate, Usage

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError as error:
    raise ConfigurationError(
        "certificates need the package `cryptography`: pip install 'gardener-actuator[secrets]'"
    ) from error

__all__ = ["KeyPair", "new_authority", "sign", "validity"]

_SKEW = timedelta(hours=1)
_USAGES = {
    Usage.SERVER: [ExtendedKeyUsageOID.SERVER_AUTH],
    Usage.CLIENT: [ExtendedKeyUsageOID.CLIENT_AUTH],
    Usage.BOTH: [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH],
}


@attrs.frozen
class KeyPair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes = attrs.field(repr=False)


def new_authority(config: Authority, name: str, now: datetime) -> KeyPair:
    """An authority that signed itself; `name` is its common name where the config has none."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(config.common_name or name)
    builder = _builder(subject, subject, key.public_key(), now, config.validity)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_key_usage(signs=True), critical=True)
    builder = builder.add_extension(
        x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
    )
    return _pair(builder.sign(key, hashes.SHA256()), key)


def sign(config: Certificate, authority: KeyPair, now: datetime) -> KeyPair:
    """A certificate with a key of its own, that is not valid longer than its authority."""
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    issuer_key = serialization.load_pem_private_key(authority.key, password=None)
    assert isinstance(issuer_key, ec.EllipticCurvePrivateKey), "authorities have EC keys"
    key = ec.generate_private_key(ec.SECP256R1())
    lifetime = min(config.validity, issuer.not_valid_after_utc - now)
    subject = _subject(config.common_name, *config.organizations)
    builder = _builder(subject, issuer.subject, key.public_key(), now, lifetime)
    builder = builder.add_extension(_key_usage(signs=False), critical=True)
    usages = x509.ExtendedKeyUsage(_USAGES[config.usage])
    builder = builder.add_extension(usages, critical=False)
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    builder = builder.add_extension(identifier, critical=False)
    names = _alternative_names(config)
    if names is not None:
        builder = builder.add_extension(names, critical=False)
    return _pair(builder.sign(issuer_key, hashes.SHA256()), key)


def validity(certificate: bytes) -> tuple[datetime, datetime]:
    """From when until when a certificate (PEM) is valid."""
    loaded = x509.load_pem_x509_certificate(certificate)
    return loaded.not_valid_before_utc, loaded.not_valid_after_utc


def _subject(common_name: str, *organizations: str) -> x509.Name:
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, one) for one in organizations]
    return x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: datetime,
    lifetime: timedelta,
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    now = now.astimezone(UTC)
    return builder.not_valid_before(now - _SKEW).not_valid_after(now + lifetime)


def _alternative_names(config: Certificate) -> x509.SubjectAlternativeName | None:
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in config.dns_names]
    try:
        names += [x509.IPAddress(ipaddress.ip_address(one)) for one in config.addresses]
    except ValueError as error:
        raise ConfigurationError(f"certificate {config.name}: addresses: {error}") from error
    return x509.SubjectAlternativeName(names) if names else None


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    """Python 3.13 and later refuse an authority whose certificate does not say that it signs."""
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


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), private)
