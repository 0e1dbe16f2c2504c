"""Informer: keeps a Store equal to the state of the API server, and reports every change.

List and watch in one stream (Kubernetes documentation, "API concepts", streaming lists), resumed
from the last resourceVersion seen. All watch errors are handled here: 410 as an answer and inside
the stream, 429 with Retry-After, broken and silently dead streams, deletions that no watch
reported, and versions that go back, as after a restore of etcd from a backup. A restored server
whose versions passed the last one seen shows nothing of that, but it was away: a watch that cannot
be reopened within a second begins with a list.

Why not the informer and the leader election of the `kubernetes` package: in 37.0.2 its
SharedInformer never syncs custom resources (it calls `items`, a method of dict) and hangs for
ever on a stream that died without an error; its leader election never releases the lease, cannot
be stopped and trusts the wall clock.

Guarantees: once `synced`, the store holds every object; `on_event` receives each change at least
once, including deletions while no stream was open. Errors: `run` raises none; the last one is in
`problem`, and logged once for each time it changes.

A kind whose CRD is absent (the list answers 404) is a state, not a failure: `absent`. The informer
retries with a longer backoff, so a CRD that is installed later is served without a restart. Its
store keeps the last known objects until the next list, because a missing CRD does not prove that
they were deleted.
"""

import logging
import math
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from actuator.codec import read_json
from actuator.errors import ApiError, Gone, NotFound, TooManyRequests, Unavailable, api_error
from generic.kube.client import HttpClient, Silence, path_of
from generic.kube.documents import Document, read_event
from generic.kube.headers import Event, Request
from generic.kube.problems import ABSENT, ProblemLog, describe_problem
from generic.kube.store import Store

logger = logging.getLogger(__name__)
S = TypeVar("S", Document, Event[Any])

_INITIAL_END = "k8s.io/initial-events-end"
_BACKOFF = (0.2, 5.0)
"""Seconds before the first retry, and the maximum: without a watch, deletion budgets still run."""
_ABSENT_BACKOFF = (1.0, 30.0)
"""The same while the API server does not serve the kind: in the end two requests a minute."""
_STEADY = 5.0
"""Minimum seconds a stream must live to count as a success."""
_AWAY = 1.0
"""Seconds without a stream after which etcd may have been restored: that takes longer."""
_MAX_SILENT_SECONDS = 300.0
"""Maximum seconds for which a Retry-After is obeyed."""


class Informer:
    """Fills `store` and calls `on_event`, in the thread that runs `run`."""

    def __init__(
        self,
        client: HttpClient,
        store: Store[Any],
        on_event: Callable[[Event[Any]], None],
        *,
        namespace: str = "",
        relisted: Callable[[str, str], None] = lambda _kind, _reason: None,
        idle_timeout: float = 75.0,
        problems: ProblemLog | None = None,
    ) -> None:
        """`relisted` counts each list of a kind and its reason: a RelistReason."""
        self._client = client
        self._store = store
        self._observe_listed = partial(store.observe, relisted=True)
        self._on_event = on_event
        self._path = path_of(store.resource, namespace)
        self._namespace = namespace
        self._relisted = relisted
        self._problems = problems or ProblemLog()
        self._idle_timeout = idle_timeout
        self.name = str(store.resource)
        """The watched resource, plural.group."""
        self.plural = store.resource.plural
        """The plural alone, as in metric labels."""
        self.settled = threading.Event()
        """Set once the store was complete, or the kind was found absent."""
        self._version = ""  # empty: list first
        self._reason = "initial"
        self._streams_lists = True
        self._failures = 0
        self._opened_at = math.inf
        self._alive_at = self._steady_at = time.monotonic()
        self.problem: str | None = None
        """The reason why there is no stream at the moment, or None."""
        self._quietly = False  # whether only the debug log has it
        self.synced = False
        """Whether the store was complete, and no restore of etcd has been found since."""
        self.absent = False
        """Whether the API server answered 404 to the last list: it does not serve the kind."""

    @property
    def unreadable(self) -> int:
        """The number of objects with parts that cannot be read."""
        return sum(header.unreadable for _, header in self._store.headers())

    def age(self) -> float:
        """Return the seconds since the API server last sent data on the stream."""
        return time.monotonic() - self._alive_at

    def failing(self) -> float:
        """Return the seconds since a stream last lived long enough; 0 while one does.

        A list that is repeated and breaks each time makes no progress either.
        """
        now = time.monotonic()
        return 0.0 if now - self._opened_at >= _STEADY else now - self._steady_at

    def run(self, stop: threading.Event) -> None:
        """Watch until `stop` is set; returning takes up to a minute while the stream is quiet."""
        while not stop.is_set():
            self._opened_at = math.inf
            failure: Exception | None = None
            try:
                self._watch_once(stop)
            except Exception as error:  # any error: no other thread keeps the store up to date
                failure = error
            if not stop.is_set():
                self._recover(failure, stop)

    def _watch_once(self, stop: threading.Event) -> None:
        """Process one stream from start to end; list first if there is no resourceVersion."""
        if not self._version and self._streams_lists:
            try:
                self._follow_from_list(stop)
                return
            except ApiError as error:
                if error.status not in (400, 422):
                    raise
                self._streams_lists = False  # a server without streaming lists
        if not self._version:
            self._list()
        with self._stream({"resourceVersion": self._version}) as lines:
            self._follow(self._events(lines, stop))

    def _list(self) -> None:
        """List by pages, for servers without streaming lists."""
        self._store.begin_list()
        self._relisted(self.plural, self._reason)
        listed: set[Request] = set()
        version = ""
        pages = self._client.pages(self._store.resource, self._namespace)
        for objects, version in pages:  # noqa: B007 - the last page's is the list's
            for document in map(Document, objects):
                listed.add(document.request)
                self._take(self._observe_listed, document)
        self._complete(listed, version)

    def _follow_from_list(self, stop: threading.Event) -> None:
        """Read the list as a stream of events, then continue with the changes."""
        query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        listed: set[Request] = set()
        self._store.begin_list()
        with self._stream(query) as lines:
            self._relisted(self.plural, self._reason)
            events = self._events(lines, stop)
            for kind, document in events:
                if kind == "DELETED":  # since the list began
                    listed.discard(document.request)
                    self._take(self._store.observe_deleted, document)
                elif kind != "BOOKMARK":
                    listed.add(document.request)
                    self._take(self._observe_listed, document)
                elif _INITIAL_END in (document.meta.get("annotations") or {}):
                    self._complete(listed, str(document.meta["resourceVersion"]))
                    self._follow(events)
                else:  # an ordinary bookmark: the server ignored sendInitialEvents
                    self._streams_lists = False
                    return

    @contextmanager
    def _stream(self, query: dict[str, str]) -> Iterator[Iterator[bytes]]:
        common = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(random.randint(290, 590)),
        }
        with self._client.stream(
            self._path, {**common, **query}, read_timeout=self._idle_timeout
        ) as lines:
            self._opened_at = self._alive_at = time.monotonic()
            self._say_problem(None)
            self.absent = False
            yield lines

    def _events(
        self, lines: Iterator[bytes], stop: threading.Event
    ) -> Iterator[tuple[str, Document]]:
        """Yield parsed lines. Raises Gone, another ApiError, or ValueError."""
        for line in lines:
            if stop.is_set():
                return
            self._alive_at = time.monotonic()
            yield _parse(line)

    def _follow(self, events: Iterator[tuple[str, Document]]) -> None:
        for kind, document in events:
            version = str(document.meta["resourceVersion"])
            if document.version < _number(self._version):
                self.synced = False  # not ready until everything was compared
                self._reason = "restored"
                text = f"went back from {self._version} to {version}: etcd was restored"
                raise Gone(410, f"the resourceVersion {text}")
            if kind == "DELETED":
                self._take(self._store.observe_deleted, document)
            elif kind != "BOOKMARK":
                self._take(self._store.observe, document)
            self._version = version

    def _complete(self, listed: set[Request], version: str) -> None:
        """Finish a complete list: objects that it did not contain are deleted."""
        for event in self._store.prune(listed, _number(version)):
            self._take(lambda item: item, event)
        self._version = version
        self._alive_at = time.monotonic()
        self.synced = True
        self.settled.set()

    def _take(self, observe: Callable[[S], Event[Any] | None], seen: S) -> None:
        """Process one object; an error in its handling must not stop the others."""
        try:
            event = observe(seen)
            if event is not None:
                self._on_event(event)
        except BaseException:  # SystemExit of an author's mapper included
            logger.exception(
                "event handler failed",
                extra={"fields": {"resource": self.name, "object": str(seen.request)}},
            )

    def _recover(self, error: Exception | None, stop: threading.Event) -> None:
        """Decide whether to list again, and wait for the backoff."""
        if self._version and time.monotonic() - self._opened_at >= _STEADY:
            self._failures = 0
            self._steady_at = time.monotonic()
            if error is None:  # the server ends every watch after some minutes
                return
        is_absent = isinstance(error, NotFound)
        if is_absent:
            self._note_absence()
        if error is not None:
            self._expire(error)
            problem = ABSENT if is_absent else describe_problem(error, self._path)
            soft = self._failures == 0 and self.synced and isinstance(error, Unavailable | Gone)
            busy = self._failures < 2 and isinstance(error, TooManyRequests)  # as after a new CRD
            self._say_problem(problem, quietly=soft or busy)
        first, cap = _ABSENT_BACKOFF if is_absent else _BACKOFF
        delay = min(first * 2**self._failures, cap) * random.uniform(0.7, 1.3)
        self._failures = min(self._failures + 1, 16)
        after = error.retry_after if isinstance(error, ApiError) else None
        self._opened_at = math.inf
        stop.wait(max(delay, min(after or 0.0, _MAX_SILENT_SECONDS)))

    def _note_absence(self) -> None:
        """Record an absent kind, which is no failure: the server answered that it has no list."""
        if not self.absent:
            self._failures = 0  # a CRD that is being installed is found within seconds
        self.absent = True
        self._alive_at = self._steady_at = time.monotonic()
        self.settled.set()

    def _expire(self, error: Exception) -> None:
        """Forget the resourceVersion, so that the next attempt lists again, if it is unusable.

        This includes a stream without a single line: a bookmark comes every minute, unless the
        server has not yet reached the version, as after a restore of etcd; and a server that was
        away: etcd may have been restored meanwhile.
        """
        unresponsive = isinstance(error, Silence) and self._alive_at == self._opened_at
        is_open = not math.isinf(self._opened_at)
        was_away = isinstance(error, Unavailable) and not is_open and self.failing() > _AWAY
        is_useless = isinstance(error, Gone | NotFound) or not isinstance(error, ApiError)
        if unresponsive or was_away or is_useless:
            self._version = ""
            if self.synced:
                self._reason = "expired" if isinstance(error, Gone) else "error"

    def _say_problem(self, problem: str | None, *, quietly: bool = False) -> None:
        if problem == self.problem and quietly >= self._quietly:
            return
        self.problem = problem
        self._quietly = quietly
        if problem is None:
            text = "kind is served" if self.absent else "watch resumed"
            logger.info(text, extra={"fields": {"resource": self.name}})
        else:
            self._problems.say(logging.DEBUG if quietly else logging.WARNING, self.name, problem)


def _number(version: str) -> int:
    return int(version) if version.isdecimal() else 0


def _parse(line: bytes) -> tuple[str, Document]:
    """Return the type and object of a line. Raises ValueError, or the ApiError it contains."""
    try:
        kind, document = read_event(line)
        if kind == "ERROR":
            status = read_json(line)["object"]
            raise api_error(int(status.get("code") or 500), status)
        document.meta["resourceVersion"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"  # not the line: it may hold private data
        raise ValueError(f"invalid watch event: {reason}") from error
    return kind, document
