"""Keys and certificates of one embedded cluster, made anew for each.

Everything is EC P-256: a key takes under a millisecond. Import this module where it is used: it
needs `cryptography`, which comes with the extra `envtest`.
"""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from generic.envtest.errors import EnvtestError

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError as error:
    raise EnvtestError(
        "the embedded cluster needs the package `cryptography`:"
        " pip install 'gardener-actuator[envtest]'"
    ) from error

LIFETIME = dt.timedelta(days=365)
CLOCK_SKEW = dt.timedelta(hours=1)


@frozen
class KeyPair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes

    def save(self, certificate: Path, key: Path) -> None:
        """Write both files; the key is readable by its owner only."""
        certificate.write_bytes(self.certificate)
        save_private(key, self.key)


@frozen
class Authority:
    """A certificate authority that signs serving and client certificates."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def new(cls, name: str) -> "Authority":
        """Make an authority with a key of its own."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = (
            _certificate(subject, subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
        )
        return cls(builder.sign(key, hashes.SHA256()), key)

    @classmethod
    def load(cls, certificate: Path, key: Path) -> "Authority":
        """Read the files that `key_pair.save` wrote."""
        private = serialization.load_pem_private_key(key.read_bytes(), password=None)
        if not isinstance(private, ec.EllipticCurvePrivateKey):
            raise EnvtestError(f"{key} is no EC key")
        return cls(x509.load_pem_x509_certificate(certificate.read_bytes()), private)

    @property
    def key_pair(self) -> KeyPair:
        """The authority's own certificate and key."""
        return KeyPair(_pem(self.certificate), private_pem(self.key))

    def serving(self, hosts: Sequence[str]) -> KeyPair:
        """Sign for a server reached under these host names or IP addresses."""
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])])
        names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        return self._sign(subject, ExtendedKeyUsageOID.SERVER_AUTH, names)

    def client(self, user: str, groups: Sequence[str]) -> KeyPair:
        """Sign for a user; the API server reads its name from CN and its groups from O."""
        subject = x509.Name(
            [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
            + [x509.NameAttribute(NameOID.COMMON_NAME, user)]
        )
        return self._sign(subject, ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def _sign(
        self,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName | None,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _certificate(subject, self.certificate.subject, key.public_key())
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()),
                critical=False,
            )
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        return KeyPair(_pem(builder.sign(self.key, hashes.SHA256())), private_pem(key))


def new_private_key() -> bytes:
    """Make a key by itself, PEM."""
    return private_pem(ec.generate_private_key(ec.SECP256R1()))


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Encode a key unencrypted."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,  # what the API server reads
        serialization.NoEncryption(),
    )


def save_private(path: Path, content: bytes) -> None:
    """Write a new file that only its owner may read, from its first byte on."""
    path.touch(mode=0o600, exist_ok=False)
    path.write_bytes(content)


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + LIFETIME)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    """Python 3.13 and later refuse an authority whose certificate does not say that it signs."""
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
