"""Mappers: find our objects that an event about another resource concerns. Pure functions.

A Mapper gets the event and the objects it may name, `KnownObjects`, and reads headers only. It may
name objects that do not exist: the controller looks each request up. The watched resources are
declared in `watch`.
"""

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from actuator.meta import Kind
from generic.kube.headers import Event, Header, Request
from generic.kube.store import Store

_SHOOT_UID = "shoot.gardener.cloud/uid"


class KnownObjects(Struct, frozen=True):
    """The objects of one kind, from the store."""

    kind: Kind
    store: Store[Header]

    def requests(self, namespace: str) -> list[Request]:
        """Return the requests of the objects in a namespace."""
        return self.store.requests(namespace)

    def headers(self) -> list[tuple[Request, Header]]:
        """Return each object's request and header."""
        return self.store.headers()


Mapper = Callable[[Event[Header], KnownObjects], Iterable[Request]]


def in_clusters_namespace(event: Event[Header], known: KnownObjects) -> Iterable[Request]:
    """Map a Cluster to all objects of the namespace with its name."""
    return known.requests(event.request.name)


def by_secret_reference(event: Event[Header], known: KnownObjects) -> Iterable[Request]:
    """Map a Secret to the objects that reference it, by name and namespace."""
    return [request for request, header in known.headers() if header.secret == event.request]


def of_shoot_namespace(event: Event[Header], _known: KnownObjects) -> Iterable[Request]:
    """Map a shoot's Namespace to its BackupEntry, and to that of its source seed.

    A BackupEntry is named `<technical ID>--<uid>`, with the prefix `source-` during a migration
    (Gardener documentation, "BackupEntry"); the Namespace is named after the technical ID and
    has the uid in an annotation.
    """
    for state in _states(event):
        uid = state.annotations.get(_SHOOT_UID)
        if uid:
            name = f"{event.request.name}--{uid}"
            yield from (Request("", name), Request("", f"source-{name}"))


def by_controller_owner(event: Event[Header], known: KnownObjects) -> Iterable[Request]:
    """Map a child to the object of the target's kind that is its controller."""
    return _owners(event, known, controllers_only=True)


def by_owner(event: Event[Header], known: KnownObjects) -> Iterable[Request]:
    """Map a child to all objects of the target's kind that own it, as controller or not."""
    return _owners(event, known, controllers_only=False)


def _owners(
    event: Event[Header], known: KnownObjects, *, controllers_only: bool
) -> Iterator[Request]:
    """Yield existing owners in the child's namespace, or cluster-scoped ones.

    Kubernetes allows no other (Kubernetes documentation, "Owners and Dependents").
    """
    kind = known.kind
    for owner in (owner for state in _states(event) for owner in state.owners):
        is_wanted = owner.is_controller or not controllers_only
        if is_wanted and (owner.group, owner.kind) == (kind.group, kind.name):
            request = Request(event.request.namespace if kind.namespaced else "", owner.name)
            entry = known.store.get(request)
            if entry is not None and entry.header.uid == owner.uid:
                yield request


def by_label(label: str) -> Mapper:
    """Map to the object in the same namespace that a label names, as Machines name their Worker."""

    def mapper(event: Event[Header], _known: KnownObjects) -> Iterator[Request]:
        for state in _states(event):
            name = state.labels.get(label)
            if name:
                yield Request(event.request.namespace, name)

    return mapper


def _states(event: Event[Header]) -> Iterator[Header]:
    """Yield the states before and after: an object no longer named is affected as well."""
    yield from (state for state in (event.old, event.new) if state is not None)
