"""HttpClient: requests to the API server, on the official package's configuration and pool.

From `kubernetes` come kubeconfigs, contexts, in-cluster accounts, exec plugins, token refresh, TLS
and the connection pool; no other file imports it. Its object calls are not used: they cost more
CPU and have no timeout by default, and its pool repeats GET and PUT silently. Nothing here is
ever repeated: the work queue backs off instead.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import urllib3
from kubernetes import config as kube_config
from kubernetes.client import ApiClient, Configuration
from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse

from actuator.errors import ApiError, ConfigurationError, Unavailable, api_error
from actuator.interface import Propagation, Resource
from actuator.meta import Raw

__all__ = ["HttpClient", "connect", "path_of"]

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
FIELD_MANAGER = "actuator"

_CONNECT_TIMEOUT = 5.0
_READ_TIMEOUT = 30.0
_PAGE = 500
_Objects = list[Raw]


def connect(
    kubeconfig: Path | None = None,
    context: str | None = None,
    *,
    connections: int = 32,
    observe: Callable[[str, str, str], None] | None = None,
) -> HttpClient:
    """A client for the API server that the configuration names.

    The given kubeconfig, else KUBECONFIG, else the pod's service account, else ~/.kube/config.
    `observe` hears method, host and code of every request. Raises ConfigurationError with one
    sentence on what is wrong with which file.
    """
    configuration = Configuration()
    source = _load(configuration, kubeconfig, context)
    if not configuration.verify_ssl:
        raise ConfigurationError(
            f"{source}: insecure-skip-tls-verify is set, and credentials would go to whoever "
            "answers; give certificate-authority instead"
        )
    configuration.connection_pool_maxsize = connections
    configuration.retries = False
    try:
        return HttpClient(configuration, observe=observe)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{source}: {error}") from error


def _load(configuration: Configuration, kubeconfig: Path | None, context: str | None) -> str:
    """Fills the configuration in; returns where it came from, for messages."""
    in_cluster = "KUBERNETES_SERVICE_HOST" in os.environ
    if kubeconfig is None and "KUBECONFIG" not in os.environ and context is None and in_cluster:
        return _load_in_cluster(configuration)
    given = str(kubeconfig) if kubeconfig else os.environ.get("KUBECONFIG", "")
    path = given or str(Path.home() / ".kube" / "config")
    if not any(Path(part).is_file() for part in path.split(os.pathsep)):
        raise ConfigurationError(
            f"kubeconfig {path} does not exist; give --kubeconfig, or set KUBECONFIG"
        )
    try:
        kube_config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=path,
            context=context,
            client_configuration=configuration,
            persist_config=False,
        )
    except Exception as error:  # the library raises what its parsers raise
        raise ConfigurationError(f"kubeconfig {path} cannot be used: {_one_line(error)}") from error
    if context is None and not _names_a_server(configuration):
        raise ConfigurationError(f"kubeconfig {path} names no server; check its current-context")
    return f"kubeconfig {path}"


def _load_in_cluster(configuration: Configuration) -> str:
    try:
        kube_config.load_incluster_config(  # type: ignore[no-untyped-call]
            client_configuration=configuration
        )
    except Exception as error:
        raise ConfigurationError(f"in-cluster configuration: {_one_line(error)}") from error
    return "in-cluster configuration"


def _names_a_server(configuration: Configuration) -> bool:
    return urlsplit(configuration.host).hostname is not None


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def path_of(resource: Resource, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """The URL path of an object, or of all of them."""
    root = "/apis" if "/" in resource.api_version else "/api"
    parts = [root, resource.api_version]
    if namespace and resource.namespaced:
        parts += ["namespaces", quote(namespace, safe="")]
    parts.append(resource.plural)
    if name:
        parts.append(quote(name, safe=""))
    if subresource:
        parts.append(subresource)
    return "/".join(parts)


class HttpClient:
    """Kubernetes objects over HTTP; see `actuator.Client`. Safe to use from any thread."""

    def __init__(
        self,
        configuration: Configuration,
        *,
        observe: Callable[[str, str, str], None] | None = None,
    ) -> None:
        self._configuration = configuration
        self._pool: urllib3.PoolManager = ApiClient(configuration).rest_client.pool_manager
        self._base = configuration.host.rstrip("/")
        self._host = urlsplit(self._base).netloc
        self._observe = observe or (lambda _method, _host, _code: None)
        self._gate: Callable[[], None] = _open
        self._credentials = threading.Lock()  # exec plugins and refresh change shared state

    def gated(self, gate: Callable[[], None]) -> HttpClient:
        """The same client, on the same connections, that asks `gate` before every write."""
        twin = copy(self)
        twin._gate = gate  # noqa: SLF001 - its own kind
        return twin

    @property
    def host(self) -> str:
        """host:port of the API server."""
        return self._host

    def get(self, resource: Resource, name: str, namespace: str = "") -> Raw:
        """See Client."""
        return _object(self.send("GET", path_of(resource, namespace, name)))

    def list(
        self, resource: Resource, namespace: str = "", *, label_selector: str = ""
    ) -> list[Raw]:
        """See Client."""
        items, _ = self.list_with_version(resource, namespace, label_selector=label_selector)
        return items

    def list_with_version(
        self, resource: Resource, namespace: str = "", *, label_selector: str = ""
    ) -> tuple[_Objects, str]:
        """All objects, page by page, and the resourceVersion to watch from."""
        items: _Objects = []
        query = {"limit": str(_PAGE), "labelSelector": label_selector}
        while True:
            page = _object(self.send("GET", path_of(resource, namespace), query=query))
            kind = str(page.get("kind", "")).removesuffix("List")
            typed = {"apiVersion": resource.api_version, "kind": kind}
            items.extend({**typed, **item} for item in page.get("items") or ())
            meta = page.get("metadata") or {}
            if not meta.get("continue"):
                return items, str(meta.get("resourceVersion") or "")
            query = {**query, "continue": meta["continue"]}

    def create(self, resource: Resource, obj: Raw) -> Raw:
        """See Client."""
        path = path_of(resource, obj["metadata"].get("namespace", ""))
        return _object(self._write("POST", path, obj, JSON))

    def apply(self, resource: Resource, obj: Raw, *, field_manager: str = FIELD_MANAGER) -> Raw:
        """See Client."""
        meta = obj["metadata"]
        path = path_of(resource, meta.get("namespace", ""), meta["name"])
        query = {"force": "true", "fieldManager": field_manager}
        return _object(self._write("PATCH", path, obj, APPLY_PATCH, query))

    def patch(
        self,
        resource: Resource,
        name: str,
        namespace: str,
        patch: Sequence[Raw] | Raw,
        *,
        subresource: str = "",
    ) -> Raw:
        """See Client."""
        path = path_of(resource, namespace, name, subresource)
        content_type = MERGE_PATCH if isinstance(patch, dict) else JSON_PATCH
        return _object(self._write("PATCH", path, patch, content_type))

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        uid: str | None = None,
        propagation: Propagation = "Background",
    ) -> None:
        """See Client."""
        options: Raw = {"propagationPolicy": propagation}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        self._write("DELETE", path_of(resource, namespace, name), options, JSON, {})

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout: float = _READ_TIMEOUT,
    ) -> bytes:
        """The body of the answer. Raises ApiError; never repeats the request."""
        response = self._request(method, path, query, body, content_type, timeout, stream=False)
        if response.status >= 300:
            raise _error(response.status, response.data, response.headers)
        return response.data

    @contextmanager
    def stream(
        self, path: str, query: Mapping[str, str], *, read_timeout: float
    ) -> Iterator[Iterator[bytes]]:
        """The lines of an answer that does not end, within a `with` block.

        Raises ApiError, also while the lines are read: Unavailable where the connection broke,
        or nothing came for `read_timeout` seconds.
        """
        response = self._request("GET", path, query, None, JSON, read_timeout, stream=True)
        try:
            if response.status >= 300:
                raise _error(response.status, response.read(), response.headers)
            yield _lines(response, path)
        finally:
            response.close()

    def _write(
        self,
        method: str,
        path: str,
        body: Sequence[Raw] | Raw,
        content_type: str,
        query: Mapping[str, str] | None = None,
    ) -> bytes:
        self._gate()
        encoded = json.dumps(body, separators=(",", ":")).encode()
        managed = {"fieldManager": FIELD_MANAGER} if query is None else query
        return self.send(method, path, query=managed, body=encoded, content_type=content_type)

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: bytes | None,
        content_type: str,
        timeout: float,
        *,
        stream: bool,
    ) -> BaseHTTPResponse:
        url = f"{self._base}{path}"
        if query:
            url = f"{url}?{urlencode({k: v for k, v in query.items() if v})}"
        code = "<error>"
        try:
            response = self._pool.urlopen(
                method,
                url,
                body=body,
                headers=self._headers(content_type),
                timeout=urllib3.Timeout(connect=_CONNECT_TIMEOUT, read=timeout),
                retries=False,
                redirect=False,
                preload_content=not stream,
            )
            code = str(response.status)
            return response
        except (HTTPError, OSError) as error:
            raise Unavailable(0, f"{method} {path}: {_reason(error)}") from error
        finally:
            self._observe(method, self._host, code)

    def _headers(self, content_type: str) -> dict[str, str]:
        headers = {
            "Accept": JSON,
            "Content-Type": content_type,
            "User-Agent": "gardener-actuator",
        }
        if self._configuration.api_key or self._configuration.refresh_api_key_hook:
            with self._credentials:
                token = self._configuration.get_api_key_with_prefix(
                    "BearerToken", alias="authorization"
                )
            if token:
                headers["Authorization"] = token
        return headers


def _open() -> None:
    """The gate of a client that nobody fences."""


def _object(body: bytes) -> Raw:
    try:
        obj: Raw = json.loads(body)
    except ValueError as error:
        raise Unavailable(0, f"the API server's answer is no JSON: {error}") from error
    return obj


def _error(status: int, body: bytes, headers: Mapping[str, str]) -> ApiError:
    try:
        parsed: Any = json.loads(body)
    except ValueError:
        parsed = {"message": body[:200].decode("utf-8", "replace").strip()}
    after = headers.get("Retry-After", "")
    return api_error(
        status,
        parsed if isinstance(parsed, dict) else {},
        retry_after=float(after) if after.isdecimal() else None,
    )


def _lines(response: BaseHTTPResponse, path: str) -> Iterator[bytes]:
    """Complete lines as they arrive, however they are cut into chunks."""
    pending = b""
    try:
        for chunk in response.stream(amt=None, decode_content=True):
            *lines, pending = (pending + chunk).split(b"\n")
            yield from (line for line in lines if line)
    except (HTTPError, OSError) as error:
        raise Unavailable(0, f"GET {path}: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    """What went wrong with a connection, without urllib3's object addresses."""
    text = _one_line(error)
    return f"{type(error).__name__}: {text.partition('>: ')[2] or text}"
