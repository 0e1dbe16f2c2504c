"""Where the API server is, how to trust it, and the credentials for it, kept fresh.

From `kubernetes` come kubeconfigs, contexts, in-cluster accounts, exec plugins, token refresh, TLS
and the connection pool; no other file imports it. It is imported on first use, since its 320
modules take half of the time that the import of a Manager takes. Requests are client.py's business.

TLS is always verified: a kubeconfig that says insecure-skip-tls-verify is refused, because the
credentials would go to whoever answers. Credentials are sent to https:// servers only. An exec
plugin has no time limit (the official package gives it none); while it hangs, requests wait.

Everything is read again when a file changes that the configuration comes from, and when the API
server refuses the credentials or its certificate is refused. Kubeconfigs of tenants: see
inline_kubeconfig.py.
"""

from __future__ import annotations

import logging
import os
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

import urllib3
from urllib3.util.ssl_ import create_urllib3_context

from actuator.errors import ConfigurationError, Unauthorized
from generic.inline_kubeconfig import InlineKubeconfig

if TYPE_CHECKING:
    from kubernetes.client import Configuration

__all__ = ["Access", "find_access"]

logger = logging.getLogger(__name__)

_Loaded: TypeAlias = "tuple[Configuration, ssl.SSLContext, list[str]]"
"""The configuration, the TLS settings, and the files from which they come."""

_FRESH = 10.0
"""Seconds for which a token is used before the official package is asked for it again."""
_ONE_AT_A_TIME = threading.Lock()
"""The package shares the files that it makes of inline data among all who load."""


class Access:
    """The way to an API server: connections and credentials. Safe to use from any thread.

    `pool` has the connections, `prefix` is what comes before every path there, `host` is the
    API server's host:port. They change when the configuration is read again.
    """

    pool: urllib3.HTTPConnectionPool | urllib3.PoolManager
    prefix: str
    host: str

    def __init__(self, load: Callable[[], _Loaded]) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._fresh_until = 0.0
        self._reload_from = 0.0  # not again before that, however often we are refused
        self._refused = self._distrusted = False
        self._problem = ""
        self._authorization = self._url = ""
        self._adopt(*load())

    def authorization(self) -> str:
        """The Authorization header, "" for none. Raises Unauthorized where it cannot be had."""
        if time.monotonic() < self._fresh_until:
            return self._authorization
        with self._lock:
            if time.monotonic() >= self._fresh_until:
                self._refresh()
            return self._authorization

    def refused(self, authorization: str) -> None:
        """The API server answered 401 to this header: everything is read again for the next."""
        with self._lock:
            if authorization == self._authorization and time.monotonic() >= self._reload_from:
                self._refused = True
                self._fresh_until = 0.0

    def distrusted(self, pool: object) -> None:
        """TLS with this pool failed: everything is read again for the next request."""
        with self._lock:
            if pool is self.pool and time.monotonic() >= self._reload_from:
                self._distrusted = True
                self._fresh_until = 0.0

    def _refresh(self) -> None:
        if self._refused or self._distrusted or _versions(self._files) != self._versions:
            self._reload_from = time.monotonic() + _FRESH
            self._distrusted = False
            try:
                self._adopt(*self._load())
                self._refused, self._problem, self._authorization = False, "", ""
            except (ConfigurationError, OSError) as error:
                if self._refused:
                    raise Unauthorized(0, str(error)) from error
                if str(error) != self._problem:
                    self._problem = str(error)
                    fields = {"fields": {"error": str(error)}}
                    logger.warning("the previous configuration stays in use", extra=fields)
        try:
            with _complaints() as complaints:
                token = self._configuration.get_api_key_with_prefix("BearerToken")
        except Exception as error:  # what the package's loaders raise; the old token may still do
            complaints, token = [_one_line(error)], None
        for complaint in complaints:
            logger.warning("no new credentials", extra={"fields": {"error": complaint}})
        self._authorization = token or self._authorization
        self._fresh_until = time.monotonic() + _FRESH

    def _adopt(self, configuration: Configuration, tls: ssl.SSLContext, files: list[str]) -> None:
        from kubernetes.client import ApiClient

        if self._url not in ("", configuration.host):
            raise ConfigurationError(
                f"the API server's address changed to {configuration.host}; restart to use it"
            )
        manager: urllib3.PoolManager = ApiClient(configuration).rest_client.pool_manager
        unset = dict.fromkeys(("ca_certs", "cert_file", "key_file"))  # all is in `tls`
        manager.connection_pool_kw.update(unset, ssl_context=tls)
        url = urlsplit(configuration.host.rstrip("/"))
        self._configuration, self._url = configuration, configuration.host
        self._files, self._versions = files, _versions(files)
        self.host = url.netloc
        if isinstance(manager, urllib3.ProxyManager):
            self.prefix, self.pool = url.geturl(), manager
        else:  # without the manager's look-up in each request
            self.prefix, self.pool = url.path, manager.connection_from_url(url.geturl())


def find_access(
    kubeconfig: Path | InlineKubeconfig | None,
    context: str | None,
    connections: int,
    server: str = "",
) -> Access:
    """The given kubeconfig, else KUBECONFIG, else the pod's account, else ~/.kube/config.

    `server` is a URL in place of the one that stands there. Raises ConfigurationError with one
    sentence on what is wrong with which file.
    """
    if server and urlsplit(server).scheme not in ("http", "https"):
        raise ConfigurationError(f"{server!r} is no URL of an API server; write https://HOST:PORT")

    def load() -> _Loaded:
        from kubernetes.client import Configuration

        configuration, files = Configuration(), list[str]()
        is_inline = isinstance(kubeconfig, InlineKubeconfig)
        one_at_a_time = nullcontext() if is_inline else _ONE_AT_A_TIME
        with one_at_a_time, TemporaryDirectory(prefix="kubeconfig-") as inline:
            if isinstance(kubeconfig, InlineKubeconfig):
                source = "the kubeconfig"
                _load_inline(configuration, kubeconfig, Path(inline))
            elif kubeconfig is None and context is None and _in_cluster():
                source = "the pod's service account"
                _use(source, lambda: _load_in_cluster(configuration))
            else:
                path = _path(kubeconfig)
                source, files = f"kubeconfig {path}", path.split(os.pathsep)
                _use(source, lambda: _load_kubeconfig(configuration, path, context, inline))
            tls = _tls(source, configuration)
            used = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
            files += [file for file in used if file and not file.startswith(inline)]
        configuration.proxy_ssl_context = tls  # a proxy is trusted as the API server is
        configuration.host = server or configuration.host
        if not configuration.host.lower().startswith("https:") and (
            configuration.api_key or configuration.cert_file
        ):
            raise ConfigurationError(
                f"{source}: credentials would go to {configuration.host} in clear text; give an "
                "https:// server, or a user without credentials"
            )
        configuration.connection_pool_maxsize = connections
        configuration.retries = False
        configuration.keep_alive = True
        return configuration, tls, files

    return Access(load)


def _versions(files: list[str]) -> list[tuple[int, int, int] | None]:
    """What changes when a file is written or replaced; None for a file that is missing."""

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
    """The path as `kubernetes` takes it: several, with colons between, as in KUBECONFIG."""
    default = Path("~/.kube/config").expanduser()
    path = str(kubeconfig or os.environ.get("KUBECONFIG") or default)
    if not any(Path(part).expanduser().is_file() for part in path.split(os.pathsep) if part):
        raise ConfigurationError(
            f"kubeconfig {path} does not exist; give --kubeconfig, or set KUBECONFIG"
        )
    return path


def _use(source: str, load: Callable[[], None]) -> None:
    try:
        with _complaints() as complaints:
            load()
    except Exception as error:  # the package raises what its parsers raise
        raise ConfigurationError(f"{source} cannot be used: {_one_line(error)}") from error
    if complaints:
        raise ConfigurationError(f"{source}: no credentials: {complaints[0]}")


def _load_in_cluster(configuration: Configuration) -> None:
    from kubernetes import config as kube_config

    kube_config.load_incluster_config(  # type: ignore[no-untyped-call]
        client_configuration=configuration
    )


def _load_inline(configuration: Configuration, kubeconfig: InlineKubeconfig, folder: Path) -> None:
    """Without the official package, which keeps what it decodes. `folder` is ours, and removed."""

    def file(name: str, content: bytes) -> str | None:
        path = folder / name
        path.touch(mode=0o600)
        path.write_bytes(content)
        return str(path) if content else None

    configuration.host = kubeconfig.server
    configuration.tls_server_name = kubeconfig.tls_server_name or None
    configuration.ssl_ca_cert = file("ca", kubeconfig.ca)
    configuration.cert_file = file("certificate", kubeconfig.certificate)
    configuration.key_file = file("key", kubeconfig.key)
    if kubeconfig.token:
        configuration.api_key["BearerToken"] = f"Bearer {kubeconfig.token}"


def _load_kubeconfig(
    configuration: Configuration, path: str, context: str | None, inline: str
) -> None:
    """`inline`: the folder for what the package writes into files before it can be used."""
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
        raise ValueError("it is not built like a kubeconfig") from error
    if not urllib3.util.parse_url(configuration.host).host:
        raise ValueError("its cluster names no server")


def _check_context(path: str, context: str | None) -> None:
    """Raises ValueError naming the contexts that there are: the package does not."""
    from kubernetes.config.kube_config import KubeConfigMerger

    config = KubeConfigMerger(path).config.value  # type: ignore[no-untyped-call]
    names = [str(entry["name"]) for entry in config["contexts"]]
    wanted = context or config.get("current-context")
    if wanted not in names:
        which = f"no context {wanted!r}" if wanted else "no current-context"
        raise ValueError(f"it has {which}; give --context, one of: {', '.join(names)}")


def _tls(source: str, configuration: Configuration) -> ssl.SSLContext:
    """What all connections use. Finds now what each would fail on. Raises ConfigurationError."""
    if not configuration.verify_ssl:
        raise ConfigurationError(
            f"{source}: insecure-skip-tls-verify is set, and credentials would go to whoever "
            "answers; give certificate-authority instead"
        )
    tls = create_urllib3_context()
    what = "certificate-authority"
    try:
        if configuration.ssl_ca_cert:
            tls.load_verify_locations(configuration.ssl_ca_cert)
        else:
            tls.load_default_certs()
        what = "client-certificate"
        if configuration.cert_file:
            # A password, so that OpenSSL does not ask for one on the terminal.
            tls.load_cert_chain(configuration.cert_file, configuration.key_file, password="")
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{source}: its {what} cannot be used: {error}") from error
    return tls


@contextmanager
def _complaints() -> Iterator[list[str]]:
    """What the official package only logs: that an exec plugin failed, and why."""
    heard: list[str] = []

    def listen(record: logging.LogRecord) -> bool:
        ours = record.module == "kube_config" and record.thread == threading.get_ident()
        if ours:
            heard.append(" ".join(record.getMessage().split()))
        return not ours

    root, quiet = logging.getLogger(), logging.NullHandler()
    root.addHandler(quiet)  # without a handler, logging.error() would set one up for good
    root.addFilter(listen)
    try:
        yield heard
    finally:
        root.removeFilter(listen)
        root.removeHandler(quiet)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
