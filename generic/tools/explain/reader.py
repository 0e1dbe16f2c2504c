"""Reads from the API server, continues after refused reads, and collects these."""

from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import TypeVar

from actuator.cluster import Cluster, Verdict
from actuator.errors import ApiError, Forbidden, NotFound
from actuator.interface import SECRETS, Client, Resource
from actuator.meta import ClusterNeed, Kind, Raw
from generic.kube.clusters import CLUSTERS, NAMESPACES, Clusters
from generic.kube.headers import Request, cluster_header
from generic.kube.store import Store
from generic.tools.explain.facts import FORBIDDEN, Reference, Unread

T = TypeVar("T")
_NO_SERVER = frozenset({0, 401})
"""Statuses after which other requests would fail too: no response, no credentials."""


class Reader:
    """A read-only client. `unread` collects the requests that the API server refused."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.unread: list[Unread] = []

    def get(self, resource: Resource, name: str, namespace: str = "") -> Raw | None:
        """Return the object, None if refused. Raises NotFound, or ApiError without a server."""
        where = f"{namespace}/{name}" if namespace else name
        get = partial(self._client.get, resource, name, namespace)
        return self._read("get", resource, where, get)

    def list(
        self, resource: Resource, namespace: str = "", *, label_selector: str = ""
    ) -> list[Raw]:
        """Return the objects, none if the API server refuses.

        Raises NotFound for an unknown type, or ApiError without a server.
        """
        where = f"in namespace {namespace}" if namespace else ""
        get = partial(self._client.list, resource, namespace, label_selector=label_selector)
        return self._read("list", resource, where, get) or []

    def _read(self, verb: str, resource: Resource, where: str, get: Callable[[], T]) -> T | None:
        try:
            return get()
        except ApiError as error:
            if isinstance(error, NotFound) or error.status in _NO_SERVER:
                raise
            reason = FORBIDDEN if isinstance(error, Forbidden) else error.message
        unread = Unread(verb=verb, resource=str(resource), where=where, reason=reason)
        if unread not in self.unread:
            self.unread.append(unread)
        return None


class Surroundings:
    """The common data of a namespace's objects: Namespace, Cluster, Secrets; read once.

    `namespace` is "" for cluster-scoped objects.
    """

    def __init__(self, client: Client, reader: Reader, namespace: str) -> None:
        store = Store(CLUSTERS, cluster_header)
        self._readable = True
        with suppress(NotFound):  # counts as read
            if namespace and (found := reader.get(CLUSTERS, namespace)):
                store.observe(found)
            elif namespace:
                self._readable = False
        self._clusters = Clusters(store, client)
        self.cluster: Cluster = self._clusters.cluster(namespace)
        """Empty if it does not exist or cannot be read."""
        self.namespace: Raw | None = None
        """None without one, or if it does not exist or cannot be read."""
        self.blockers: tuple[str, ...] = ()
        """What blocks every object in the namespace."""
        try:
            self.namespace = reader.get(NAMESPACES, namespace) if namespace else None
        except NotFound:
            self.blockers = (f"namespace {namespace} not found: create it again",)
        self._reader = reader
        self._namespace = namespace
        self._exists = cache(self._read_secret)

    def verdict(self, kind: Kind) -> Verdict | None:
        """Return the Cluster's verdict for objects of `kind`; None if it could not be read."""
        if not self._readable and kind.cluster is not ClusterNeed.NEVER:
            return None
        return self._clusters.resolve(kind, self._namespace)

    def reference(self, secret: Request | None) -> Reference | None:
        """Return whether the Secret exists; its contents are discarded at once."""
        if secret is None:
            return None
        exists = self._exists(secret)
        return Reference(namespace=secret.namespace, name=secret.name, exists=exists)

    def _read_secret(self, secret: Request) -> bool | None:
        try:
            found = self._reader.get(SECRETS, secret.name, secret.namespace)
        except NotFound:
            return False
        return None if found is None else True
