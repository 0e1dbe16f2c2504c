"""Access to the API server: its address, its CA and the credentials, refreshed when they change.

A kubeconfig that `inline_kubeconfig` accepts (one server, its CA and one inline credential) and the
service account of a pod are used directly. The package `kubernetes` reads all others (several
files, exec plugins, tokens that expire), and applies proxy variables. No other file imports it. It
is imported on first use, since its 320 modules take a third of a second.

TLS is always verified: a kubeconfig with insecure-skip-tls-verify is refused, because any server
could receive the credentials. Credentials are sent to https:// servers only. An exec plugin has
no time limit (the official package sets none); while it hangs, requests wait.

The configuration is read again when one of its files changes, and when the API server refuses the
credentials or its certificate is refused. Not here: requests (`client`), kubeconfigs of tenants
(`inline_kubeconfig`).
"""

import logging
import os
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies

from msgspec import Struct

from actuator.errors import ConfigurationError, Unauthorized
from generic.kube.connecting import Route
from generic.kube.inline_kubeconfig import InlineKubeconfig, read_kubeconfig
from generic.kube.transport import HttpTransport

if TYPE_CHECKING:
    from kubernetes.client import Configuration

logger = logging.getLogger(__name__)


class NoKubeconfig(ConfigurationError):
    """The kubeconfig does not exist."""


class _Source(Struct, frozen=True):
    """A configuration to read; `server` replaces its URL."""

    name: str
    server: str
    connections: int
    files: Sequence[str] = ()
    is_trusted: bool = True


class _Loaded(Struct, frozen=True):
    """A configuration as read."""

    url: str
    transport: HttpTransport
    token: Callable[[], str | None]
    """Return the current Authorization header; this may run an exec plugin."""
    files: Sequence[str] = ()
    """The files that the configuration was read from."""


_POD = "the pod's service account"
_FRESH = 10.0
"""Seconds before the official package is asked for the token again."""
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Kubernetes documentation, "Accessing the Kubernetes API from a Pod"."""
_ONE_AT_A_TIME = threading.Lock()
"""The package shares the files that it creates for inline data between all loads."""


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
        self._authorization = self._url = ""
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
        if self._refused or self._distrusted or _versions(self._loaded.files) != self._versions:
            self._reload_from = time.monotonic() + _FRESH
            self._distrusted = False
            try:
                self._adopt(self._load())
                self._refused, self._problem, self._authorization = False, "", ""
            except (ConfigurationError, OSError) as error:
                if self._refused:
                    raise Unauthorized(0, str(error)) from error
                if str(error) != self._problem:
                    self._problem = str(error)
                    fields = {"fields": {"error": str(error)}}
                    logger.warning("kubeconfig reload failed, using the previous one", extra=fields)
        try:
            with _complaints() as complaints:
                token = self._loaded.token()
        except Exception as error:  # the loaders raise anything; the old token may still be valid
            complaints, token = [_one_line(error)], None
        for complaint in complaints:
            logger.warning("credential refresh failed", extra={"fields": {"error": complaint}})
        self._authorization = token or self._authorization
        self._fresh_until = time.monotonic() + _FRESH

    def _adopt(self, loaded: _Loaded) -> None:
        if self._url not in ("", loaded.url):
            raise ConfigurationError(
                f"the API server's address changed to {loaded.url}; restart the process to use it"
            )
        url = urlsplit(loaded.url.rstrip("/"))
        self._url, self._loaded, self._versions = loaded.url, loaded, _versions(loaded.files)
        self.host, self.prefix, self.transport = url.netloc, url.path, loaded.transport


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

    def load() -> _Loaded:
        if isinstance(kubeconfig, InlineKubeconfig):
            source = _Source("the kubeconfig", server, connections, is_trusted=False)
            return _direct(source, kubeconfig)
        if kubeconfig is None and context is None and _in_cluster():
            files = [str(_SERVICE_ACCOUNT / name) for name in ("ca.crt", "token")]
            return _direct(_Source(_POD, server, connections, files), service_account())
        path = _path(kubeconfig)
        source = _Source(f"kubeconfig {path}", server, connections, path.split(os.pathsep))
        with suppress(ConfigurationError, OSError):  # the package supports more than this
            found = read_kubeconfig(Path(path).expanduser().read_bytes(), context)
            return _direct(source, found)
        return _by_package(source, path, context)

    return Access(load)


def service_account() -> InlineKubeconfig:
    """Return the server, CA and token of the pod. Raises ConfigurationError for an unusable one."""
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{part}", "") for part in ("HOST", "PORT"))
    try:
        ca = (_SERVICE_ACCOUNT / "ca.crt").read_bytes()
        token = (_SERVICE_ACCOUNT / "token").read_text().strip()
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{_POD} cannot be used: {_one_line(error)}") from error
    if not (ca and token and host and port):
        raise ConfigurationError(f"{_POD} cannot be used: its CA, token, host or port is empty")
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return InlineKubeconfig(server, ca, token)


def _direct(source: _Source, kubeconfig: InlineKubeconfig) -> _Loaded:
    url = source.server or kubeconfig.server
    _refuse_clear_text(source.name, url)
    # Comments may have other characters. Never empty: the system's CAs would be trusted then.
    tls = _trust(source.name, text=kubeconfig.ca.decode("ascii", "backslashreplace"))
    if kubeconfig.certificate:
        with _file(kubeconfig.certificate) as certificate, _file(kubeconfig.key) as key:
            _authenticate(source.name, tls, certificate, key)
    transport = _transport(url, tls, kubeconfig.tls_server_name, source)
    token = f"Bearer {kubeconfig.token}" if kubeconfig.token else None
    return _Loaded(url, transport, lambda: token, source.files)


def _by_package(source: _Source, path: str, context: str | None) -> _Loaded:
    from kubernetes.client import Configuration

    configuration = Configuration()
    with _ONE_AT_A_TIME, TemporaryDirectory(prefix="kubeconfig-") as folder:
        _use(source.name, lambda: _load_kubeconfig(configuration, path, context, folder))
        _refuse_unverified(source.name, configuration)
        used = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
        tls = _trust(source.name, file=configuration.ssl_ca_cert)
        if configuration.cert_file:
            _authenticate(source.name, tls, configuration.cert_file, configuration.key_file)
    files = [*source.files, *(file for file in used if file and not file.startswith(folder))]
    url = source.server or configuration.host
    if configuration.api_key or configuration.cert_file:
        _refuse_clear_text(source.name, url)
    name = configuration.tls_server_name or ""
    transport = _transport(url, tls, name, source, configuration)

    def token() -> str | None:
        found: str | None = configuration.get_api_key_with_prefix("BearerToken")
        return found

    return _Loaded(url, transport, token, files)


def _transport(
    url: str,
    tls: ssl.SSLContext,
    server_name: str,
    source: _Source,
    configuration: "Configuration | None" = None,
) -> HttpTransport:
    """Return the connections to a server; the package applies the many rules for proxies."""
    proxy = _proxy(source.name, url, tls, configuration) if configuration or getproxies() else None
    size, is_trusted = source.connections, source.is_trusted
    return HttpTransport(url, tls, server_name, size, proxy=proxy, is_trusted=is_trusted)


def _proxy(
    source: str, url: str, tls: ssl.SSLContext, configuration: "Configuration | None"
) -> Route | None:
    """Return the proxy for a server, which is trusted like the API server."""
    from kubernetes.client import ApiClient, Configuration
    from urllib3 import PoolManager

    configuration = configuration or Configuration()
    configuration.host = url
    if type(ApiClient(configuration).rest_client.pool_manager) is PoolManager:
        return None  # not one of its subclasses for proxies
    used = urlsplit(configuration.proxy or "")
    if used.scheme not in ("http", "https") or not used.hostname:
        raise ConfigurationError(f"{source}: its proxy is not supported; set http://HOST:PORT")
    secured = tls if used.scheme == "https" else None
    address = used.hostname, used.port or (443 if secured else 80)
    return Route(address, secured, used.hostname, configuration.proxy_headers or {})


def _refuse_clear_text(source: str, url: str) -> None:
    if not url.lower().startswith("https:"):
        raise ConfigurationError(
            f"{source}: refusing to send credentials to {url} without TLS; set an https:// server, "
            "or a user without credentials"
        )


def _versions(files: Sequence[str]) -> list[tuple[int, int, int] | None]:
    """Return values that change when a file is written or replaced; None for a missing file."""

    def version(file: str) -> tuple[int, int, int] | None:
        try:
            found = Path(file).expanduser().stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    return [version(file) for file in files]


def _in_cluster() -> bool:
    return "KUBERNETES_SERVICE_HOST" in os.environ and not os.environ.get("KUBECONFIG")


def _path(kubeconfig: Path | None) -> str:
    """Return the path for `kubernetes`: several joined with colons, as in KUBECONFIG."""
    default = Path("~/.kube/config").expanduser()
    path = str(kubeconfig or os.environ.get("KUBECONFIG") or default)
    if not any(Path(part).expanduser().is_file() for part in path.split(os.pathsep) if part):
        raise NoKubeconfig(f"kubeconfig {path} does not exist; set --kubeconfig or KUBECONFIG")
    return path


def _use(source: str, load: Callable[[], None]) -> None:
    try:
        with _complaints() as complaints:
            load()
    except Exception as error:  # the package raises any exception of its parsers
        remedy = "; correct the file" if source.startswith("kubeconfig") else ""
        raise ConfigurationError(f"cannot load {source}: {_one_line(error)}{remedy}") from error
    if complaints:
        raise ConfigurationError(f"{source}: no credentials: {complaints[0]}")


@contextmanager
def _file(content: bytes) -> Iterator[str]:
    """Yield the path of a private file with this content: OpenSSL reads keys from files only."""
    with NamedTemporaryFile(prefix="kubeconfig-") as file:
        file.write(content)
        file.flush()
        yield file.name


def _load_kubeconfig(
    configuration: "Configuration", path: str, context: str | None, inline: str
) -> None:
    """Load with the package, which writes inline data into files in the folder `inline`."""
    from kubernetes import config as kube_config
    from kubernetes.config.config_exception import ConfigException

    configuration.host = ""  # else a cluster without a server would mean localhost
    try:
        kube_config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=path,
            context=context,
            client_configuration=configuration,
            persist_config=False,
            temp_file_path=inline,
        )
    except ConfigException:
        _check_context(path, context)
        raise
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError("not a valid kubeconfig") from error
    url = urlsplit(configuration.host)
    if not url.hostname or url.port == 0:  # reading an impossible port raises ValueError
        raise ValueError("its cluster has no server")


def _check_context(path: str, context: str | None) -> None:
    """Raise ValueError with the names of the existing contexts: the package does not."""
    from kubernetes.config.kube_config import KubeConfigMerger

    config = KubeConfigMerger(path).config.value  # type: ignore[no-untyped-call]
    names = [str(entry["name"]) for entry in config["contexts"]]
    wanted = context or config.get("current-context")
    if wanted not in names:
        which = f"context {wanted!r} not found" if wanted else "current-context is not set"
        raise ValueError(f"{which}; set --context to one of: {', '.join(names)}")


def _refuse_unverified(source: str, configuration: "Configuration") -> None:
    if not configuration.verify_ssl:
        raise ConfigurationError(
            f"{source}: insecure-skip-tls-verify is not supported, because it exposes credentials; "
            "set certificate-authority instead"
        )


def _trust(source: str, *, file: str | None = None, text: str | None = None) -> ssl.SSLContext:
    """Return the TLS context of all connections, which trusts this CA, by default the system's.

    Raises ConfigurationError for an unusable CA.
    """
    try:
        tls = ssl.create_default_context(cafile=file, cadata=text)
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


@contextmanager
def _complaints() -> Iterator[list[str]]:
    """Collect errors that the official package only logs, such as a failing exec plugin."""
    heard: list[str] = []

    def listen(record: logging.LogRecord) -> bool:
        ours = record.module == "kube_config" and record.thread == threading.get_ident()
        if ours:
            heard.append(" ".join(record.getMessage().split()))
        return not ours

    root, quiet = logging.getLogger(), logging.NullHandler()
    root.addHandler(quiet)  # without a handler, logging.error() would install one permanently
    root.addFilter(listen)
    try:
        yield heard
    finally:
        root.removeFilter(listen)
        root.removeHandler(quiet)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
