"""Certificates of one embedded cluster; each cluster gets new ones.

Import this module where it is used: it needs `cryptography`, which comes with the extra `envtest`.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from attrs import frozen

from actuator.errors import ConfigurationError
from generic.library.programs.errors import EnvtestError

try:
    from generic.kube.certificates import (
        CLIENT_AUTH,
        SERVER_AUTH,
        KeyPair,
        general_name,
        issue,
        new_authority,
        new_private_key,
        save_private,
    )
except ConfigurationError as error:
    raise EnvtestError(
        "the embedded cluster needs the package `cryptography`:"
        " pip install 'gardener-actuator[envtest]', or [rehearsal] for drills"
    ) from error

__all__ = ["KeyPair", "LocalAuthority", "new_private_key", "save_private"]

_LIFETIME = timedelta(days=365)


@frozen
class LocalAuthority:
    """A certificate authority that signs serving and client certificates."""

    key_pair: KeyPair
    """Its own certificate and key."""

    @classmethod
    def new(cls, name: str) -> "LocalAuthority":
        """Create an authority with a new key."""
        return cls(new_authority(name, datetime.now(UTC), _LIFETIME))

    @classmethod
    def load(cls, certificate: Path, key: Path) -> "LocalAuthority":
        """Load the files that `key_pair.save` wrote."""
        return cls(KeyPair(certificate.read_bytes(), key.read_bytes()))

    def serving(self, hosts: Sequence[str]) -> KeyPair:
        """Issue a certificate for a server with these host names or IP addresses."""
        now = datetime.now(UTC)
        names = [general_name(host) for host in hosts]
        return issue(self.key_pair, hosts[0], now, _LIFETIME, usages=[SERVER_AUTH], names=names)

    def client(self, user: str, groups: Sequence[str]) -> KeyPair:
        """Issue a certificate for a user; the API server reads the name from CN, groups from O."""
        now = datetime.now(UTC)
        usages = [CLIENT_AUTH]
        return issue(self.key_pair, user, now, _LIFETIME, usages=usages, organizations=groups)
