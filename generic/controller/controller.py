"""Controller: passes events to the queue, requests to workers, and outcomes back to the queue.

One per actuator. It never decodes an object and does not know what `reconcile` does; `reconcile`
never sees the queue. Events for an object that a worker is processing are evaluated when the worker
returns it: only then are the versions of our own writes known.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import count

from msgspec import Struct, field
from msgspec.structs import replace

from actuator.interface import Clock
from generic.controller.predicates import Predicate, all_of, first_sight, news_in_answer
from generic.controller.workqueue import ShutDown, WorkQueue
from generic.kube.headers import Event, Header, Request
from generic.kube.store import Store
from generic.serving.metrics import ControllerMetrics, ReconcileResult

logger = logging.getLogger(__name__)

_NEWS = -1  # in place of a version: an answer to our write revealed a change by another client


class Done(Struct, frozen=True):
    """Nothing to do until the next event."""


class Again(Struct, frozen=True):
    """Requeue after `seconds`; not a failure."""

    seconds: float


class Failed(Struct, frozen=True):
    """Requeue after the backoff of the object, at most `cap` seconds."""

    cap: float | None = None


Result = Done | Again | Failed
_RESULTS = {
    Done: ReconcileResult.SUCCESS,
    Again: ReconcileResult.REQUEUE_AFTER,
    Failed: ReconcileResult.ERROR,
}
_everything = all_of()
_HELPERS = 64
"""Maximum number of helper threads, each for one urgent request while all workers are busy: as many
as calls that can be abandoned, so that these hang at the same time and not one after the other."""


class _Busy(Struct):
    """An object being processed: its last known header, and the versions of other clients since."""

    worker: threading.Thread
    known: Header | None
    seen: set[int] = field(default_factory=set)


class WorkerReplaced(Exception):
    """The call of this worker was abandoned and the worker replaced: its thread must end."""


class Controller:
    """Runs workers that call `reconcile` for the objects of accepted events."""

    def __init__(
        self,
        name: str,
        reconcile: Callable[[Request, int], Result],
        predicate: Predicate,
        store: Store[Header],
        clock: Clock,
        metrics: ControllerMetrics,
        *,
        answer: Predicate = news_in_answer,
        accepts: Predicate = _everything,
        serves: Predicate = _everything,
    ) -> None:
        """Create a controller without workers.

        `predicate` accepts the events that trigger, and `answer` the answers to our own writes.
        `accepts` has the objects that answers and other resources may trigger, and `serves` all
        objects that are ours, whatever triggers them.
        """
        self.name = name
        self.watches = str(store.resource)
        """The resource of its objects, plural.group."""
        self.queue: WorkQueue[Request] = WorkQueue(clock, metrics.queue)
        self._reconcile = reconcile
        self._predicate = predicate
        self._answer = answer
        self._accepts = accepts
        self._serves = serves
        self._store = store
        self._metrics = metrics
        self._lock = threading.Lock()
        self._busy: dict[Request, _Busy] = {}
        self._workers: set[threading.Thread] = set()
        self._helpers = 0
        self._overdue: deque[Request] = deque()  # urgent requests for which all workers were busy
        self._names = count()
        self.started = False  # from then on, events are accepted
        self.staffed = False  # from then on, a missing worker has died

    def on_event(self, event: Event[Header]) -> None:
        """Process an event of the informer, or the answer to our own write."""
        request = event.request
        new = event.new
        if new is None or not self.started or (event.own and event.late):
            return  # a late echo: decided when the answer arrived
        with self._lock:
            busy = self._busy.get(request)
            if busy is not None:
                self._note(busy, event, new)
                return
        if self._is_news(event):
            self.queue.add(request)

    def look_at(self, request: Request) -> None:
        """Enqueue an object because of another resource's event, if we accept the object."""
        entry = self._store.get(request)
        if self.started and entry is not None and self._accepts(first_sight(request, entry.header)):
            self.queue.add(request)

    def _is_news(self, event: Event[Header]) -> bool:
        if not event.own:
            return self._predicate(event)
        assert event.new is not None, "on_event filters deletions"
        return self._answer(event) and self._accepts(first_sight(event.request, event.new))

    def _note(self, busy: _Busy, event: Event[Header], new: Header) -> None:
        """Record changes to process after the call; only answers reveal which versions are ours."""
        if event.own:
            busy.seen.discard(new.resource_version)  # the watch may have been faster
            if self._answer(replace(event, old=busy.known)):
                busy.seen.add(_NEWS)
            busy.known = new
        elif self._predicate(event) and not self._store.is_own(event.request, new.resource_version):
            busy.seen.add(new.resource_version)  # until an answer claims it

    def serves(self, request: Request, header: Header) -> bool:
        """Whether this controller serves the object."""
        return self._serves(first_sight(request, header))

    def wants(self, request: Request, header: Header) -> bool:
        """Whether the predicates would accept the object if it were new."""
        return self._predicate(first_sight(request, header))

    def start(self, workers: int) -> None:
        """Enqueue every accepted object as if it were new, then start the workers.

        Earlier events are ignored: a standby that takes over must not repeat the work of its
        predecessor.
        """
        self.started = True
        for request, header in self._store.headers():
            if self.wants(request, header):
                self.queue.add(request)
        for _ in range(workers):
            self.add_worker()
        self.staffed = True

    def add_worker(self) -> None:
        """Start one more worker; also to replace one whose call is unresponsive."""
        name = f"{self.name}-worker-{next(self._names)}"
        thread = threading.Thread(target=self._work, name=name, daemon=True)
        thread.start()
        with self._lock:
            self._workers.add(thread)

    def working(self) -> int:
        """Return the number of live workers, without those whose calls were abandoned."""
        with self._lock:
            return sum(thread.is_alive() for thread in self._workers)

    def stop(self) -> None:
        """Hand out no more work; running calls continue."""
        self.queue.shut_down()

    def join(self, seconds: float) -> bool:
        """Wait for the workers; return False if some still run."""
        deadline = time.monotonic() + seconds
        with self._lock:
            workers = list(self._workers)
        for thread in workers:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in workers)

    def put_back(self, request: Request) -> _Busy | None:
        """Return the object to the queue, and enqueue it again if it changed during the call."""
        with self._lock:
            busy = self._busy.pop(request, None)
        self.queue.done(request)
        if busy is not None and busy.seen:
            self.queue.add(request)
        return busy

    def replace_worker(self, request: Request) -> None:
        """Release an object whose worker is unresponsive, and start a new worker."""
        busy = self.put_back(request)
        with self._lock:
            was_helper = busy is not None and busy.worker not in self._workers
            if was_helper:
                self._helpers -= 1
            elif busy is not None:
                self._workers.discard(busy.worker)
        if was_helper:
            self.enqueue_urgent(request)
        else:
            self.queue.add(request, urgent=True)
            self.add_worker()

    def enqueue_urgent(self, request: Request) -> None:
        """Enqueue an object before all others; if all workers are busy, a helper takes it.

        Calls of actuators may take any time, and urgent work must not wait for them. A helper takes
        no other object: the number of workers limits the calls at a time.
        """
        self.queue.add(request, urgent=True)
        with self._lock:
            threads = sum(thread.is_alive() for thread in self._workers) + self._helpers
            if self.queue.pressing() <= threads:
                return
            self._overdue.append(request)
            if self._helpers >= _HELPERS:
                return
            self._helpers += 1
        name = f"{self.name}-helper-{next(self._names)}"
        threading.Thread(target=self._help, name=name, daemon=True).start()

    def _work(self) -> None:
        while True:
            try:
                request = self.queue.get()
            except ShutDown:
                return
            if not self._process(request):
                return

    def _help(self) -> None:
        """Process overdue requests until none is left."""
        while True:
            with self._lock:  # from here on, an added request starts a new helper
                if not self._overdue:
                    self._helpers -= 1
                    return
                request = self._overdue.popleft()
            if self.queue.take(request) and not self._process(request):
                return

    def _process(self, request: Request) -> bool:
        """Process one request; return False if this thread was replaced meanwhile."""
        entry = self._store.get(request)
        with self._lock:
            here = threading.current_thread()
            self._busy[request] = _Busy(here, entry.header if entry else None)
        started = time.monotonic()
        self._metrics.active(1)
        outcome: Result = Failed()
        try:
            outcome = self._reconcile(request, self.queue.failures(request))
        except WorkerReplaced:
            self.look_at(request)  # the abandoned call returned
            return False
        except BaseException:  # a bug of the framework: one object must not stop the others
            self._metrics.panicked()
            fields = {"object": str(request)}
            logger.exception("unexpected exception in reconcile", extra={"fields": fields})
        finally:
            self._metrics.active(-1)
        self._finish(request, outcome, time.monotonic() - started)
        return True

    def _finish(self, request: Request, outcome: Result, seconds: float) -> None:
        """Return the request to the queue, with the delay of its outcome."""
        self._metrics.reconciled(_RESULTS[type(outcome)], seconds)
        if not isinstance(outcome, Failed):
            self.queue.forget(request)
        self.put_back(request)
        if isinstance(outcome, Again):
            self.queue.add_after(request, outcome.seconds)
        elif isinstance(outcome, Failed):
            self.queue.add_rate_limited(request, cap=outcome.cap)
