"""Access to the API server: its address, its CA and the credentials, refreshed when they change.

The package `kubernetes` applies proxy variables. No other file imports it. It is imported on first
use, since its 320 modules take a third of a second.

TLS is always verified, and credentials are sent to https:// servers only. The configuration is read
again when one of its files changes, when a plugin's credentials expire, and when the API server
refuses the credentials or its certificate is refused. While an exec plugin runs, requests wait. Not
here: requests (`client`), the contents of kubeconfigs (`kubeconfig`), plugins (`execplugin`).
"""

import logging
import os
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies

from msgspec import Struct

from actuator.errors import ConfigurationError, Unauthorized
from actuator.meta import parse_time
from generic.kube.clock import SystemClock
from generic.kube.connecting import Route
from generic.kube.execplugin import run_plugin
from generic.kube.kubeconfig import InlineKubeconfig, LocalKubeconfig, read_files
from generic.kube.printable import one_line
from generic.kube.transport import HttpTransport

logger = logging.getLogger(__name__)


class NoKubeconfig(ConfigurationError):
    """The kubeconfig does not exist."""


class _Loaded(Struct, frozen=True):
    url: str
    transport: HttpTransport
    kubeconfig: LocalKubeconfig


_POD = "the pod's service account"
_FRESH = 10.0
"""Seconds before the files and the expiry of the credentials are checked again."""
_EXPIRY_SECONDS = 300.0
"""Seconds before their expiry at which credentials are renewed."""
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Kubernetes documentation, "Accessing the Kubernetes API from a Pod"."""


class Access:
    """Connections and credentials for an API server. Safe to use from any thread.

    `transport` holds the connections, `prefix` precedes every path, `host` is the API server's
    host:port. They change when the configuration is read again.
    """

    transport: HttpTransport
    prefix: str
    host: str

    def __init__(self, load: Callable[[], _Loaded]) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._fresh_until = 0.0
        self._reload_from = 0.0  # rate limit for reading again after a refusal
        self._refused = self._distrusted = False
        self._problem = ""
        self._url = ""
        self._adopt(load())

    def authorization(self) -> str:
        """Return the Authorization header, "" for none. Raises Unauthorized without credentials."""
        if time.monotonic() < self._fresh_until:
            return self._authorization
        with self._lock:
            if time.monotonic() >= self._fresh_until:
                self._refresh()
            return self._authorization

    def refused(self, authorization: str) -> None:
        """Read the configuration again before the next request: this header was answered 401."""
        with self._lock:
            if authorization == self._authorization and time.monotonic() >= self._reload_from:
                self._refused = True
                self._fresh_until = 0.0

    def distrusted(self, transport: HttpTransport) -> None:
        """Read the configuration again before the next request: TLS failed with this transport."""
        with self._lock:
            if transport is self.transport and time.monotonic() >= self._reload_from:
                self._distrusted = True
                self._fresh_until = 0.0

    def _refresh(self) -> None:
        is_expired = _is_expired(self._loaded.kubeconfig.expires)
        is_changed = _versions(self._loaded.kubeconfig.files) != self._versions
        if self._refused or self._distrusted or is_expired or is_changed:
            self._reload_from = time.monotonic() + _FRESH
            self._distrusted = False
            try:
                self._adopt(self._load())
                self._refused = False
                self._problem = ""
            except (ConfigurationError, OSError) as error:
                if self._refused:
                    raise Unauthorized(0, str(error)) from error
                if str(error) != self._problem:
                    self._problem = str(error)
                    what = "credential refresh" if is_expired else "kubeconfig reload"
                    fields = {"fields": {"error": str(error)}}
                    logger.warning(f"{what} failed, using the previous one", extra=fields)
        self._fresh_until = time.monotonic() + _FRESH

    def _adopt(self, loaded: _Loaded) -> None:
        if self._url not in ("", loaded.url):
            raise ConfigurationError(
                f"the API server's address changed to {loaded.url}; restart the process to use it"
            )
        url = urlsplit(loaded.url.rstrip("/"))
        self._loaded = loaded
        self._url = loaded.url
        self._authorization = loaded.kubeconfig.authorization
        self._versions = _versions(loaded.kubeconfig.files)
        self.host = url.netloc
        self.prefix = url.path
        self.transport = loaded.transport


def _is_expired(expires: str) -> bool:
    if not expires:
        return False
    return parse_time(expires).timestamp() - SystemClock().now().timestamp() < _EXPIRY_SECONDS


def find_access(
    kubeconfig: Path | InlineKubeconfig | None,
    context: str | None,
    connections: int,
    server: str = "",
) -> Access:
    """Find the configuration: the given kubeconfig, KUBECONFIG, the pod's account, ~/.kube/config.

    `server` is a URL that replaces the configured one. Raises ConfigurationError with one sentence:
    the file and its problem.
    """
    if server and urlsplit(server).scheme not in ("http", "https"):
        raise ConfigurationError(f"invalid API server URL {server!r}; set https://HOST:PORT")

    return Access(lambda: _connected(_found(kubeconfig, context), server, connections))


def _found(kubeconfig: Path | InlineKubeconfig | None, context: str | None) -> LocalKubeconfig:
    if isinstance(kubeconfig, InlineKubeconfig):
        return LocalKubeconfig("the kubeconfig", kubeconfig, is_trusted=False)
    in_cluster = "KUBERNETES_SERVICE_HOST" in os.environ and not os.environ.get("KUBECONFIG")
    if kubeconfig is None and context is None and in_cluster:
        files = str(_SERVICE_ACCOUNT / "ca.crt"), str(_SERVICE_ACCOUNT / "token")
        return LocalKubeconfig(_POD, service_account(), files)
    path = str(kubeconfig or os.environ.get("KUBECONFIG") or Path("~/.kube/config").expanduser())
    parts = [Path(part).expanduser() for part in path.split(os.pathsep) if part]
    if not any(part.is_file() for part in parts):
        raise NoKubeconfig(f"kubeconfig {path} does not exist; set --kubeconfig or KUBECONFIG")
    try:
        return read_files(f"kubeconfig {path}", parts, context)
    except (ConfigurationError, OSError, ValueError, RecursionError) as error:
        why = one_line(error)
        remedy = "" if "; set --context" in why else "; correct the file"
        raise ConfigurationError(f"cannot load kubeconfig {path}: {why}{remedy}") from error


def service_account() -> InlineKubeconfig:
    """Return the server, CA and token of the pod. Raises ConfigurationError for an unusable one."""
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{part}", "") for part in ("HOST", "PORT"))
    try:
        ca = (_SERVICE_ACCOUNT / "ca.crt").read_bytes()
        token = (_SERVICE_ACCOUNT / "token").read_text().strip()
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{_POD} cannot be used: {one_line(error)}") from error
    if not (ca and token and host and port):
        raise ConfigurationError(f"{_POD} cannot be used: its CA, token, host or port is empty")
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return InlineKubeconfig(server, ca, token=token)


def _connected(found: LocalKubeconfig, server: str, connections: int) -> _Loaded:
    """Return the connections to a server, by default the one of the kubeconfig."""
    found = run_plugin(found) if found.plugin else found
    inline = found.inline
    url = server or inline.server
    has_credentials = inline.certificate or found.authorization
    if has_credentials and not url.lower().startswith("https:"):
        raise ConfigurationError(
            f"{found.name}: refusing to send credentials to {url} without TLS; set an https:// "
            "server, or a user without credentials"
        )
    # Comments may have other characters. Never empty for a tenant: the system's would be trusted.
    tls = _trust(found.name, inline.ca.decode("ascii", "backslashreplace"))
    if inline.certificate:
        with _file(inline.certificate) as certificate, _file(inline.key) as key:
            _authenticate(found.name, tls, certificate, key if inline.key else None)
    proxy = _proxy(found, url, tls) if found.proxy or getproxies() else None
    name = inline.tls_server_name
    is_trusted = found.is_trusted
    transport = HttpTransport(url, tls, name, connections, proxy=proxy, is_trusted=is_trusted)
    return _Loaded(url, transport, found)


def _proxy(found: LocalKubeconfig, url: str, tls: ssl.SSLContext) -> Route | None:
    """Return the proxy for a server, which is trusted like the API server.

    The package applies the many rules for proxies, but not the credentials in their URLs.
    """
    from kubernetes.client import ApiClient, Configuration
    from urllib3 import PoolManager, make_headers

    configuration = Configuration()
    configuration.host = url
    configuration.proxy = found.proxy or configuration.proxy
    if type(ApiClient(configuration).rest_client.pool_manager) is PoolManager:
        return None  # not one of its subclasses for proxies
    used = urlsplit(configuration.proxy or "")
    if used.scheme not in ("http", "https") or not used.hostname:
        raise ConfigurationError(f"{found.name}: its proxy is not supported; set http://HOST:PORT")
    secured = tls if used.scheme == "https" else None
    address = used.hostname, used.port or (443 if secured else 80)
    credentials = ":".join(map(unquote, (used.username or "", used.password or "")))
    headers = {} if credentials == ":" else make_headers(proxy_basic_auth=credentials)
    return Route(address, secured, used.hostname, headers)


def _versions(files: Sequence[str]) -> list[tuple[int, int, int] | None]:
    """Return values that change when a file is written or replaced; None for a missing file."""

    def version(file: str) -> tuple[int, int, int] | None:
        try:
            found = Path(file).expanduser().stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    return [version(file) for file in files]


@contextmanager
def _file(content: bytes) -> Iterator[str]:
    """Yield the path of a private file with this content: OpenSSL reads keys from files only."""
    with NamedTemporaryFile(prefix="kubeconfig-") as file:
        file.write(content)
        file.flush()
        yield file.name


def _trust(source: str, ca: str) -> ssl.SSLContext:
    """Return the TLS context of all connections, which trusts this CA, by default the system's.

    Raises ConfigurationError for an unusable CA.
    """
    try:
        tls = ssl.create_default_context(cadata=ca)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{source}: cannot use its certificate-authority: {error}"
        ) from error
    tls.set_alpn_protocols(["http/1.1"])
    return tls


def _authenticate(source: str, tls: ssl.SSLContext, certificate: str, key: str | None) -> None:
    """Present this certificate on all connections. Raises ConfigurationError for unusable files."""
    try:
        # A password, so that OpenSSL does not ask for one on the terminal.
        tls.load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{source}: cannot use its client-certificate: {error}") from error
