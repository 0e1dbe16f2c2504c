"""Routing: passes each event to the controllers and the watchdogs that it concerns.

Here is what happens to events and on each tick while a manager runs. Not here: which parts exist
(`wiring`), and the work that an event causes (`generic.controller`, `generic.reconciler`).
"""

import logging
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from msgspec import Struct, field

from actuator.interface import resource_of
from actuator.meta import Kind, parse_time
from generic.controller.controller import Controller
from generic.controller.predicates import Predicate, first_sight
from generic.kube.clusters import Clusters
from generic.kube.headers import ClusterHeader, Event, Header, Request, header
from generic.kube.store import Store
from generic.reconciler.deletion.watchdog import DeletionWatchdog
from generic.serving.metrics import Terminating

logger = logging.getLogger(__name__)


class Served(NamedTuple):
    """A controller for the objects of a resource, and the watchdog of its reconciler."""

    controller: Controller
    watchdog: DeletionWatchdog

    def on_event(self, event: Event[Header]) -> None:
        """Pass an event to the controller as a trigger, and to the watchdog."""
        if event.relisted and event.new is not None:  # any change may have been missed
            self.controller.on_event(first_sight(event.request, event.new))
        else:
            self.controller.on_event(event)
        header = event.old if event.new is None else event.new
        if not self.controller.started or header is None:
            return
        if self.controller.serves(event.request, header) and self.watchdog.observe(event):
            self.controller.queue.add(event.request, urgent=True)
        if event.new is None:  # also of an object that predicates no longer match
            self.watchdog.forget(event.request, header.uid)

    def observe_forced(self, request: Request) -> None:
        """Notify the watchdog that an object may be under forced deletion from now on."""
        if self.watchdog.observe_forced(request):
            self.controller.queue.add(request, urgent=True)

    def tick(self) -> None:
        """End overdue calls, even while workers are unresponsive."""
        over, abandoned, resumed = self.watchdog.tick()
        for request in resumed:
            self.controller.queue.add(request)
        for request in over:
            self.controller.enqueue_urgent(request)
        for request in abandoned:
            self.controller.replace_worker(request)

    def terminating(self, store: Store[Header]) -> Iterator[Terminating]:
        """Yield its objects under deletion, from the store; none before the start."""
        for request, seen in store.headers() if self.controller.started else ():
            since = seen.deletion_timestamp
            if since is not None and self.controller.serves(request, seen):
                state = self.watchdog.terminating(request, seen)
                moment = parse_time(since).timestamp()
                yield Terminating(request.namespace, request.name, state, moment, seen.cause)


class Watched(Struct):
    """One resource: its store, the controllers of its objects, and other listeners."""

    store: Store[Any]
    controllers: list[Served] = field(default_factory=list)
    listeners: list[Callable[[Event[Any]], None]] = field(default_factory=list)
    selections: list[Predicate] = field(default_factory=list)
    """They accept the objects whose bytes the store keeps."""

    def notify(self, event: Event[Any]) -> None:
        """Pass an event to all controllers and listeners."""
        for tell in (*(served.on_event for served in self.controllers), *self.listeners):
            try:
                tell(event)
            except Exception:  # for example an author's mapper; the others must still get the event
                fields = {"object": str(event.request)}
                logger.exception("event handler failed", extra={"fields": fields})


class Routes:
    """The controllers of our own resources, by resource."""

    def __init__(self, clusters: Clusters) -> None:
        self.ours: dict[str, Watched] = {}
        self._clusters = clusters

    def of(self, kind: Kind) -> Watched:
        """Return the routes of one of our own resources."""
        resource = resource_of(kind)
        selections = list[Predicate]()

        def keeps(request: Request, header: Header) -> bool:
            event = first_sight(request, header)
            return any(accepts(event) for accepts in selections)

        watched = Watched(Store(resource, header, keeps=keeps), selections=selections)
        return self.ours.setdefault(str(resource), watched)

    def on_cluster(self, event: Event[ClusterHeader]) -> None:
        """Enqueue the objects of a namespace when its Cluster appears or its verdict changes.

        A changed Cluster also requeues objects reconciled against its previous version.
        """
        is_news = self._clusters.on_event(event)
        changed = None if event.old is None else event.new
        for watched in self.ours.values():
            for request in watched.store.requests(event.request.name):
                if is_news:
                    self._renew(watched, request)
                if changed is not None:
                    self._repeat(watched, request, changed.resource_version)

    def _renew(self, watched: Watched, request: Request) -> None:
        """Enqueue an object urgently if it has work, and reset its backoff."""
        entry = watched.store.get(request)
        if entry is None:
            return
        for served in watched.controllers:
            controller = served.controller
            if controller.started and controller.wants(request, entry.header):
                controller.queue.add(request, urgent=True)
                served.observe_forced(request)

    def _repeat(self, watched: Watched, request: Request, cluster_version: int) -> None:
        """Requeue an object whose reconcile began with an older version of the Cluster.

        Watches are not ordered among each other: a request that gardenlet made after writing the
        Cluster may have been handled with the previous version.
        """
        for controller, watchdog in watched.controllers:
            if watchdog.began_after(request, cluster_version):
                controller.look_at(request)

    def unserved(self, name: str) -> Iterator[str]:
        """Yield the type of each object that neither we nor others handle; `name`: plural.group."""
        if watched := self.ours.get(name):
            for request, seen in watched.store.headers():
                served = (controller.serves(request, seen) for controller, _ in watched.controllers)
                if seen.type and seen.is_untouched and not any(served):
                    yield seen.type

    def begin(self, controller: Controller) -> None:
        """Start the budgets of force deletions that began before this controller."""
        for watched in self.ours.values():
            for served in watched.controllers:
                if served.controller is not controller:
                    continue
                for request, seen in watched.store.headers():
                    if seen.deletion_timestamp and controller.serves(request, seen):
                        served.observe_forced(request)

    def tick(self) -> None:
        """Run the periodic work of all controllers, even while workers are unresponsive."""
        for watched in self.ours.values():
            for served in watched.controllers:
                served.tick()
