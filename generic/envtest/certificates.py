"""Certificates of one embedded cluster, made anew for each.

Import this module where it is used: it needs `cryptography`, which comes with the extra `envtest`.
"""

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from actuator.errors import ConfigurationError
from generic.envtest.errors import EnvtestError

try:
    from generic import certificates
    from generic.certificates import (
        CLIENT_AUTH,
        SERVER_AUTH,
        KeyPair,
        new_private_key,
        save_private,
        x509,
    )
except ConfigurationError as error:
    raise EnvtestError(
        "the embedded cluster needs the package `cryptography`:"
        " pip install 'gardener-actuator[envtest]'"
    ) from error

__all__ = ["KeyPair", "client", "new_authority", "new_private_key", "save_private", "serving"]

_LIFETIME = timedelta(days=365)


def new_authority(name: str) -> KeyPair:
    """Make an authority with a key of its own."""
    return certificates.new_authority(name, datetime.now(UTC), _LIFETIME)


def serving(authority: KeyPair, hosts: Sequence[str]) -> KeyPair:
    """Sign for a server reached under these host names or IP addresses."""
    names = [_general_name(host) for host in hosts]
    now = datetime.now(UTC)
    return certificates.issue(
        authority, hosts[0], now, _LIFETIME, usages=[SERVER_AUTH], names=names
    )


def client(authority: KeyPair, user: str, groups: Sequence[str]) -> KeyPair:
    """Sign for a user; the API server reads its name from CN and its groups from O."""
    now = datetime.now(UTC)
    return certificates.issue(
        authority, user, now, _LIFETIME, usages=[CLIENT_AUTH], organizations=groups
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
