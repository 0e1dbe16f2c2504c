"""The address of a database server and the account on it, parsed from a URL."""

import ssl
from urllib.parse import quote, unquote, urlsplit

import attrs

from actuator import ConfigurationError

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@attrs.frozen(kw_only=True)
class DatabaseEndpoint:
    """A server and an account on it. The representation does not contain the password.

    `ca` is the PEM bundle that verifies the server's certificate; "" is the system's. `tls` is
    False only for a loopback server whose URL disables TLS.
    """

    host: str
    port: int
    user: str
    password: str = attrs.field(repr=False)
    ca: str = attrs.field(default="", repr=False)
    tls: bool = True

    @classmethod
    def parse(cls, url: str, default_port: int, ca: str = "") -> "DatabaseEndpoint":
        """Parse `scheme://user:password@host[:port][?sslmode=MODE]`, parts percent-encoded.

        MODE is `verify-full`, the default, or `disable` for a loopback server. Raises
        ConfigurationError, which does not repeat the URL, because the URL contains a password.
        """
        try:
            parts = urlsplit(url)
            port = parts.port or default_port
        except ValueError:
            parts = urlsplit("")
            port = default_port
        if not (parts.hostname and parts.username and parts.password):
            raise ConfigurationError(
                "the URL of a database server has no host, user or password; "
                "write it as scheme://user:password@host:port"
            )
        disabled = parts.query == "sslmode=disable" and parts.hostname in _LOOPBACK
        verified = parts.query in ("", "sslmode=verify-full")
        if parts.path not in ("", "/") or parts.fragment or not (verified or disabled):
            raise ConfigurationError(
                "the URL of a database server has a path or an option that is not supported; "
                "the only option is sslmode=verify-full (the default), or "
                "sslmode=disable for a loopback server; percent-encode special characters"
            )
        there = cls(
            host=parts.hostname,
            port=port,
            user=unquote(parts.username),
            password=unquote(parts.password),
            ca=ca,
            tls=verified,
        )
        if ca:  # loading the system's takes 50 ms, and cannot fail
            there.tls_context()
        return there

    def tls_context(self) -> ssl.SSLContext:
        """Return a context that verifies certificate and host name. Raises ConfigurationError."""
        try:
            return ssl.create_default_context(cadata=self.ca or None)
        except ssl.SSLError:
            raise ConfigurationError(
                "the CA of a database server contains no PEM certificate; "
                "set it from the key ca.crt of the admin Secret"
            ) from None

    def url(self, scheme: str, database: str = "") -> str:
        """Return the endpoint as a URL with its password, for one database if it is given."""
        who = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        path = f"/{quote(database, safe='')}" if database else ""
        return f"{scheme}://{who}@{host}:{self.port}{path}"
