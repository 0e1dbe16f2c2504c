"""Informer: keeps a Store equal to what the API server has, and tells of every change.

List and watch in one stream (Kubernetes documentation, "API concepts", streaming lists), resumed
from the last resourceVersion seen. What goes wrong on the way is handled here and nowhere else:
410 as an answer and inside the stream, 429 with Retry-After, broken and silently dead streams,
deletions that no watch told of.

Why not the informer and the leader election of the `kubernetes` package: in 37.0.2 its
SharedInformer never syncs custom resources (it calls `items`, a method of dict) and hangs for
ever on a stream that died without a word; its leader election never releases the lease, cannot
be stopped and trusts the wall clock.

Guarantees: after `wait_synced` the store holds everything; `on_event` hears of each change at
least once, deletions while nobody watched included. Errors: none leave `run`; the last one is in
`problem`, and logged once for each time it changes.
"""

from __future__ import annotations

import json
import logging
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from actuator.errors import ApiError, Gone, Invalid, Unavailable, api_error
from actuator.interface import Clock
from actuator.meta import Raw
from generic.client import HttpClient, path_of
from generic.clock import SystemClock
from generic.store import Event, Request, Store, request_of

__all__ = ["Informer"]

logger = logging.getLogger(__name__)

_INITIAL_END = "k8s.io/initial-events-end"
_BACKOFF = (0.2, 30.0)
_SHORT = 1.0


class _Relists(Protocol):
    def relisted(self, kind: str, reason: str) -> None:
        """Counts a list and why it was needed: initial, expired, error."""


class _StreamError(Exception):
    """A line of the watch that cannot be understood."""


class Informer:
    """Fills `store` and calls `on_event`, from the thread that runs `run`."""

    def __init__(
        self,
        client: HttpClient,
        store: Store[Any],
        on_event: Callable[[Event[Any]], None],
        *,
        namespace: str = "",
        label_selector: str = "",
        clock: Clock | None = None,
        metrics: _Relists | None = None,
        idle_timeout: float = 75.0,
    ) -> None:
        self._client = client
        self._store = store
        self._on_event = on_event
        self._path = path_of(store.resource, namespace)
        self._namespace = namespace
        self._selector = label_selector
        self._clock = clock or SystemClock()
        self._metrics = metrics
        self._idle_timeout = idle_timeout
        self._synced = threading.Event()
        self._version = ""  # empty: list first
        self._reason = "initial"
        self._streams_lists = True
        self._failures = 0
        self._alive_at = self._clock.monotonic()
        self.problem: str | None = None
        """Why there is no stream right now."""

    @property
    def name(self) -> str:
        """plural.group of what is watched."""
        return str(self._store.resource)

    def age(self) -> float:
        """Seconds since the API server last gave a sign of life on the stream."""
        return self._clock.monotonic() - self._alive_at

    @property
    def synced(self) -> bool:
        """Whether the store was complete once."""
        return self._synced.is_set()

    def wait_synced(self, timeout: float) -> bool:
        """Waits at most `timeout` seconds for the store to be complete."""
        return self._synced.wait(timeout)

    def run(self, stop: threading.Event) -> None:
        """Watches until `stop` is set."""
        while not stop.is_set():
            try:
                began = self._clock.monotonic()
                self._watch_once(stop)
                if self._clock.monotonic() - began < _SHORT:  # a server that only says goodbye
                    stop.wait(_SHORT * random.uniform(0.5, 1))
            except Gone:
                self._expire()
            except ApiError as error:
                self._back_off(error, stop)
            except Exception as error:  # whatever it is, nobody else keeps the store up to date
                self._expire("error")
                self._back_off(error, stop)

    def _watch_once(self, stop: threading.Event) -> None:
        """One stream, from start to end: the list first where there is no version to go on."""
        if self._version:
            self._follow(self._version, stop)
        elif self._streams_lists:
            try:
                self._follow_from_list(stop)
            except Invalid:  # a server that does not know streaming lists
                self._streams_lists = False
            except ApiError as error:
                if error.status != 400:
                    raise
                self._streams_lists = False
        else:
            self._list()

    def _list(self) -> None:
        """The list in pages, for servers that cannot stream it."""
        self._count_list()
        objects, version = self._client.list_with_version(
            self._store.resource, self._namespace, label_selector=self._selector
        )
        for obj in objects:
            self._tell(self._store.observe(obj, relisted=True))
        self._complete({request_of(obj) for obj in objects}, version)

    def _follow_from_list(self, stop: threading.Event) -> None:
        """Reads the list as a stream of events, then goes on with the changes."""
        query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        listed: set[Request] = set()
        with self._stream(query) as lines:
            self._count_list()
            for kind, obj in self._events(lines, stop):
                if kind != "BOOKMARK":
                    listed.add(request_of(obj))
                    self._tell(self._store.observe(obj, relisted=True))
                elif _INITIAL_END in (obj["metadata"].get("annotations") or {}):
                    self._complete(listed, str(obj["metadata"]["resourceVersion"]))
                    break
            self._take_in(self._events(lines, stop))

    def _follow(self, version: str, stop: threading.Event) -> None:
        with self._stream({"resourceVersion": version}) as lines:
            self._take_in(self._events(lines, stop))

    def _stream(self, query: dict[str, str]) -> Any:
        common = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(random.randint(290, 590)),
            "labelSelector": self._selector,
        }
        return self._client.stream(self._path, {**common, **query}, read_timeout=self._idle_timeout)

    def _events(self, lines: Iterator[bytes], stop: threading.Event) -> Iterator[tuple[str, Raw]]:
        """Understood lines. Raises Gone, another ApiError, or _StreamError."""
        for line in lines:
            if stop.is_set():
                return
            self._alive_at = self._clock.monotonic()
            self._say_problem(None)
            yield _parse(line)

    def _take_in(self, events: Iterator[tuple[str, Raw]]) -> None:
        for kind, obj in events:
            if kind == "DELETED":
                self._tell(self._store.observe_deleted(obj))
            elif kind != "BOOKMARK":
                self._tell(self._store.observe(obj))
            self._version = str(obj["metadata"]["resourceVersion"])
            self._failures = 0

    def _complete(self, listed: set[Request], version: str) -> None:
        for event in self._store.prune(listed, int(version) if version.isdecimal() else 0):
            self._tell(event)
        self._version = version
        self._alive_at = self._clock.monotonic()
        self._reason = "error"
        self._say_problem(None)
        self._synced.set()

    def _tell(self, event: Event[Any] | None) -> None:
        if event is None:
            return
        try:
            self._on_event(event)
        except Exception:
            logger.exception(
                "an event could not be handled",
                extra={"fields": {"resource": self.name, "object": str(event.request)}},
            )

    def _count_list(self) -> None:
        if self._metrics is not None:
            self._metrics.relisted(self._store.resource.plural, self._reason)

    def _expire(self, reason: str = "expired") -> None:
        """The version cannot be watched from any more: list again."""
        self._version = ""
        self._reason = reason if self.synced else "initial"

    def _back_off(self, error: Exception, stop: threading.Event) -> None:
        dropped = isinstance(error, Unavailable) and self._failures == 0 and self.synced
        self._say_problem(str(error), quietly=dropped)
        first, cap = _BACKOFF
        delay = min(first * 2**self._failures, cap) * random.uniform(0.7, 1.3)
        self._failures = min(self._failures + 1, 16)
        after = error.retry_after if isinstance(error, ApiError) else None
        stop.wait(max(delay, after or 0.0))

    def _say_problem(self, problem: str | None, *, quietly: bool = False) -> None:
        if problem == self.problem:
            return
        self.problem = problem
        fields = {"resource": self.name, "problem": problem}
        if problem is None:
            logger.info("watching again", extra={"fields": {"resource": self.name}})
        else:
            level = logging.DEBUG if quietly else logging.WARNING
            logger.log(level, "the watch ended", extra={"fields": fields})


def _parse(line: bytes) -> tuple[str, Raw]:
    """The type and the object of a line. Raises _StreamError, or the ApiError it tells of."""
    try:
        event = json.loads(line)
        kind, obj = event["type"], event["object"]
        if kind == "ERROR":
            raise api_error(int(obj.get("code") or 500), obj)
        obj["metadata"]["resourceVersion"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _StreamError(f"a watch event that cannot be understood: {line[:200]!r}") from error
    return kind, obj
