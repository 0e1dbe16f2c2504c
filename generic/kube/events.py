"""EventRecorder: reports what happened to an object as Kubernetes events.

This is best effort: repeats are merged for a while, and no decision may depend on an event.

Events are core v1 events with counts, which `kubectl describe` shows. An event lives in the
namespace of its object and is deleted with it. The API server rejects events for a terminating or
missing namespace: those are written into `default`, with the Namespace as their object.
"""

import hashlib
import logging
import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress

from msgspec import Struct

from actuator.errors import AlreadyExists, ApiError, NotFound
from actuator.interface import Client, Clock, Resource
from actuator.meta import Raw, format_time
from generic.kube.errorinfo import shorten

logger = logging.getLogger(__name__)

EVENTS = Resource("v1", "events")
MERGE_SECONDS = 600.0
"""Repeats within this time after the first increase its count, later ones create a new event."""
REMEMBERED = 4096
"""Maximum number of events that repeats are merged into; the oldest are evicted first."""
About = Mapping[str, str]
"""The object of an event, as its involvedObject: apiVersion, kind, namespace, name, uid."""
REASON_LENGTH = 128  # characters, limit of the API server
MESSAGE_BYTES = 1024  # limit of the API server


class _SentEvent(Struct):
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
        self._recent: OrderedDict[bytes, _SentEvent] = OrderedDict()

    def record(
        self,
        about: About,
        reason: str,
        message: str,
        *,
        warning: bool = False,
        once: bool = False,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Write an event if the API server accepts it; never raises. Repeats increase the count.

        With `once`, there is one event for the object and the reason, restarts included.
        """
        try:
            reason = str.__str__(reason)[:REASON_LENGTH]
            message = str.__str__(message)
            event = self._event(about, reason, message, warning=warning)
            event["metadata"]["annotations"] = {**(annotations or {})}
            if once:
                digest = hashlib.sha256(f"{about['uid']}\n{reason}".encode()).hexdigest()[:20]
                event["metadata"]["name"] = _name(about, digest)
                self._create(about, event)
                return
            recorded, count = self._remember(about, reason, message)
            if count == 1 or not self._count_up(recorded, count):
                event["metadata"]["name"] = recorded.name
                recorded.namespace = self._create(about, event)
                recorded.count = 1
        except Exception as error:  # an event that fails must not hide its cause
            fields = {"object": _text(about), "reason": reason, "error": str(error)}
            logger.warning("event write failed", extra={"fields": fields})

    def _remember(self, about: About, reason: str, message: str) -> tuple[_SentEvent, int]:
        """Return the event to create or to count up, and its new count."""
        texts = f"{about['uid']}\n{reason}\n{message}".encode(errors="replace")  # of any length
        key = hashlib.blake2b(texts, digest_size=16).digest()
        now = self._clock.monotonic()
        with self._lock:
            recorded = self._recent.get(key)
            if recorded is None or now >= recorded.since + MERGE_SECONDS:
                name = _name(about, secrets.token_hex(8))
                recorded = self._recent[key] = _SentEvent(_namespace(about), name, now)
                self._recent.move_to_end(key)
            if len(self._recent) > REMEMBERED:
                self._recent.popitem(last=False)
            recorded.count += 1
            return recorded, recorded.count

    def _count_up(self, recorded: _SentEvent, count: int) -> bool:
        """Increase the count of the event; return whether the event exists."""
        patch = {"count": count, "lastTimestamp": format_time(self._clock.now())}
        try:
            self._client.patch(EVENTS, recorded.name, recorded.namespace, patch)
        except ApiError as error:  # it expired, or was never accepted
            if not isinstance(error, NotFound) and not _namespace_ends(error):
                raise
            return False
        return True

    def _create(self, about: About, event: Raw) -> str:
        """Write a new event and return its namespace. Raises ApiError."""
        try:
            self._put(event)
        except ApiError as error:
            if not about["namespace"] or not _namespace_ends(error):
                raise
            event = _about_namespace(about, event)
            self._put(event)
        return str(event["metadata"]["namespace"])

    def _put(self, event: Raw) -> None:
        with suppress(AlreadyExists):  # an earlier attempt whose answer was lost
            self._client.create(EVENTS, event)

    def _event(self, about: About, reason: str, message: str, *, warning: bool) -> Raw:
        now = format_time(self._clock.now())
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"namespace": _namespace(about)},
            "involvedObject": about,
            "type": "Warning" if warning else "Normal",
            "reason": reason,
            "message": shorten(message, MESSAGE_BYTES),
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }


def _about_namespace(about: About, event: Raw) -> Raw:
    """Return the same event for `default`, about the terminating namespace."""
    return {
        **event,
        "metadata": {**event["metadata"], "namespace": "default"},
        "involvedObject": {"apiVersion": "v1", "kind": "Namespace", "name": about["namespace"]},
        "message": shorten(f"{_text(about)}: {event['message']}", MESSAGE_BYTES),
    }


def _namespace_ends(error: ApiError) -> bool:
    """Whether the namespace caused the error: it is terminating or deleted."""
    return error.about.startswith("namespaces/") or "NamespaceTerminating" in error.causes


def _namespace(about: About) -> str:
    return about["namespace"] or "default"


def _text(about: About) -> str:
    return f"{about['kind']} {about['namespace']}/{about['name']}".replace(" /", " ")


def _name(about: About, suffix: str) -> str:
    """Return a name of at most 253 characters, without a part that ends in a dash or a dot."""
    return f"{about['name'][: 252 - len(suffix)].rstrip('-.')}.{suffix}"
