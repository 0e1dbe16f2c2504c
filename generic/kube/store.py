"""Store: the known objects of one resource, as JSON bytes and a small header each.

Guarantees: an object is never replaced by an older version of itself, except by a new list: after a
restore of etcd, versions are lower, and deleted objects exist again. Our own write is in the store
before its call returns, and its resourceVersion is remembered, so that the watch event it causes
can be told from the events of other clients.

Not here: the content of a header (`headers`), filling the store from the API (`informer`), the
consequences of an Event (`predicates`).
"""

import math
import threading
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from msgspec import Struct

from actuator.codec import CUT
from actuator.interface import Resource
from actuator.meta import Raw
from generic.kube.documents import Document
from generic.kube.headers import Event, EventType, Header, Request, as_dict, as_unreadable

_CUT = CUT.encode()
_FASTEST = 1
_DEAD_SECONDS = 600.0
H = TypeVar("H", bound=Header)


class StoredObject(Struct, Generic[H], frozen=True, gc=False):
    """One object: its header, and its JSON without managedFields."""

    header: H
    stored: bytes
    """Empty if the header is enough."""
    is_compressed: bool = False

    @property
    def raw(self) -> bytes:
        """The JSON."""
        return zlib.decompress(self.stored) if self.is_compressed else self.stored


def _gone(
    request: Request, last: StoredObject[H], *, own: bool = False, relisted: bool = False
) -> Event[H]:
    return Event(EventType.DELETED, request, last.header, None, own, False, relisted, last.raw)


class _Dead(Struct, Generic[H], frozen=True):
    """An object that is known to be deleted before the watch reports it."""

    last: StoredObject[H]
    version: int
    """The earliest version at which it can have been deleted."""
    since: float

    @property
    def uid(self) -> str:
        return self.last.header.uid

    def is_over(self, list_version: int) -> bool:
        """Whether no older event of the object can arrive any more."""
        return self.version <= list_version or time.monotonic() - self.since > _DEAD_SECONDS


class Store(Generic[H]):
    """The objects of one resource, safe to use from any thread."""

    def __init__(
        self,
        resource: Resource,
        make_header: Callable[[Raw], H],
        *,
        keeps: Callable[[Request, H], bool] = lambda _request, _header: True,
        compressed: bool = False,
    ) -> None:
        """Create an empty store.

        Keep the bytes of objects that `keeps` accepts; of others the header is enough. With
        `compressed`, compress them: for large objects that are rarely read.
        """
        self.resource = resource
        self._make_header = make_header
        self._keeps = keeps
        self._compressed = compressed
        self._lock = threading.Lock()
        self._entries: dict[Request, StoredObject[H]] = {}
        self._by_namespace: defaultdict[str, set[Request]] = defaultdict(set)
        self._own: dict[Request, set[int]] = {}  # the versions that we wrote
        self._dead: dict[Request, _Dead[H]] = {}
        self._list_began = -math.inf

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, request: Request) -> StoredObject[H] | None:
        """Return the entry, or None."""
        return self._entries.get(request)

    def requests(self, namespace: str) -> list[Request]:
        """Return the keys of one namespace."""
        with self._lock:
            return list(self._by_namespace.get(namespace, ()))

    def headers(self) -> list[tuple[Request, H]]:
        """Return all keys with their headers."""
        with self._lock:
            return [(request, entry.header) for request, entry in self._entries.items()]

    def is_own(self, request: Request, resource_version: int) -> bool:
        """Whether we wrote that version of the object."""
        with self._lock:
            return resource_version in self._own.get(request, ())

    def begin_list(self) -> None:
        """Begin a list of the latest state: it is newer than every write and deletion so far.

        Kubernetes documentation, "API concepts", resourceVersion unset. If it lacks one of them,
        etcd was restored to an earlier state.
        """
        with self._lock:
            self._own.clear()
            self._list_began = time.monotonic()

    def observe(self, obj: Raw | Document, *, relisted: bool = False) -> Event[H] | None:
        """Store an object from a watch or a list; return None if nothing changed."""
        document = Document.of(obj)
        request = document.request
        uid = document.uid
        version = document.version
        with self._lock:
            old = self._entries.get(request)
            own = self._take_own(request, version)
            if self._is_dead(request, uid):
                return None  # the watch lags: the object is known to be deleted
            same = old if old is not None and old.header.uid == uid else None
            if same is not None and not relisted and same.header.resource_version == version:
                return None
            if relisted and old is not None and self._wrote_since(request, old, version):
                return None  # the list is older than our write; the watch continues from there
            entry = self._entry(document)  # most events of our own writes end before
            if relisted and entry == old:  # a restored etcd uses versions again
                return None
            if old is None or relisted or old.header.resource_version < version:
                self._put(request, entry)
        if same is None:  # another object of the same name
            return Event(EventType.ADDED, request, None, entry.header, own, False, relisted)
        late = same.header.resource_version > version and not relisted
        return Event(EventType.MODIFIED, request, same.header, entry.header, own, late, relisted)

    def observe_deleted(self, obj: Raw | Document) -> Event[H] | None:
        """Process a DELETED watch event; return None if that object was not in the store.

        A deletion that we already knew is returned too, as our own: other objects may wait for it.
        """
        document = Document.of(obj)
        request = document.request
        uid = document.uid
        with self._lock:
            if self._is_dead(request, uid):
                return _gone(request, self._dead.pop(request).last, own=True)
            old = self._entries.get(request)
            if old is None or (uid and old.header.uid != uid):
                return None
            self._drop(request)
        return _gone(request, old)

    def prune(self, listed: Iterable[Request], list_version: int) -> list[Event[H]]:
        """Remove objects missing from a complete list: no watch reported their deletion.

        Also returns known deletions that no watch will report any more.
        """
        kept = set(listed)
        events: list[Event[H]] = []
        with self._lock:
            for request, dead in list(self._dead.items()):
                here = self._entries.get(request)
                is_older = here is None and request in kept  # than the deletion: the list has it
                is_over = dead.is_over(list_version) and not is_older
                if is_over or dead.since < self._list_began:
                    del self._dead[request]
                    if here is None or here.header.uid != dead.uid:
                        events.append(_gone(request, dead.last, own=True))
            for request, entry in list(self._entries.items()):
                if request not in kept and not self._wrote_since(request, entry, list_version):
                    self._drop(request)
                    events.append(_gone(request, entry, relisted=True))
        return events

    def written(self, obj: Raw) -> tuple[StoredObject[H], Event[H]]:
        """Store the answer to our own write, and remember its resourceVersion."""
        document = Document.of(obj)
        request = document.request
        entry = self._entry(document)
        version = entry.header.resource_version
        meta = as_dict(obj.get("metadata"))
        gone = meta.get("deletionTimestamp") is not None and not meta.get("finalizers")
        with self._lock:
            old = self._entries.get(request)
            if not gone:  # a deleted object gets no watch event that could be ours
                self._own.setdefault(request, set()).add(version)
            same = old is not None and old.header.uid == entry.header.uid
            if gone and same:
                self._bury(request, entry, version)
            elif old is not None and old.header.resource_version < version:
                self._put(request, entry)
        before = old.header if old is not None and same else None
        return entry, Event(EventType.MODIFIED, request, before, entry.header, True)

    def forget(self, request: Request, uid: str) -> None:
        """Remove the object with that uid: the API server answered that it does not exist."""
        with self._lock:
            old = self._entries.get(request)
            if old is not None and old.header.uid == uid:
                self._bury(request, old, old.header.resource_version + 1)

    def _entry(self, document: Document) -> StoredObject[H]:
        header = self._make_header(document.fields)
        if not self._keeps(document.request, header):
            return StoredObject(header, b"")
        raw = document.encoded()
        if _CUT in raw:
            header = as_unreadable(header)
        if not self._compressed:
            return StoredObject(header, raw)
        return StoredObject(header, zlib.compress(raw, _FASTEST), is_compressed=True)

    def _put(self, request: Request, entry: StoredObject[H]) -> None:
        self._entries[request] = entry
        self._by_namespace[request.namespace].add(request)

    def _bury(self, request: Request, last: StoredObject[H], version: int) -> None:
        """Remove the object, and remember that older events of it may still arrive."""
        self._drop(request)
        self._dead[request] = _Dead(last, version, time.monotonic())

    def _is_dead(self, request: Request, uid: str) -> bool:
        dead = self._dead.get(request)
        if dead is None or dead.uid != uid or dead.since < self._list_began:
            return False
        return not dead.is_over(0)

    def _drop(self, request: Request) -> None:
        self._entries.pop(request, None)
        self._own.pop(request, None)
        keys = self._by_namespace.get(request.namespace)
        if keys is not None:
            keys.discard(request)
            if not keys:
                del self._by_namespace[request.namespace]

    def _take_own(self, request: Request, version: int) -> bool:
        """Whether we wrote `version`; forgets the versions that the watch has passed."""
        own = self._own.get(request)
        if own is None:
            return False
        left = {written for written in own if written >= version}
        if left:
            self._own[request] = left
        else:
            del self._own[request]
        return version in left

    def _wrote_since(self, request: Request, entry: StoredObject[H], version: int) -> bool:
        """Whether the store has a write of ours since the list began that is newer than it."""
        newest = entry.header.resource_version
        return newest > version and newest in self._own.get(request, ())
