"""Where a database server listens, and as whom: what the extension is told by a URL."""

from __future__ import annotations

from urllib.parse import quote, unquote, urlsplit

import attrs

from actuator import ConfigurationError

__all__ = ["Endpoint"]


@attrs.frozen(kw_only=True)
class Endpoint:
    """A server and an account on it. The password is in no text that this class makes."""

    host: str
    port: int
    user: str
    password: str = attrs.field(repr=False)

    @classmethod
    def parse(cls, url: str, default_port: int) -> Endpoint:
        """`scheme://user:password@host[:port]`, user and password percent-encoded.

        Raises ConfigurationError, which does not repeat the URL: it has a password in it.
        """
        try:
            parts = urlsplit(url)
            port = parts.port or default_port
        except ValueError:
            parts, port = urlsplit(""), default_port
        if not (parts.hostname and parts.username and parts.password):
            raise ConfigurationError(
                "the URL of a database server has no host, user or password; "
                "write it as scheme://user:password@host:port"
            )
        return cls(
            host=parts.hostname,
            port=port,
            user=unquote(parts.username),
            password=unquote(parts.password),
        )

    def url(self, scheme: str, database: str = "") -> str:
        """The same as a URL, password included; for one database where that is named."""
        who = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        path = f"/{quote(database, safe='')}" if database else ""
        return f"{scheme}://{who}@{host}:{self.port}{path}"
