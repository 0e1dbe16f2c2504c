"""Reads from the API server, continues after refused reads, and collects these."""

from actuator.cluster import Cluster, Verdict
from actuator.errors import ApiError, Forbidden, NotFound
from actuator.interface import Client, Resource
from actuator.meta import ClusterNeed, Kind, Raw
from generic.kube.clusters import CLUSTERS, NAMESPACES, Clusters
from generic.kube.headers import ClusterHeader, Request, cluster_header
from generic.kube.store import Store
from generic.tools.explain.facts import FORBIDDEN, Reference, Unread

_SECRETS = Resource("v1", "secrets")
_NO_SERVER = frozenset({0, 401})
"""Statuses after which other requests would fail too: no response, no credentials."""


class Reader:
    """A read-only client. `unread` collects the requests that the API server refused."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.unread: list[Unread] = []

    def get(self, resource: Resource, name: str, namespace: str = "") -> Raw | None:
        """Return the object, None if refused. Raises NotFound, or ApiError without a server."""
        try:
            return self._client.get(resource, name, namespace)
        except NotFound:
            raise
        except ApiError as error:
            where = f"{namespace}/{name}" if namespace else name
            self._note("get", resource, where, error)
            return None

    def list(
        self, resource: Resource, namespace: str = "", *, label_selector: str = ""
    ) -> list[Raw]:
        """Return the objects, none if the API server refuses.

        Raises NotFound for an unknown type, or ApiError without a server.
        """
        try:
            return self._client.list(resource, namespace, label_selector=label_selector)
        except NotFound:
            raise
        except ApiError as error:
            where = f"in namespace {namespace}" if namespace else ""
            self._note("list", resource, where, error)
            return []

    def _note(self, verb: str, resource: Resource, where: str, error: ApiError) -> None:
        if error.status in _NO_SERVER:
            raise error
        reason = FORBIDDEN if isinstance(error, Forbidden) else error.message
        unread = Unread(verb=verb, resource=str(resource), where=where, reason=reason)
        if unread not in self.unread:
            self.unread.append(unread)


class Surroundings:
    """The common data of a namespace's objects: Namespace, Cluster, Secrets; read once.

    `namespace` is "" for cluster-scoped objects.
    """

    def __init__(self, client: Client, reader: Reader, namespace: str) -> None:
        store = Store(CLUSTERS, cluster_header)
        self._readable = True
        if namespace:
            self._readable = _read_cluster(reader, namespace, store)
        self._clusters = Clusters(store, client)
        self.cluster: Cluster = self._clusters.cluster(namespace)
        """Empty if it does not exist or cannot be read."""
        self._reader = reader
        self._namespace = namespace
        self._secrets: dict[Request, bool | None] = {}

    def verdict(self, kind: Kind) -> Verdict | None:
        """Return the Cluster's verdict for objects of `kind`; None if it could not be read."""
        if not self._readable and kind.cluster is not ClusterNeed.NEVER:
            return None
        return self._clusters.resolve(kind, self._namespace)

    def namespace(self) -> Raw | None:
        """Return the Namespace; None if it does not exist or cannot be read."""
        if not self._namespace:
            return None
        try:
            return self._reader.get(NAMESPACES, self._namespace)
        except NotFound:
            return None

    def reference(self, secret: Request | None) -> Reference | None:
        """Return whether the Secret exists; its contents are discarded at once."""
        if secret is None:
            return None
        if secret not in self._secrets:
            self._secrets[secret] = self._exists(secret)
        exists = self._secrets[secret]
        return Reference(namespace=secret.namespace, name=secret.name, exists=exists)

    def _exists(self, secret: Request) -> bool | None:
        try:
            found = self._reader.get(_SECRETS, secret.name, secret.namespace)
        except NotFound:
            return False
        return None if found is None else True


def _read_cluster(reader: Reader, name: str, store: Store[ClusterHeader]) -> bool:
    """Return whether it could be read; NotFound counts as read."""
    try:
        found = reader.get(CLUSTERS, name)
    except NotFound:
        return True
    if found is not None:
        store.observe(found)
    return found is not None
