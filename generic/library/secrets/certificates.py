"""Creates certificates from an author's configuration: see `Certificate`."""

import ipaddress
from datetime import datetime

from actuator.errors import ConfigurationError
from generic.kube import certificates
from generic.kube.certificates import CLIENT_AUTH, SERVER_AUTH, KeyPair, x509
from generic.library.secrets.config import Certificate, Usage

_USAGES = {
    Usage.SERVER: [SERVER_AUTH],
    Usage.CLIENT: [CLIENT_AUTH],
    Usage.BOTH: [SERVER_AUTH, CLIENT_AUTH],
}


def sign(config: Certificate, authority: KeyPair, now: datetime) -> KeyPair:
    """Return a certificate with a new key, valid no longer than its authority."""
    return certificates.issue(
        authority,
        config.common_name,
        now,
        config.validity,
        usages=_USAGES[config.usage],
        organizations=config.organizations,
        names=_alternative_names(config),
    )


def validity(certificate: bytes) -> tuple[datetime, datetime]:
    """Return the start and the end of a certificate's validity (PEM)."""
    loaded = x509.load_pem_x509_certificate(certificate)
    return loaded.not_valid_before_utc, loaded.not_valid_after_utc


def _alternative_names(config: Certificate) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in config.dns_names]
    try:
        return names + [x509.IPAddress(ipaddress.ip_address(one)) for one in config.addresses]
    except ValueError as error:
        raise ConfigurationError(f"certificate {config.name}: addresses: {error}") from error
