"""The evidence log of a drill: each version of its objects and each event, from watches.

What a report tells of an object derives from it (`history`). It only reads. Where the API server
has no longer each version since the last one seen, a list shows the newest of them.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial

import attrs

from actuator.errors import ApiError, Gone, NotFound
from actuator.interface import Resource, resource_of
from actuator.meta import Kind, Raw
from generic.kube.client import HttpClient
from generic.kube.clusters import CLUSTERS
from generic.testing.watching import BOOKMARK, DELETED, following, newest, short_stream

CLUSTER = "Cluster"
EVENT = "Event"
_EVENTS = Resource("v1", "events")
_PAUSE = 0.2
_MAX_SECONDS = 30.0
_HEAD = ("name", "namespace", "uid", "resourceVersion", "generation", "labels", "annotations")
_META = frozenset({*_HEAD, "finalizers", "deletionTimestamp", "ownerReferences"})


@attrs.frozen(kw_only=True)
class LoggedVersion:
    """One version of an object."""

    at: float
    """Seconds since the drill began, when the log received it."""
    kind: str
    obj: Raw = attrs.field(repr=False)
    """Metadata and status; of a Cluster the shoot; of an event everything."""
    gone: bool = False

    @property
    def number(self) -> int:
        """The place of the version in the order of all writes."""
        return int(self.obj["metadata"]["resourceVersion"])


class DrillLog:
    """Receives the versions of a drill's objects; `on_entry` is called for each, once."""

    def __init__(
        self,
        client: HttpClient,
        kinds: Mapping[str, Kind],
        selector: str,
        on_entry: Callable[[LoggedVersion], None],
    ) -> None:
        self._client = client
        self._on_entry = on_entry
        self._watched = {name: (resource_of(kind), selector) for name, kind in kinds.items()}
        self._watched |= {CLUSTER: (CLUSTERS, selector), EVENT: (_EVENTS, "")}
        self._lock = threading.Lock()
        self._seen: set[tuple[str, str, bool]] = set()
        self._alive: dict[str, dict[str, Raw]] = {kind: {} for kind in self._watched}
        self._entries: list[LoggedVersion] = []
        self._start = time.monotonic()
        self.gaps: list[str] = []
        """The reasons why versions may be missing."""

    def now(self) -> float:
        """Return the seconds since the drill began."""
        return time.monotonic() - self._start

    def entries(self) -> list[LoggedVersion]:
        """Return the versions in the order of their writes, then the events.

        Events may be in another etcd, so that their numbers tell nothing.
        """
        with self._lock:
            return sorted(self._entries, key=lambda e: (e.kind == EVENT, e.number))

    def take(self, kind: str, obj: Raw, *, gone: bool = False) -> None:
        """Add a version, unless the log has it already. Safe to call from any thread.

        A version that nothing can be derived from, as of a Cluster without a Shoot, is a gap.
        """
        meta = obj["metadata"]
        key = (meta["uid"], meta["resourceVersion"], gone)
        with self._lock:
            if key in self._seen:
                return
            self._seen.add(key)
            if gone:
                self._alive[kind].pop(meta["uid"], None)
            else:
                self._alive[kind][meta["uid"]] = obj
            try:
                entry = LoggedVersion(at=self.now(), kind=kind, obj=_reduced(kind, obj), gone=gone)
                self._on_entry(entry)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                self.gaps.append(f"{kind} {meta['name']} cannot be read: {error!r}")
            else:
                self._entries.append(entry)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Follow everything from now on; nothing is missing once the context is left.

        A kind without a CRD has no objects.
        """
        self._start = time.monotonic()
        versions: dict[str, str] = {}
        for kind, (resource, selector) in self._watched.items():
            with suppress(NotFound):
                versions[kind] = newest(self._client, resource, label_selector=selector)
        with following(partial(self._follow, *of) for of in versions.items()):
            yield

    def _follow(self, kind: str, version: str, stop: threading.Event) -> None:
        ended: float | None = None
        while True:
            if stop.is_set():
                ended = ended or time.monotonic()
            try:
                version = self._list(kind) if not version else self._stream(kind, version)
                if ended:
                    return
            except Gone:
                version = ""
            except (ApiError, ValueError) as error:
                if ended and time.monotonic() - ended > _MAX_SECONDS:
                    self.gaps.append(f"{kind}: {error}")
                    return
                time.sleep(_PAUSE)

    def _stream(self, kind: str, version: str) -> str:
        resource, selector = self._watched[kind]
        for type, obj in short_stream(self._client, resource, version, label_selector=selector):
            version = str(obj["metadata"]["resourceVersion"])
            if type != BOOKMARK:
                self.take(kind, obj, gone=type == DELETED)
        return version

    def _list(self, kind: str) -> str:
        """Read the newest versions; an object that is not among them is gone."""
        resource, selector = self._watched[kind]
        before = dict(self._alive[kind])
        found = set()
        for objects, version in self._client.pages(resource, label_selector=selector):  # noqa: B007
            for obj in objects:
                found.add(obj["metadata"]["uid"])
                self.take(kind, obj)
        for uid in before.keys() - found:
            self.take(kind, before[uid], gone=True)
        return version


def _reduced(kind: str, obj: Raw) -> Raw:
    """Return the parts of an object that evidence derives from."""
    if kind == EVENT:
        return obj
    meta = {key: value for key, value in obj["metadata"].items() if key in _META}
    reduced: Raw = {"metadata": meta}
    if kind == CLUSTER:
        shoot = obj["spec"]["shoot"]
        return {**reduced, "spec": {"shoot": {"metadata": shoot.get("metadata") or {}}}}
    status = obj.get("status") or {}
    kept = {key: value for key, value in status.items() if key not in ("providerStatus", "state")}
    return {**reduced, "status": kept}
