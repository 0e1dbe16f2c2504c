"""HttpClient: Kubernetes objects over the requests of a `Transport`.

The official package's object calls are not used: they cost more CPU and have no timeout by default.
This client never repeats a request and follows no redirect: the work queue backs off instead.
Timeouts: 5 s to connect, 30 s between two pieces of the answer. A tenant's server has 30 s for all
requests of one operation, pages and lists of resources included, and the memory that `tenants`
allows; it cannot be watched.

Not here: connections (`transport`), addresses, TLS and credentials (`kubeconfig`), watching
(`informer`).
"""

import builtins
import logging
import re
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from functools import lru_cache
from itertools import chain, count, islice
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any, overload
from urllib.parse import quote, unquote, urlencode

from actuator.codec import read_json
from actuator.errors import ApiError, Invalid, NotFound, NotServed, Unavailable, api_error
from actuator.interface import Client, Propagation, Resource
from actuator.meta import Raw
from generic.kube import tenants
from generic.kube.access import Access, find_access
from generic.kube.documents import DecodedObject
from generic.kube.encoding import escaped, go_json
from generic.kube.kubeconfig import InlineKubeconfig
from generic.kube.models import M, read_as, resource_of_class
from generic.kube.transport import Response
from generic.kube.warning_headers import Warnings

logger = logging.getLogger(__name__)

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
FIELD_MANAGER = "actuator"

_TIMEOUT = 30.0
_PAGE = 500
_MAX_TEXT = 8192
"""Maximum length of an error text in characters: API servers repeat the value that they refuse."""
_MAX_NAMES = 512
"""Maximum length of names that are kept as quoted: a tenant's server can return any."""
_NO_ANSWER = "cannot reach the API server, or cannot verify its certificate"
"""The error for a tenant's server: it must not reveal open ports in the seed's network."""
_USER_AGENT = "gardener-actuator"
_OBJECT = re.compile(  # group, plural and name in the path of an object or a collection
    r"/(?:api|apis/([^/]+))/[^/]+(?:/namespaces/[^/]+(?=/(?!(?:status|finalize)$)[^/]))?"
    r"/([^/]+)(?:/([^/]+))?(?:/.*)?"
)
_Objects = list[Raw]


class NoAnswer(Unavailable):
    """The connection failed, or ended; `server` is host:port of a trusted one, else ""."""

    def __init__(self, status: int, message: str, *, server: str = "") -> None:
        super().__init__(status, message)
        self.server = server


class Silence(NoAnswer):
    """The connection is open, but no data arrived within the timeout."""


def connect(
    kubeconfig: Path | InlineKubeconfig | None = None,
    context: str | None = None,
    *,
    server: str = "",
    connections: int = 32,
    observe: Callable[[str, str, str], None] | None = None,
) -> "HttpClient":
    """Return a client for the API server of the configuration.

    Uses the given kubeconfig, else KUBECONFIG, else the pod's service account, else ~/.kube/config;
    `server` is a URL that replaces the configured one. `observe` receives method, host and status
    code of every request. Raises ConfigurationError with one sentence: the file and its problem.
    """
    access = find_access(kubeconfig, context, connections, server)
    is_trusted = not isinstance(kubeconfig, InlineKubeconfig)
    return HttpClient(access, observe=observe, is_trusted=is_trusted)


def path_of(resource: Resource, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Return the URL path of an object or a collection. Raises Invalid without a namespace."""
    if name and resource.namespaced and not namespace:
        raise Invalid(422, f"{resource} {name}: the resource is namespaced; set the namespace")
    quoted = _quoted if len(namespace + name) <= _MAX_NAMES else _quoted.__wrapped__
    root = "/apis" if "/" in resource.api_version else "/api"
    parts = [root, resource.api_version]
    if namespace and resource.namespaced:
        parts += ["namespaces", quoted(namespace)]
    parts.append(resource.plural)
    if name:
        parts.append(quoted(name))
    if subresource:
        parts.append(subresource)
    return "/".join(parts)


def each(
    client: Client, resource: Resource, *, label_selector: str = "", metadata_only: bool = False
) -> Iterator[Raw]:
    """Yield all objects; an HttpClient holds one page of a long list at a time. Raises ApiError."""
    if not isinstance(client, HttpClient):
        yield from client.list(resource, label_selector=label_selector, metadata_only=metadata_only)
        return
    reader = client.metadata_only() if metadata_only else client
    for page, _ in reader.pages(resource, label_selector=label_selector):
        yield from page


class HttpClient:
    """Kubernetes objects over HTTP; see `actuator.Client`. Safe to use from any thread."""

    def __init__(
        self,
        access: Access,
        *,
        observe: Callable[[str, str, str], None] | None = None,
        is_trusted: bool = True,
    ) -> None:
        """`is_trusted` is False for a tenant's server: time and memory of answers are bounded."""
        self._access = access
        self._is_trusted = self._has_end = is_trusted
        self._observe = observe or (lambda _method, _host, _code: None)
        self._warnings = Warnings()
        self._gate: Callable[[], None] = lambda: None
        self._seconds: Callable[[], float] = lambda: inf
        self._accept = JSON
        self._accept_stream = JSON

    def within(self, seconds: float) -> "HttpClient":
        """Return a client on the same connections with a read timeout of at most that."""
        return self.limited(lambda: seconds)

    def limited(self, seconds: Callable[[], float]) -> "HttpClient":
        """Return a client on the same connections whose read timeout is at most `seconds()`.

        It calls this before each request, so `seconds` may also raise.
        """
        return self._with(_seconds=seconds)

    def gated(self, gate: Callable[[], None]) -> "HttpClient":
        """Return a client on the same connections that calls `gate` before every write."""
        return self._with(_gate=gate)

    def metadata_only(self) -> "HttpClient":
        """Return a client on the same connections that lists and watches metadata only."""
        return self._with(_accept=METADATA_LIST, _accept_stream=METADATA)

    def _with(self, **changes: object) -> "HttpClient":
        twin = copy(self)
        vars(twin).update(changes)
        return twin

    @property
    def host(self) -> str:
        """The address of the API server, host:port."""
        return self._access.host

    @overload
    def get(self, resource: Resource, name: str, namespace: str = "") -> Raw: ...
    @overload
    def get(self, resource: type[M], name: str, namespace: str = "") -> M: ...
    def get(self, resource: Any, name: str, namespace: str = "") -> Any:
        """See Client."""
        if not isinstance(resource, Resource):
            return read_as(resource, self.get(resource_of_class(resource), name, namespace))
        return self._object(self.send("GET", path_of(resource, namespace, name)), resource)

    @overload
    def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        metadata_only: bool = False,
    ) -> builtins.list[Raw]: ...
    @overload
    def list(
        self, resource: type[M], namespace: str = "", *, label_selector: str = ""
    ) -> builtins.list[M]: ...
    def list(
        self,
        resource: Any,
        namespace: str = "",
        *,
        label_selector: str = "",
        metadata_only: bool = False,
    ) -> builtins.list[Any]:
        """See Client."""
        if not isinstance(resource, Resource):
            found = self.list(resource_of_class(resource), namespace, label_selector=label_selector)
            return [read_as(resource, obj) for obj in found]
        asked = self.metadata_only() if metadata_only else self
        pages = asked.pages(resource, namespace, label_selector=label_selector)
        return [item for items, _ in pages for item in items]

    def pages(
        self, resource: Resource, namespace: str = "", *, label_selector: str = ""
    ) -> Iterator[tuple[_Objects, str]]:
        """Yield all objects by page, with the resourceVersion of the list to start a watch from.

        Raises Gone if the continue token expired between two pages.
        """
        share = None if self._is_trusted else tenants.Share(f"GET {resource}")
        asked = self._ending()
        query = {"limit": str(tenants.PAGE if share else _PAGE), "labelSelector": label_selector}
        for _ in range(tenants.MOST_PAGES) if share else count():
            body = asked.send("GET", path_of(resource, namespace), query=query)
            page = self._object(body, resource, share)
            kind = found.removesuffix("List") if isinstance(found := page.get("kind"), str) else ""
            typed = {"apiVersion": resource.api_version, "kind": kind}
            meta = page.get("metadata") or {}
            items: _Objects = page.get("items") or []
            if share is not None:
                tenants.check_page(meta, items, f"GET {resource}")
                items = [tenants.TenantObject(share, typed, item) for item in items]
            else:
                items = [{**typed, **item} for item in items]
            yield items, "" if share else str(meta.get("resourceVersion") or "")
            if not meta.get("continue"):
                return
            query = {**query, "continue": meta["continue"]}
        raise tenants.AnswerRefused(
            0, f"GET {resource}: the list has more than {tenants.MOST_PAGES} pages"
        )

    def create(self, resource: Resource, obj: Raw) -> Raw:
        """See Client."""
        path = path_of(resource, obj["metadata"].get("namespace", ""))
        return self._object(self._write("POST", path, obj, JSON), resource)

    def apply(self, resource: Resource, obj: Raw, *, field_manager: str = FIELD_MANAGER) -> Raw:
        """See Client."""
        meta = obj["metadata"]
        path = path_of(resource, meta.get("namespace", ""), meta["name"])
        query = {"force": "true", "fieldManager": field_manager}
        return self._object(self._write("PATCH", path, obj, APPLY_PATCH, query), resource)

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
        if (asked := self._ending()) is not self:
            return asked.patch(resource, name, namespace, patch, subresource=subresource)
        try:
            answer = self._write("PATCH", path, patch, content_type)
        except NotFound as error:
            if not subresource or isinstance(error, NotServed):
                raise
            self.get(resource, name, namespace)  # a CRD without the subresource answers the same
            text = f"{error}: the object exists, but not its subresource {subresource}"
            raise ApiError(404, text, reason=NotServed.__name__) from error
        obj = self._object(answer, resource)
        return DecodedObject(obj, answer) if self._is_trusted else obj

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
    ) -> bytes:
        """Return the body of the answer. Raises ApiError."""
        if (asked := self._ending()) is not self:
            return asked.send(method, path, query=query, body=body, content_type=content_type)
        limit = min(_TIMEOUT, self._seconds())
        response = self._request(method, path, query, body, content_type, limit, stream=False)
        data = self._body(response, method, path)
        if method != "GET" and self._is_trusted and (told := response.headers.get("warning")):
            self._warnings.log(path, told)
        return data

    @contextmanager
    def stream(
        self, path: str, query: Mapping[str, str], *, read_timeout: float
    ) -> Iterator[Iterator[bytes]]:
        """Yield the lines of a streamed answer, within a `with` block.

        Raises ApiError, also while the lines are read: Unavailable if the connection broke,
        Silence if no data arrived for `read_timeout` seconds.
        """
        if not self._is_trusted:
            raise tenants.AnswerRefused(
                0, f"GET {path}: a stream of a tenant's server has no limit of memory"
            )
        response = self._request("GET", path, query, None, JSON, read_timeout, stream=True)
        try:
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
        encoded = _as_go_writes(body, yaml=content_type == APPLY_PATCH)
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
    ) -> Response:
        """Return an answer without an error. Raises ApiError."""
        target = f"{self._access.prefix}{path}"
        if query:
            target = f"{target}?{_query(tuple(query.items()))}"
        authorization = self._access.authorization()
        accept = self._accept_stream if stream else self._accept
        headers = {"Accept": accept, "Content-Type": content_type, "User-Agent": _USER_AGENT}
        if authorization:
            headers["Authorization"] = authorization
        if method != "GET":
            self._gate()  # immediately before the write: an exec plugin may have taken long
        code = "<error>"
        transport = self._access.transport
        try:
            response = transport.request(method, target, headers, body, timeout)
            code = str(response.status)
        except OSError as error:
            if isinstance(error, ssl.SSLError):
                self._access.distrusted(transport)
            broken = _broken(method, path, error, self._access.host)
            if self._is_trusted:
                raise broken from error
            logger.debug("request failed", extra={"fields": {"error": str(broken)}})
            raise Unavailable(0, _NO_ANSWER) from None
        finally:
            self._observe(method, self._access.host, code)
        if response.status == 401:
            self._access.refused(authorization)
        if response.status >= 300:
            raise self._error(method, path, response)
        return response

    def _error(self, method: str, path: str, response: Response) -> ApiError:
        body = self._body(response, method, path)
        error = _error(method, path, response.status, body, response.headers)
        names_an_object = error.about or isinstance(error, NotFound)
        requested = _requested(path)
        if error.status != 404 or names_an_object or not self._lacks(requested):
            return error
        crd = requested.partition("/")[0]
        text = f"{method} {path}: the API server does not serve this resource: needs the CRD {crd}"
        return NotServed(404, text, reason=NotServed.__name__)

    def _lacks(self, requested: str) -> bool:
        """Whether the API server's lists of groups and resources lack it in every version.

        An unavailable aggregated API and a proxy do not count, and core resources always exist.
        """
        plural, _, group = requested.partition("/")[0].partition(".")
        if not group:
            return False
        try:
            groups = self._discovered("/apis")["groups"]
            versions = chain(*(item["versions"] for item in groups if item["name"] == group))
            for version in islice(versions, tenants.MOST_PAGES):
                known = self._discovered(f"/apis/{version['groupVersion']}")
                if plural in [resource["name"] for resource in known["resources"]]:
                    return False
        except (ApiError, LookupError, TypeError):
            return False
        return True

    def _discovered(self, path: str) -> Raw:
        return self._object(self._with(_accept=JSON).send("GET", path), path)

    def _body(self, response: Response, method: str, path: str) -> bytes:
        """Return the body. The transport limits the time, and this the size, of a tenant's."""
        try:
            if self._is_trusted:
                return b"".join(response.chunks())
            return tenants.read_body(response, f"{method} {path}")
        except OSError as error:
            raise _broken(method, path, error) from error
        finally:
            response.close()

    def _object(self, body: bytes, asked: object, share: tenants.Share | None = None) -> Raw:
        """Decode an object; one of a tenant's server counts as used memory while it exists."""
        if self._is_trusted:
            return _decoded(body)
        share = share or tenants.Share(str(asked))
        share.grow_for(body)
        return tenants.TenantObject(share, _decoded(body))

    def _ending(self) -> "HttpClient":
        """Return a client all of whose requests to a tenant's server have the time of one."""
        if self._has_end:
            return self
        end = monotonic() + min(_TIMEOUT, self._seconds())
        return self._with(
            _seconds=lambda: max(0.01, min(self._seconds(), end - monotonic())), _has_end=True
        )


@lru_cache(maxsize=1024)
def _quoted(name: str) -> str:
    return quote(name, safe="")


@lru_cache(maxsize=64)
def _query(parameters: tuple[tuple[str, str], ...]) -> str:
    return urlencode([(name, value) for name, value in parameters if value])


_NOT_IN_YAML = re.compile("[\ufeff\ufffe\uffff\x7f-\x9f]")


def _as_go_writes(body: object, *, yaml: bool) -> bytes:
    """Encode JSON as Go does; with `yaml`, also with the escapes that YAML needs.

    The `test` of a JSON patch compares encoded strings, not their meaning. Raises ValueError or
    TypeError for a value that is not JSON.
    """
    text = go_json(body)
    if yaml:
        text = _NOT_IN_YAML.sub(escaped, text)
    return text.encode(errors="replace")  # a lone surrogate has no encoding in UTF-8


def _decoded(body: bytes) -> Raw:
    try:
        obj = read_json(body)
    except ValueError as error:
        raise Unavailable(0, f"the API server's response is not JSON: {error}") from error
    if not isinstance(obj, dict):
        raise Unavailable(0, "the API server's response is not a JSON object; check for a proxy")
    return obj


def _error(
    method: str, path: str, status: int, body: bytes, headers: Mapping[str, str]
) -> ApiError:
    try:
        parsed: Any = read_json(body)
    except ValueError:
        parsed = {"message": body[:200].decode("utf-8", "replace").strip()}
    answer: Raw = parsed if isinstance(parsed, dict) else {}
    message = answer.get("message") or f"HTTP {status}"
    after = headers.get("retry-after", "")
    return api_error(
        status,
        {**answer, "message": f"{method} {path}: {str(message)[:_MAX_TEXT]}"},
        retry_after=float(after) if after.isdecimal() else None,
        requested=_requested(path),
    )


def _requested(path: str) -> str:
    """Return the requested object, "plural.group/name", or the collection; "" for another path."""
    found = _OBJECT.fullmatch(path)
    group, plural, name = (unquote(part or "") for part in found.groups()) if found else [""] * 3
    resource = f"{plural}.{group}" if group else plural
    return f"{resource}/{name}" if name else resource


def _lines(response: Response, path: str) -> Iterator[bytes]:
    """Yield complete lines as they arrive, independent of the chunks."""
    pending: list[bytes] = []
    try:
        for chunk in response.chunks():
            first, *more = chunk.split(b"\n")
            pending.append(first)
            if more:
                *lines, last = b"".join(pending), *more
                pending = [last]
                yield from filter(None, lines)
    except OSError as error:
        raise _broken("GET", path, error) from error


def _broken(method: str, path: str, error: OSError, server: str = "") -> NoAnswer:
    cls = Silence if isinstance(error, TimeoutError) else NoAnswer
    text = f"{method} {path}: {type(error).__name__}: {' '.join(str(error).split())}"
    return cls(0, text, server=server)
