"""EventRecorder: reports what happened to an object as Kubernetes events.

Both methods are best effort: `record` merges repeats for a while; `record_once` writes one event
per object and reason, also across restarts. No decision may depend on an event.

Events are core v1 events with counts, which `kubectl describe` shows. An event lives in the
namespace of its object and is deleted with it. The API server rejects events for a terminating
namespace: those are written into `default`, with the Namespace as their object.
"""

import hashlib
import logging
import secrets
import threading
from collections import OrderedDict

from msgspec import Struct

from actuator.errors import AlreadyExists, ApiError, Forbidden, NotFound
from actuator.interface import Client, Clock, Resource
from actuator.meta import Raw, format_time

logger = logging.getLogger(__name__)

EVENTS = Resource("v1", "events")
MERGE_SECONDS = 600.0
"""Repeats within this time after the first increase its count, later ones create a new event."""
REMEMBERED = 4096
"""Maximum number of events that repeats are merged into; the oldest are evicted first."""
REASON_LENGTH = 128  # characters, limit of the API server
MESSAGE_BYTES = 1024  # limit of the API server


class About(Struct, frozen=True, kw_only=True):
    """The object an event is about; `namespace` is "" for cluster-scoped ones."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}".replace(" /", " ")


class _Recorded(Struct):
    """An event whose repeats are merged into it."""

    namespace: str
    name: str
    since: float
    count: int = 0


class EventRecorder:
    """Writes events as `component`; safe to use from any thread."""

    def __init__(self, client: Client, component: str, clock: Clock) -> None:
        self._client = client
        self._component = component
        self._clock = clock
        self._lock = threading.Lock()
        self._recent: OrderedDict[bytes, _Recorded] = OrderedDict()

    def record(self, about: About, reason: str, message: str, *, warning: bool = False) -> None:
        """Write an event if the API server accepts it; never raises. Repeats increase the count."""
        try:
            reason, message = str.__str__(reason)[:REASON_LENGTH], str.__str__(message)
            recorded, count = self._remember(about, reason, message)
            if count == 1 or not self._count_up(recorded, count):
                event = self._event(about, recorded.name, reason, message, warning=warning)
                recorded.namespace = self._create(about, event)
                recorded.count = 1
        except Exception as error:  # an event that fails must not hide its cause
            _could_not_write(about, reason, error)

    def record_once(
        self, about: About, reason: str, message: str, *, warning: bool = False
    ) -> None:
        """Write one event per object and reason, restarts included; never raises."""
        try:
            reason, message = str.__str__(reason)[:REASON_LENGTH], str.__str__(message)
            digest = hashlib.sha256(f"{about.uid}\n{reason}".encode()).hexdigest()[:20]
            event = self._event(about, _name(about, digest), reason, message, warning=warning)
            self._create(about, event)
        except Exception as error:  # an event that fails must not hide its cause
            _could_not_write(about, reason, error)

    def _remember(self, about: About, reason: str, message: str) -> tuple[_Recorded, int]:
        """Return the event to create or to count up, and its new count."""
        texts = f"{about.uid}\n{reason}\n{message}".encode(errors="replace")  # of any length
        key, now = hashlib.blake2b(texts, digest_size=16).digest(), self._clock.monotonic()
        with self._lock:
            recorded = self._recent.get(key)
            if recorded is None or now >= recorded.since + MERGE_SECONDS:
                name = _name(about, secrets.token_hex(8))
                recorded = self._recent[key] = _Recorded(_namespace(about), name, now)
                self._recent.move_to_end(key)
            if len(self._recent) > REMEMBERED:
                self._recent.popitem(last=False)
            recorded.count += 1
            return recorded, recorded.count

    def _count_up(self, recorded: _Recorded, count: int) -> bool:
        """Increase the count of the event; return whether the event exists."""
        patch = {"count": count, "lastTimestamp": format_time(self._clock.now())}
        try:
            self._client.patch(EVENTS, recorded.name, recorded.namespace, patch)
        except NotFound:  # it expired, or was never accepted
            return False
        return True

    def _create(self, about: About, event: Raw) -> str:
        """Write a new event and return its namespace. Raises ApiError."""
        try:
            self._put(event)
        except (Forbidden, NotFound) as error:
            if not about.namespace or not _namespace_ends(error):
                raise
            event = _about_namespace(about, event)
            self._put(event)
        return str(event["metadata"]["namespace"])

    def _put(self, event: Raw) -> None:
        try:
            self._client.create(EVENTS, event)
        except AlreadyExists:  # an earlier attempt whose answer was lost
            pass

    def _event(self, about: About, name: str, reason: str, message: str, *, warning: bool) -> Raw:
        now = format_time(self._clock.now())
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": _namespace(about)},
            "involvedObject": {
                "apiVersion": about.api_version,
                "kind": about.kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.uid,
                "resourceVersion": about.resource_version,
            },
            "type": "Warning" if warning else "Normal",
            "reason": reason,
            "message": _shortened(message),
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }


def _could_not_write(about: About, reason: str, error: Exception) -> None:
    fields = {"object": str(about), "reason": reason, "error": str(error)}
    logger.warning("event write failed", extra={"fields": fields})


def _about_namespace(about: About, event: Raw) -> Raw:
    """Return the same event for `default`, about the terminating namespace."""
    return {
        **event,
        "metadata": {**event["metadata"], "namespace": "default"},
        "involvedObject": {"apiVersion": "v1", "kind": "Namespace", "name": about.namespace},
        "message": _shortened(f"{about}: {event['message']}"),
    }


def _namespace_ends(error: ApiError) -> bool:
    """Whether the namespace caused the error: it is terminating or deleted."""
    return isinstance(error, NotFound) or "NamespaceTerminating" in error.causes


def _namespace(about: About) -> str:
    return about.namespace or "default"


def _name(about: About, suffix: str) -> str:
    """Return a name of at most 253 characters, without a part that ends in a dash or a dot."""
    return f"{about.name[: 252 - len(suffix)].rstrip('-.')}.{suffix}"


def _shortened(message: str) -> str:
    raw = message.encode(errors="replace")
    if len(raw) <= MESSAGE_BYTES:
        return raw.decode()
    return raw[: MESSAGE_BYTES - 3].decode(errors="ignore") + "…"
